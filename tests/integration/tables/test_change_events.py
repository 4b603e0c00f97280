"""Debezium's change events in upsert tables: the table equals the database's, however the messages come."""

import json
import os
import random
from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

from headgate.model import Deletes, Envelope, RecordFormat, TableMode
from tests.integration.tables.drive import Drive
from tests.support.debezium import Message, SourceTable
from tests.support.debezium_forms import Database, Form
from tests.support.ledger import canonical

SOAK = os.environ.get("HEADGATE_SOAK") == "1"
CHANGES = 300 if SOAK else 50
OWN = ("_kafka_partition", "_kafka_offset", "_change_source", "_change_position", "_headgate_generation")
FORMATS = {
    Form.AVRO: (RecordFormat.AUTO, RecordFormat.AUTO),
    Form.CONNECT_JSON: (RecordFormat.CONNECT_JSON, RecordFormat.JSON),
    Form.JSON: (RecordFormat.JSON, RecordFormat.JSON),
}


class Watched:
    """A source table, the topic that tells of it, and the table that is made of that."""

    def __init__(self, drive: Drive, database: Database, form: Form, seed: int = 7) -> None:
        self.drive = drive
        prefix = "p." + "".join(c if c.isalnum() else "_" for c in drive.topic) + ".orders"
        self.source = SourceTable(database, form, seed, prefix=prefix)
        value_format, key_format = FORMATS[form]
        declared = self.source.events.declared if form is Form.JSON else None
        drive.create(1)
        drive.spec = replace(
            drive.spec,
            mode=TableMode.UPSERT,
            value_format=value_format,
            key_format=key_format,
            value_columns=declared,
            key_columns=None if key_format is RecordFormat.AUTO else "id bigint",
            envelope=Envelope.DEBEZIUM if form is Form.JSON else Envelope.AUTO,
        )
        self._ids = (0, 0)
        if form is Form.AVRO:
            registry = SchemaRegistryClient({"url": drive.runtime.registry})
            events = self.source.events
            key, value = (
                registry.register_schema(f"{drive.topic}-{part}", Schema(json.dumps(schema), "AVRO"))
                for part, schema in (("key", events.key_schema), ("value", events.value_schema))
            )
            self._ids = (key, value)

    def send(self, messages: Iterable[Message]) -> None:
        for message in messages:
            sent = message.framed(*self._ids) if self._ids[0] else message
            key = None if sent.key is None else self._bare(sent.key)
            self.drive.send(sent.value, 0, key)
        self.drive.flush()

    def _bare(self, key: bytes) -> bytes:
        """Connect's JSON keys with their schema are read as what is in them."""
        if self._ids[0] or self.source.events.form is Form.JSON:
            return key
        return json.dumps(json.loads(key)["payload"]).encode()

    def check(self, *kept: dict[str, Any]) -> None:
        """The table has the rows of the source, and those that were `kept` beside them."""
        found = [{k: v for k, v in row.items() if k not in OWN} for row in self.drive.rows()]
        assert sorted(canonical(plain(row)) for row in found) == sorted(
            canonical(plain(row)) for row in [*self.source.rows, *kept]
        )


def plain(row: dict[str, Any]) -> dict[str, Any]:
    """As all readers tell it: PyIceberg reads no list as an empty one, and maps are lists of pairs."""
    return {name: _plain(value) for name, value in row.items()}


def _plain(value: Any) -> Any:
    match value:
        case Decimal():
            return value.normalize()
        case []:
            return None
        case dict():
            return sorted([key, item] for key, item in value.items())
        case [tuple(), *_]:
            return sorted([key, item] for key, item in value)
    return value


CASES = [(database, form) for database in Database for form in Form]
# Plans of many conversions take their time to compile: two of them tell as much as a short test can.
FEW = [(Database.POSTGRES, Form.AVRO), (Database.MYSQL, Form.JSON)]


@pytest.mark.soak
@pytest.mark.parametrize(("database", "form"), CASES if SOAK else FEW)
def test_the_table_is_the_databases(drive: Drive, database: Database, form: Form) -> None:
    """Twice, and out of order: what a connector sends again changes nothing."""
    watched = Watched(drive, database, form)
    table = drive.materializer()
    for _ in range(2):
        watched.send(watched.source.run(CHANGES, truncates=database is Database.POSTGRES))
        drive.run_all(table)
        watched.check()
    messages = list(watched.source.messages)
    pieces = [messages[n : n + 40] for n in range(0, len(messages), 40)]
    random.Random(3).shuffle(pieces)
    for piece in pieces:
        watched.send(piece)
    drive.run_all(table)
    watched.check()
    # The index is made of the table and of what is remembered beside it.
    drive.index.clear()
    again = drive.materializer()
    watched.send(messages)
    drive.run_all(again)
    watched.check()


def test_a_restored_database_begins_a_new_generation(drive: Drive) -> None:
    """Its log goes back: positions of two generations are never compared, in one batch or in two."""
    watched = Watched(drive, Database.POSTGRES, Form.AVRO)
    source = watched.source
    watched.send([*source.insert(4), *source.truncate(), *source.insert(3)])
    # 6 and 7 are not in the snapshot; 6 comes again at a lesser place in the log, 1 below the truncate.
    kept = source.rows[2]
    source.restore([5])
    watched.send([*source.snapshot(), *source.insert_again(6), *source.insert_again(1)])
    table = drive.materializer()
    assert len(drive.run_all(table)) == 1
    watched.check(kept)
    assert table.facts["rows_of_earlier_generations"] == 1
    # Once more, with a truncate that only the table remembers.
    source.restore([1, 5, 6])
    watched.send([*source.snapshot(), *source.insert_again(2)])
    drive.run_all(table)
    watched.check(kept)
    # The index is made anew; an operator's word begins a generation as a snapshot does.
    drive.index.clear()
    table = drive.materializer()
    source.restore([1, 2, 5, 6])
    table.accept(drive.view(), "new-timeline")
    watched.send([*source.update(6), *source.delete(2)])
    drive.run_all(table)
    watched.check(kept)
    assert table.facts["rows_of_earlier_generations"] == 3
    # The table carries out a truncate: its index has no row of a key that is gone.
    watched.send([*source.truncate(), *source.insert(2)])
    drive.run_all(table)
    watched.check()
    assert len(list(drive.index.live())) == len(source.rows) == 2


def test_a_value_that_is_not_told_is_the_one_before(drive: Drive) -> None:
    watched = Watched(drive, Database.POSTGRES, Form.AVRO)
    drive.spec = replace(drive.spec, deletes=Deletes.COPY_ON_WRITE)
    table = drive.materializer()
    watched.send(watched.source.insert(3))
    drive.run_all(table)
    # From the table, then from the batch itself.
    for leave_out in ([True], [False, True, True]):
        for one in leave_out:
            watched.send(watched.source.update(2, leave_out=one))
        drive.run_all(table)
        watched.check()
    rows: Any = watched.source.rows
    assert len(rows) == 3
