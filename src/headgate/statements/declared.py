"""Tables and views as statements see them: what topics and schemas tell, and what SQL declared."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from pyspark.sql import types as t

from headgate.errors import InvalidRequest
from headgate.sql.durations import parse_duration_ms
from headgate.sql.render import create_view_text
from headgate.sql.script import parse_statement
from headgate.sql.statements import CreateTable, CreateView
from headgate.sql.tables import Catalog, Changelog, TableInfo, Watermark
from headgate.statements.tables import TopicTables
from headgate.store import SqlObjects

TABLE, VIEW = "table", "view"
# What is kept of the keys of records; statements that were made before know nothing of it.
RECORD_KEYS = "record_keys"
KEY_FIELDS = "key.fields"


@dataclass(frozen=True)
class Declared:
    """What a table was declared to be. `columns` is None for one that was only altered."""

    columns: t.StructType | None = None
    primary_key: tuple[str, ...] | None = None
    changelog: str | None = None
    watermark: Watermark | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    distributed: tuple[str, ...] = ()
    buckets: int | None = None

    def to_dict(self) -> dict[str, Any]:
        mark = self.watermark
        return {
            "columns": None if self.columns is None else self.columns.jsonValue(),
            "primary_key": None if self.primary_key is None else list(self.primary_key),
            "changelog": self.changelog,
            "watermark": None if mark is None else {"column": mark.column, "delay_ms": mark.delay_ms},
            "options": dict(self.options),
            "distributed": list(self.distributed),
            "buckets": self.buckets,
        }

    @classmethod
    def from_dict(cls, said: Mapping[str, Any]) -> Self:
        mark, key, columns = said["watermark"], said["primary_key"], said["columns"]
        return cls(
            None if columns is None else t.StructType.fromJson(columns),
            None if key is None else tuple(key),
            said["changelog"],
            None if mark is None else Watermark(mark["column"], mark["delay_ms"]),
            dict(said["options"]),
            tuple(said["distributed"]),
            said["buckets"],
        )


class DeclaredTables:
    """The planner's tables. A name is a table or a view, or neither."""

    def __init__(self, objects: SqlObjects, topics: TopicTables) -> None:
        self._objects = objects
        self._topics = topics

    def get(self, name: str) -> TableInfo | None:
        found = self._topics.get(name)
        declared = self.declared(name)
        if found is None:
            return None
        changelog = declared.changelog or found.changelog
        return TableInfo(
            name,
            found.columns if declared.columns is None else declared.columns,
            found.primary_key if declared.primary_key is None else declared.primary_key,
            MODES[changelog],
            declared.watermark,
        )

    def view(self, name: str) -> CreateView | None:
        found = self._objects.get(name)
        if found is None or found[0] != VIEW:
            return None
        return _view(name, found[1]["text"])

    def names(self) -> list[str]:
        return sorted({*self._topics.names(), *self._objects.names(VIEW)})

    def views(self) -> list[str]:
        return self._objects.names(VIEW)

    def record_key(self, name: str) -> tuple[str, ...]:
        """As it was said; else as the schema of the topic's keys, or the newest of its records, tell."""
        said = self.declared(name).options.get(KEY_FIELDS)
        if said is not None:
            return key_fields(said)
        table = self.get(name)
        return () if table is None else self._topics.record_key(name, table.columns.names)

    def declared(self, name: str) -> Declared:
        """What was said of a table; nothing, for a topic that nobody declared."""
        found = self._objects.get(name)
        return Declared() if found is None or found[0] != TABLE else Declared.from_dict(found[1])

    def check_mode(self, before: TableInfo, after: TableInfo) -> None:
        """Refuses another way to read a topic where it would give rows that are none."""
        if before.changelog == after.changelog:
            return
        found = self._topics.get(after.name)
        if found is not None and found.events:
            raise InvalidRequest(
                f"Table '{after.name}' cannot be '{after.changelog}': its records are change events, each of "
                "which is about the row of its key.",
                "It stays 'upsert'.",
            )
        self._objects.check_mode(after.name)

    def declare(self, name: str, declared: Declared, other_mode: bool = False) -> None:
        """`other_mode`: its records are read in another way from now on."""
        self._objects.put(name, TABLE, declared.to_dict(), other_mode)

    def declare_view(self, name: str, text: str) -> None:
        self._objects.put(name, VIEW, {"text": text})

    def forget(self, name: str) -> None:
        self._objects.remove(name)


