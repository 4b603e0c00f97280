"""Tables and views as statements see them: what topics and schemas tell, and what SQL declared."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from pyspark.sql import types as t

from headgate.access.topics import TopicRights
from headgate.decode.project import same_type, widens
from headgate.errors import InvalidRequest
from headgate.sql.durations import parse_duration_ms
from headgate.sql.render import create_view_text
from headgate.sql.script import parse_statement
from headgate.sql.statements import CreateTable, CreateView
from headgate.sql.tables import Catalog, Changelog, TableInfo, Watermark
from headgate.sql.types import name_of, quote
from headgate.statements.tables import TopicTable, TopicTables
from headgate.store import SqlObjects

TABLE, VIEW = "table", "view"
MODE = "changelog.mode"
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

    def __init__(self, objects: SqlObjects, topics: TopicTables, rights: TopicRights | None = None) -> None:
        """`rights`: whose tables they are; what those do not see is not there. None is everybody's."""
        self._objects = objects
        self._topics = topics
        self._rights = rights

    def seen_by(self, rights: TopicRights) -> "DeclaredTables":
        return DeclaredTables(self._objects, self._topics, rights)

    def _sees(self, name: str) -> bool:
        return self._rights is None or self._rights.sees(name)

    def get(self, name: str) -> TableInfo | None:
        found = self._topics.get(name) if self._sees(name) else None
        declared = self.declared(name)
        if found is None:
            return None
        changelog = declared.changelog or found.changelog
        columns = _columns(found, declared.options) if declared.columns is None else declared.columns
        return TableInfo(
            name,
            columns,
            found.primary_key if declared.primary_key is None else declared.primary_key,
            MODES[changelog],
            declared.watermark,
        )

    def view(self, name: str) -> CreateView | None:
        found = self._objects.get(name) if self._sees(name) else None
        if found is None or found[0] != VIEW:
            return None
        return _view(name, found[1]["text"])

    def names(self) -> list[str]:
        return [
            name for name in sorted({*self._topics.names(), *self._objects.names(VIEW)}) if self._sees(name)
        ]

    def views(self) -> list[str]:
        return [name for name in self._objects.names(VIEW) if self._sees(name)]

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

    def altered(self, after: TableInfo, options: Mapping[str, str]) -> TableInfo:
        """A table with these options set: change events without a key are other rows then."""
        found = self._topics.get(after.name)
        if found is None or found.primary_key or options.get(MODE) != "append":
            return after
        return after if found.after is None else replace(after, columns=found.after)

    def over_events(self, made: TableInfo, options: Mapping[str, str]) -> TableInfo | None:
        """What CREATE TABLE declares of a topic of change events that nobody has declared yet; None where the
        name is of no such topic."""
        found = self._topics.get(made.name)
        if found is None or found.after is None or self._objects.get(made.name) is not None:
            return None
        changelog = MODES[options.get(MODE, found.changelog)]
        _check_key(made, found, changelog)
        own = found.primary_key if set(found.primary_key) <= set(made.columns.names) else ()
        columns = _declared_columns(made, _columns(found, options))
        after = replace(made, columns=columns, primary_key=own, changelog=changelog)
        self.check_mode(replace(after, changelog=found.changelog), after)
        return after

    def has_events(self, name: str) -> bool:
        """Whether a topic's values are change events, whose schemas are never ours."""
        found = self._topics.get(name)
        return found is not None and found.has_events

    def check_mode(self, before: TableInfo, after: TableInfo) -> None:
        """Refuses another way to read a topic where it would give rows that are none."""
        if before.changelog == after.changelog:
            return
        found = self._topics.get(after.name)
        if found is not None and found.has_events and after.changelog == "retract":
            raise InvalidRequest(
                f"Table '{after.name}' cannot be 'retract': its records are change events, and none has "
                "the header of a retract table's rows.",
                "It can be 'upsert', by its key, or 'append': each after-image is a row.",
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


def _columns(found: TopicTable, options: Mapping[str, str]) -> t.StructType:
    """Events without a key are rows themselves until somebody says that their after-images are."""
    of_after = found.after is not None and not found.primary_key and options.get(MODE) == "append"
    return found.after if of_after and found.after is not None else found.columns


def _declared_columns(made: TableInfo, found: t.StructType) -> t.StructType:
    columns: list[t.StructField] = []
    for column in made.columns.fields:
        own = next((known for known in found.fields if known.name == column.name), None)
        if own is None:
            raise InvalidRequest(
                f"Topic '{made.name}' is there, and its rows have no column '{column.name}'.",
                f"There are {', '.join(found.names)}.",
            )
        if not same_type(own.dataType, column.dataType) and not widens(own.dataType, column.dataType):
            raise InvalidRequest(
                f"Column '{column.name}' of topic '{made.name}' is {name_of(own.dataType)}, and not "
                f"{name_of(column.dataType)}.",
                f"Declare it as {name_of(own.dataType)}.",
            )
        columns.append(t.StructField(column.name, column.dataType, own.nullable))
    return t.StructType(columns)


def _check_key(made: TableInfo, found: TopicTable, changelog: Changelog) -> None:
    """Events are about the rows of their own key: by another one there is a table of its own."""
    own, key = (", ".join(map(quote, names)) for names in (found.primary_key, made.primary_key))
    if made.primary_key and set(made.primary_key) != set(found.primary_key):
        said = f"its events are about rows by ({own})" if own else "the keys of its events have no schema"
        raise InvalidRequest(
            f"Topic '{made.name}' cannot have the PRIMARY KEY ({key}): {said}.",
            "Declare it without one, and make a table by the other key of it: CREATE TABLE … (PRIMARY KEY "
            f"({key}) NOT ENFORCED) AS SELECT … FROM {quote(made.name)}.",
        )
    lacks = [name for name in found.primary_key if name not in made.columns.names]
    if changelog == "upsert" and (lacks or not own):
        raise InvalidRequest(
            f"Table '{made.name}' cannot be 'upsert': "
            + (f"it lacks '{lacks[0]}' of its key." if lacks else "the keys of its events have no schema."),
            "Read its after-images as rows: WITH ('changelog.mode' = 'append').",
        )


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
