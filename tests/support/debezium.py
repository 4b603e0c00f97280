"""A table of a database that Debezium watches: its rows, and the messages that tell of their changes."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from tests.support.debezium_forms import (
    COLUMNS,
    Column,
    Database,
    Form,
    Row,
    avro_bytes,
    avro_key_schema,
    avro_value_schema,
    connect_key_schema,
    connect_value,
    connect_value_schema,
    declared_columns,
    declared_value,
    json_bytes,
)

PLACEHOLDER = "__debezium_unavailable_value"
START = datetime(2024, 5, 31, 10, 15, 30, 123_456, UTC)
# Small, so that a test of some hundred changes sees several files.
_BINLOG_FILE_SIZE = 20_000
_PLACEHOLDERS: dict[str, Any] = {
    "string": PLACEHOLDER,
    "bytes": PLACEHOLDER.encode(),
    "strings": [PLACEHOLDER],
    "numbers": list(PLACEHOLDER.encode()),
    "map": {PLACEHOLDER: PLACEHOLDER},
}


@dataclass(frozen=True)
class Message:
    """A message as its converter wrote it. One without a value is a tombstone."""

    key: bytes | None
    value: bytes | None
    #: The event as the connector has it.
    event: dict[str, Any] | None

    def framed(self, key_id: int, value_id: int) -> "Message":
        """With the ids of its registered schemas before it."""
        return replace(self, key=_framed(self.key, key_id), value=_framed(self.value, value_id))


def _framed(body: bytes | None, schema_id: int) -> bytes | None:
    return None if body is None else b"\x00" + schema_id.to_bytes(4, "big") + body


class Events:
    """Builds the messages of one table in one form. Rows are given as the table has them."""

    def __init__(self, database: Database, form: Form, prefix: str = "shop.public.orders") -> None:
        self.database, self.form = database, form
        self.columns = COLUMNS[database]
        self._prefix = prefix

    @property
    def key_schema(self) -> dict[str, Any] | None:
        """As it is registered, or as each message has it; plain JSON has none."""
        match self.form:
            case Form.AVRO:
                return avro_key_schema(self.database, self._prefix)
            case Form.CONNECT_JSON:
                return connect_key_schema(self.database, self._prefix)
        return None

    @property
    def value_schema(self) -> dict[str, Any] | None:
        match self.form:
            case Form.AVRO:
                return avro_value_schema(self.database, self._prefix)
            case Form.CONNECT_JSON:
                return connect_value_schema(self.database, self._prefix)
        return None

    @property
    def declared(self) -> str:
        """The row's columns, to be declared for plain JSON."""
        return declared_columns(self.database)

    def source(self, at: datetime = START, **fields: Any) -> dict[str, Any]:
        name, _, table = self._prefix.split(".")
        micros = int(at.timestamp()) * 1_000_000 + at.microsecond
        common = {
            "version": "3.0.0.Final",
            "connector": self.database.value,
            "name": name,
            "ts_ms": micros // 1000,
            "snapshot": "false",
            "db": "inventory",
            "sequence": None,
            "ts_us": micros,
            "ts_ns": micros * 1000,
            "table": table,
        }
        if self.database is Database.POSTGRES:
            own = {"schema": "public", "txId": 556, "lsn": 24_023_128, "xmin": None}
        else:
            place = {"file": "mysql-bin.000003", "pos": 484, "row": 0}
            own = {"server_id": 223_344, "gtid": None, **place, "thread": 7, "query": None}
        return {**common, **own, **fields}

    def event(
        self, op: str, before: Row | None, after: Row | None, source: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        found = self.source() if source is None else source
        return {
            "before": self._connect_row(before),
            "after": self._connect_row(after),
            "source": found,
            "transaction": None,
            "op": op,
            "ts_ms": found["ts_ms"] + 377,
            "ts_us": found["ts_us"] + 377_000,
            "ts_ns": found["ts_ns"] + 377_000_000,
        }

    def message(self, key: Row | None, event: dict[str, Any]) -> Message:
        return Message(self.key(key), self._bytes(event, self.value_schema), event)

    def tombstone(self, key: Row) -> Message:
        return Message(self.key(key), None, None)

    def key(self, row: Row | None) -> bytes | None:
        if row is None:
            return None
        found = {c.column: connect_value(c, row[c.column]) for c in self.columns if c.key}
        return self._bytes(found, self.key_schema)

    def as_read(self, row: Row) -> Row:
        """The row as a table has it that reads this form."""
        if self.form is not Form.JSON:
            return row
        return {c.column: declared_value(c, row[c.column]) for c in self.columns}

    def key_only(self, row: Row) -> Row:
        """What is before a delete where the log has only the key: columns that must be there are zero."""
        blank = {"placed": datetime(1970, 1, 1)}
        return {c.column: row[c.column] if c.key else blank.get(c.column) for c in self.columns}

    def _bytes(self, value: Any, schema: dict[str, Any] | None) -> bytes:
        if self.form is not Form.AVRO:
            return json_bytes(value, schema)
        assert schema is not None
        return avro_bytes(schema, value)

    def _connect_row(self, row: Row | None) -> Row | None:
        if row is None:
            return None
        return {c.column: self._connect_value(c, row[c.column]) for c in self.columns}

    @staticmethod
    def _connect_value(column: Column, value: Any) -> Any:
        return value if value == _PLACEHOLDERS.get(column.kind) else connect_value(column, value)


class SourceTable:
    """Simulates the table: each change is in `state` at once, and its messages are returned and kept.

    The same seed and calls give the same messages. `toast` lets updates leave big values out (Postgres);
    `full_before` is REPLICA IDENTITY FULL; `gtid` makes MySQL name its transactions.
    """

    def __init__(
        self,
        database: Database = Database.POSTGRES,
        form: Form = Form.AVRO,
        seed: int = 0,
        toast: bool = True,
        full_before: bool = False,
        gtid: bool = False,
        prefix: str = "shop.public.orders",
    ) -> None:
        self.events = Events(database, form, prefix)
        #: The rows that the database has, by key.
        self.state: dict[int, Row] = {}
        self.messages: list[Message] = []
        postgres = database is Database.POSTGRES
        self._toast = toast and postgres
        self._interleaves = postgres
        # MySQL's log has all of a row.
        self._full_before, self._gtid = full_before or not postgres, gtid
        self._random = random.Random(seed)
        self._next_id, self._transaction, self._at = 1, 0, START
        self._lsn, self._file, self._pos, self._row = 24_023_128, 999_998, 4, 0

    @property
    def rows(self) -> list[Row]:
        """What a table of this form must have in the end, by key."""
        return [self.events.as_read(self.state[key]) for key in sorted(self.state)]

    def snapshot(self, mark: str = "true") -> list[Message]:
        """All rows as they are read by a snapshot, `incremental` or not."""
        rows = list(self.state.values())
        return self._tell([(row, "r", None, row, {"snapshot": mark}) for row in rows])

    def restore(self, keys: list[int]) -> None:
        """The database is put back to a state in which it had these rows alone, and its log with it."""
        self.state = {key: self.state[key] for key in keys}
        self._lsn = 1_000

    def put_clock_back(self) -> None:
        """The database's clock; its log goes on."""
        self._at -= timedelta(hours=1)

    def insert(self, count: int = 1) -> list[Message]:
        """New rows in one statement: one place in the log."""
        rows = [self._new_row(self._next_id + n) for n in range(count)]
        self._next_id += count
        self.state |= {row["id"]: row for row in rows}
        self._advance()
        return self._tell([(row, "c", None, row, {"row": n}) for n, row in enumerate(rows)])

    def update(self, key: int, leave_out: bool = False) -> list[Message]:
        """With `leave_out` all big values stay as they are, and the event does not have them."""
        self._advance()
        return self._update(key, leave_out)

    def update_at_once(self, keys: list[int]) -> list[Message]:
        """Postgres only. Transactions that write side by side: told one by one, as they commit."""
        places = []
        for _ in keys:
            self._advance()
            places.append(self._lsn)
        self._random.shuffle(places)
        found = []
        for self._lsn, key in zip(places, keys, strict=True):
            found += self._update(key, leave_out=False)
        self._lsn = max(places)
        return found

    def _update(self, key: int, leave_out: bool) -> list[Message]:
        before = self.state[key]
        after = self._new_row(key)
        told = after
        if leave_out:
            kept = [c for c in self.events.columns if c.toasted and before[c.column] is not None]
            after = after | {c.column: before[c.column] for c in kept}
            told = after | {c.column: _PLACEHOLDERS[c.kind] for c in kept}
        self.state[key] = after
        return self._tell([(after, "u", before if self._full_before else None, told, {})])

    def delete(self, key: int) -> list[Message]:
        """The event, and the tombstone after it."""
        row = self.state.pop(key)
        self._advance()
        told = self._tell([(row, "d", self._before(row), None, {})])
        return told + self._keep([self.events.tombstone(row)])

    def change_key(self, key: int) -> list[Message]:
        """A row under a new key: the old one is deleted, the new one inserted, at one place in the log."""
        row = self.state.pop(key)
        moved = row | {"id": self._next_id}
        self._next_id += 1
        self.state[moved["id"]] = moved
        self._advance()
        told = self._tell([(row, "d", self._before(row), None, {})])
        told += self._keep([self.events.tombstone(row)])
        return told + self._tell([(moved, "c", None, moved, {})])

    def insert_again(self, key: int) -> list[Message]:
        """A row under a key that was deleted before."""
        assert key not in self.state
        self.state[key] = self._new_row(key)
        self._advance()
        return self._tell([(self.state[key], "c", None, self.state[key], {})])

    def truncate(self) -> list[Message]:
        """Postgres only. Its message has no key."""
        self.state.clear()
        self._advance()
        return self._tell([(None, "t", None, None, {})])

    def run(self, changes: int, truncates: bool = False) -> Iterator[Message]:
        """Changes of all kinds; the first ones are inserts."""
        for number in range(changes):
            yield from self._any_change(number, truncates)

    def _any_change(self, number: int, truncates: bool) -> list[Message]:
        if number < 3 or not self.state:
            return self.insert(self._random.randint(1, 3))
        key = self._random.choice(sorted(self.state))
        deleted = sorted(set(range(1, self._next_id)) - self.state.keys())
        choices: list[tuple[int, Callable[[], list[Message]]]] = [
            (30, lambda: self.insert(self._random.randint(1, 3))),
            (35, lambda: self.update(key)),
            (15, lambda: self.update(key, leave_out=self._toast)),
            (12, lambda: self.delete(key)),
            (4, lambda: self.change_key(key)),
            (6 if self._interleaves else 0, lambda: self.update_at_once(self._some_keys())),
            (4 if deleted else 0, lambda: self.insert_again(self._random.choice(deleted))),
            (1 if truncates else 0, self.truncate),
        ]
        weights = [weight for weight, _ in choices]
        _, call = self._random.choices(choices, weights)[0]
        return call()

    def _some_keys(self) -> list[int]:
        keys = sorted(self.state)
        return self._random.sample(keys, min(3, len(keys)))

    def _before(self, row: Row) -> Row:
        return row if self._full_before else self.events.key_only(row)

    def _advance(self) -> None:
        """The next place in the log."""
        self._transaction += 1
        self._at += timedelta(microseconds=self._random.randint(1, 5_000_000))
        self._lsn += 8 * self._random.randint(1, 500)
        self._pos += self._random.randint(60, 2000)
        if self._pos > _BINLOG_FILE_SIZE:
            self._file, self._pos = self._file + 1, 4

    def _tell(
        self, changes: list[tuple[Row | None, str, Row | None, Row | None, dict[str, Any]]]
    ) -> list[Message]:
        """`changes`: the row that gives the key, op, before, after, what is special about the source."""
        found = []
        for keyed, op, before, after, special in changes:
            source = self.events.source(self._at, **self._place())
            source |= {name: value for name, value in special.items() if name in source}
            if op == "r" and self.events.database is Database.MYSQL and special["snapshot"] != "incremental":
                source["server_id"] = 0
            found.append(self.events.message(keyed, self.events.event(op, before, after, source)))
        return self._keep(found)

    def _place(self) -> dict[str, Any]:
        if self.events.database is Database.POSTGRES:
            sequence = f'["{self._lsn - 8}","{self._lsn}"]'
            return {"lsn": self._lsn, "txId": 500 + self._transaction, "sequence": sequence}
        server = UUID(int=self._transaction // 1_000_000 + 1)
        gtid = f"{server}:{self._transaction}" if self._gtid else None
        return {"file": f"mysql-bin.{self._file:06}", "pos": self._pos, "gtid": gtid}

    def _keep(self, messages: list[Message]) -> list[Message]:
        self.messages += messages
        return messages

    def _new_row(self, key: int) -> Row:
        """Any values; those of Postgres' own types only where the table has them."""
        some = self._random
        moment = datetime(1970, 1, 1) + timedelta(milliseconds=some.randint(-(10**11), 3 * 10**12))
        micros = self.events.database is Database.POSTGRES
        values = {
            "id": key,
            "name": some.choice(["", "ä", "a'b", "row", None]),
            "due": date(1970, 1, 1) + timedelta(days=some.randint(-30_000, 60_000)),
            "total": Decimal(some.randint(-(10**12) + 1, 10**12 - 1)).scaleb(-2),
            "kind": some.choice(["book", "toy"]),
            "changed": START + timedelta(microseconds=some.randint(0, 10**12)),
            "placed": moment + timedelta(microseconds=some.randint(0, 999) if micros else 0),
            "weight": some.choice([None, Decimal(some.randint(-(10**6), 10**6)).scaleb(-some.randint(0, 6))]),
            "ref": str(UUID(int=some.getrandbits(128))),
            "made": some.randint(1901, 2155),
            "data": f'{{"n": {some.randint(0, 999)}}}',
            "body": some.choice([None, f"text {some.random()}"]),
            "picture": some.choice([None, some.randbytes(6)]),
            "tags": some.choice([None, [], ["a", None, "c"], [f"{some.random()}"]]),
            "marks": some.choice([None, [], [some.randint(-9, 9), None]]),
            "attributes": some.choice([None, {"colour": "red", "size": None}]),
        }
        return {c.column: values[c.column] for c in self.events.columns}
