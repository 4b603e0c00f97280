"""Topics as tables, by their schemas."""

from dataclasses import replace
from pathlib import Path

import pytest

from headgate.errors import InvalidRequest
from headgate.statements.declared import Declared, DeclaredTables
from headgate.statements.tables import TopicTables
from headgate.store import SqlObjects, Store
from tests.integration.statements.bench import EVENT_SCHEMA, Bench, event, framed
from tests.integration.statements.plans import EVENTS

KEY = {"type": "record", "name": "Key", "fields": [{"name": "id", "type": "long"}]}
SHOP = {"type": "record", "name": "Shop", "fields": [{"name": "shop", "type": "string"}]}


def test_a_topic_is_what_its_schemas_say(bench: Bench) -> None:
    tables = TopicTables(bench.topics, bench.schemas)
    plain = bench.events()
    found = tables.get(plain.name)
    assert found is not None
    assert [(c.name, c.dataType) for c in found.columns.fields] == [
        (c.name, c.dataType) for c in EVENTS.fields
    ]
    assert (found.primary_key, found.changelog) == ((), "append")
    assert plain.name in tables.names()
    # A key with a field of its own is a column more; it makes no changes of the rows.
    bench.register(plain.name, SHOP, "key")
    keyed = tables.get(plain.name)
    assert keyed is not None
    assert (keyed.columns.names, keyed.changelog) == ([*EVENTS.names, "shop"], "append")


def test_what_is_compacted_with_a_key_is_changes(bench: Bench) -> None:
    tables = TopicTables(bench.topics, bench.schemas)
    topic = bench.topic("compacted", 1, {"cleanup.policy": "compact,delete"})
    assert tables.get(topic) is None, "no schema"
    bench.register(topic, EVENT_SCHEMA)
    alone = tables.get(topic)
    assert alone is not None
    assert alone.changelog == "append", "nothing tells rows apart"
    bench.register(topic, KEY, "key")
    found = tables.get(topic)
    assert found is not None
    assert (found.primary_key, found.changelog, found.columns.names) == (("id",), "upsert", EVENTS.names)


def test_change_events_are_the_rows_in_them(bench: Bench, tmp_path: Path) -> None:
    topic = bench.topic("envelopes", 1)
    row = {"type": "record", "name": "Row", "fields": [{"name": "id", "type": "long"}]}
    origin = {"type": "record", "name": "Source", "fields": [{"name": "connector", "type": "string"}]}
    envelope = {
        "type": "record",
        "name": "Envelope",
        "fields": [
            {"name": "before", "type": ["null", row], "default": None},
            {"name": "after", "type": ["null", "Row"], "default": None},
            {"name": "source", "type": origin},
            {"name": "op", "type": "string"},
        ],
    }
    bench.register(topic, envelope)
    bench.register(topic, KEY, "key")
    topics = TopicTables(bench.topics, bench.schemas)
    found = topics.get(topic)
    assert found is not None
    assert (found.columns.names, found.primary_key, found.changelog) == (["id"], ("id",), "upsert")
    # Their after-images may be rows too; what is taken back they do not say.
    store = Store.open(f"sqlite:///{tmp_path / 'control.db'}")
    tables = DeclaredTables(SqlObjects(store.engine), topics)
    table = tables.get(topic)
    assert table is not None
    tables.check_mode(table, replace(table, changelog="append"))
    with pytest.raises(InvalidRequest, match="change events"):
        tables.check_mode(table, replace(table, changelog="retract"))
    store.close()


def test_the_key_of_the_records_is_told_by_its_schema_or_by_the_newest_of_them(
    bench: Bench, tmp_path: Path
) -> None:
    topics = TopicTables(bench.topics, bench.schemas)
    plain, columns = bench.events().name, EVENTS.names
    assert topics.record_key(plain, columns) == (), "no record tells"
    schema = bench.register(plain, EVENT_SCHEMA)
    for number in range(60):
        value = framed(schema, EVENT_SCHEMA, event(number, amount=number))
        bench.send_raw(plain, value, number % 2, key=b"%d" % number)
    bench.flush()
    # Its amount is the same number here.
    assert topics.record_key(plain, columns) == ("id", "amount")
    bench.send_raw(plain, framed(schema, EVENT_SCHEMA, event(7, amount=1)), 1, key=b"7")
    bench.flush()
    assert topics.record_key(plain, columns) == ("id",)
    bench.send_raw(plain, framed(schema, EVENT_SCHEMA, event(7)), 0)
    bench.flush()
    assert topics.record_key(plain, columns) == (), "one has no key"
    store = Store.open(f"sqlite:///{tmp_path / 'control.db'}")
    tables = DeclaredTables(SqlObjects(store.engine), topics)
    tables.declare(plain, Declared(options={"key.fields": "id; who"}))
    assert tables.record_key(plain) == ("id", "who"), "as it was said"
    store.close()
    bench.register(plain, KEY, "key")
    assert topics.record_key(plain, columns) == ("id",)


def test_a_topic_that_is_not_there(bench: Bench) -> None:
    assert TopicTables(bench.topics, bench.schemas).get("nowhere") is None