class Pinned(Catalog):
    """Tables and views as they were when a statement was made. A restart finds the same plan, whatever was
    altered since: its state is that plan's."""

    def to_dict(self) -> dict[str, Any]:
        return {
            "tables": {name: _of(table).to_dict() for name, table in self.tables.items()},
            "views": {name: create_view_text(view) for name, view in self.views.items()},
            RECORD_KEYS: {name: list(columns) for name, columns in self.record_keys.items()},
        }

    @classmethod
    def from_dict(cls, said: Mapping[str, Any]) -> Self:
        return cls(
            {name: _table(name, Declared.from_dict(one)) for name, one in said["tables"].items()},
            {name: _view(name, text) for name, text in said["views"].items()},
            {name: tuple(columns) for name, columns in said.get(RECORD_KEYS, {}).items()},
        )


class Pinning:
    """Tables that remember what was asked of them."""

    def __init__(self, tables: DeclaredTables) -> None:
        self._tables = tables
        self.seen = Pinned()

    def get(self, name: str) -> TableInfo | None:
        found = self._tables.get(name)
        if found is not None:
            self.seen.tables[name] = found
        return found

    def view(self, name: str) -> CreateView | None:
        found = self._tables.view(name)
        if found is not None:
            self.seen.views[name] = found
        return found

    def names(self) -> list[str]:
        return self._tables.names()

    def record_key(self, name: str) -> tuple[str, ...]:
        if name not in self.seen.record_keys:
            self.seen.record_keys[name] = self._tables.record_key(name)
        return self.seen.record_keys[name]


def _of(table: TableInfo) -> Declared:
    return Declared(table.columns, table.primary_key, table.changelog, table.watermark)


def _table(name: str, said: Declared) -> TableInfo:
    if said.columns is None or said.primary_key is None:
        raise AssertionError(f"table '{name}' was pinned without its columns")
    return TableInfo(name, said.columns, said.primary_key, MODES[said.changelog or "append"], said.watermark)


def _view(name: str, text: str) -> CreateView:
    made = parse_statement(text)
    if not isinstance(made, CreateView):
        raise AssertionError(f"'{name}' is kept as a view and is none")
    return made


def declared_by(create: CreateTable, table: TableInfo) -> Declared:
    distribution = create.distribution
    return Declared(
        table.columns,
        table.primary_key,
        table.changelog,
        table.watermark,
        dict(create.options),
        () if distribution is None else distribution.columns,
        None if distribution is None else distribution.buckets,
    )


FORMATS = {"avro-registry": "avro", "json-registry": "json", "avro": "avro", "json": "json"}
OPTIONS = (
    "changelog.mode",
    "kafka.cleanup-policy",
    "kafka.retention.time",
    "value.format",
    "key.format",
    KEY_FIELDS,
    "scan.startup.mode",
)
STARTS = {"earliest-offset": "earliest", "latest-offset": "latest"}
MODES: Mapping[str, Changelog] = {"append": "append", "upsert": "upsert", "retract": "retract"}
POLICIES = {"delete": "delete", "compact": "compact", "delete-compact": "compact,delete"}


def key_fields(said: str) -> tuple[str, ...]:
    """The columns that 'key.fields' names, with `;` between them."""
    return tuple(column.strip() for column in said.split(";") if column.strip())


def check_options(name: str, options: Mapping[str, str]) -> None:
    """Refuses options that nobody would heed."""
    for key, value in options.items():
        known: Mapping[str, str] | None = {
            "value.format": FORMATS,
            "key.format": FORMATS,
            "scan.startup.mode": STARTS,
            "kafka.cleanup-policy": POLICIES,
            "changelog.mode": MODES,
        }.get(key)
        if key not in OPTIONS:
            raise InvalidRequest(f"Table '{name}' has no option '{key}'.", f"There are {', '.join(OPTIONS)}.")
        if key == "kafka.retention.time":
            parse_duration_ms(value)
        if known is not None and value not in known:
            raise InvalidRequest(
                f"Option '{key}' of table '{name}' cannot be '{value}'.", f"It can be {', '.join(known)}."
            )
