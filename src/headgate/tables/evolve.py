"""The schemas that a table's records are written with, and the columns that hold them all."""

import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from pyspark.sql import types as t

from headgate.decode.connect import is_envelope
from headgate.decode.debezium import ChangeReader, envelope_columns, is_control
from headgate.decode.json_plain import JsonReader, parse_columns
from headgate.decode.project import case_conflict, fits, paths, renamed, widened
from headgate.decode.reader import Reader
from headgate.errors import BadRecords, NotFound, SchemaConflict, TableStopped, UnsupportedSchema
from headgate.model import Envelope, RecordFormat, RecordTypes, TableMode, TableSpec, Tombstones
from headgate.tables.frames import Frame, prefix_frame
from headgate.tables.identity import Identity, check_key
from headgate.tables.lake import Lake
from headgate.tables.readers import (
    OneOf,
    Schema,
    connect_schema,
    frame_of,
    message_marks,
    plain_reader,
    registered_reader,
)
from headgate.tables.records import (
    CHANGE_COLUMNS,
    VERSION_COLUMNS,
    Entry,
    Part,
    RecordPlan,
    metadata_columns,
)
from headgate.tables.renames import Rename, names_for, renames_of

_log = logging.getLogger(__name__)

RENAMES_KEY = "headgate.renames"
NUMBERS_KEY = "headgate.field-numbers"
RECORD_NAME_KEY = "headgate.record-name"
CONNECT_SCHEMA_KEY = "headgate.connect-schema"
KEY_KEY = "headgate.key"


class Schemas(Protocol):
    """Where schemas come from. All raise RegistryUnavailable when it does not answer: a pause, no more."""

    def schema(self, schema_id: int) -> Schema: ...
    def schema_by_guid(self, guid: str) -> Schema: ...
    def latest(self, subject: str) -> Schema | None: ...


@dataclass(frozen=True)
class Message:
    """A record looked at before there is a table."""

    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]] = ()


@dataclass
class _Known:
    """One schema in play."""

    reader: Reader
    schema_id: int


@dataclass
class _InPlay:
    """What is known of a part, keys or values."""

    name: str
    format: RecordFormat
    framed: dict[Frame, _Known] = field(default_factory=dict)
    plain: Reader | None = None

    @property
    def readers(self) -> list[Reader]:
        return [self.plain] if self.plain is not None else [known.reader for known in self.framed.values()]


class SchemasInPlay:
    """The schemas met in the records of one topic. One that no record uses changes nothing."""

    def __init__(
        self, spec: TableSpec, schemas: Schemas, lake: Lake, warn: Callable[[str], None] = _log.warning
    ) -> None:
        """`warn` hears of a change that some readers do not follow, before it is made."""
        self._spec = spec
        self._warn = warn
        self._schemas = schemas
        self._lake = lake
        self._value = _InPlay("value", spec.value_format)
        self._connect_schema: str | None = None
        self._first_record_name: str | None = None
        self.first_key: tuple[str, ...] = ()
        self._key = None if spec.key_format is RecordFormat.NONE else _InPlay("key", spec.key_format)
        for part, columns in ((self._value, spec.value_columns), (self._key, spec.key_columns)):
            if part is not None and part.format not in (RecordFormat.AUTO, RecordFormat.CONNECT_JSON):
                part.plain = self._plain(part, columns)

    @property
    def ids(self) -> list[int]:
        return sorted({known.schema_id for known in self._value.framed.values()})

    @property
    def _parts(self) -> list[_InPlay]:
        return [self._value] + ([self._key] if self._key is not None else [])

    # -- a new table

    def first_columns(self, peek: Callable[[], Iterable[Message]]) -> t.StructType | None:
        """What a new table has for columns; None while nothing tells the schema of its values."""
        messages: list[Message] | None = None
        found: dict[str, t.StructType] = {}
        extra_columns: list[t.StructField] = list(VERSION_COLUMNS.fields) if self._has_versions else []
        for part in self._parts:
            reader = part.plain or self._latest(part)
            if reader is None:
                messages = list(peek()) if messages is None else messages
                reader = self._of_first(part, messages)
            if reader is not None:
                if self._spec.is_upsert and is_control(reader.type, reader.record_name):
                    raise TableStopped(
                        f"Topic '{self._spec.topic}' holds Debezium's own records, {reader.record_name}, "
                        "and no rows.",
                        "Disable the table, or leave the topic out: `exclude: true` in the configuration.",
                    )
                found[part.name] = reader.type
                events = part is self._value and isinstance(reader, ChangeReader)
                extra_columns = [*extra_columns, *(CHANGE_COLUMNS.fields if events else ())]
                if part is self._value and self._spec.record_types is RecordTypes.SINGLE:
                    self._first_record_name = reader.record_name
        if "value" not in found or (self._spec.is_upsert and self._key is not None and "key" not in found):
            return None
        if self._spec.is_upsert:
            self.first_key = self._settle_key(found)
        self._check_metadata(found["value"])
        value_names = {name.lower() for name in found["value"].names}
        key = found.get("key", t.StructType())
        extra = [column for column in key.fields if column.name.lower() not in value_names]
        metadata = metadata_columns(self._spec.metadata_kept).fields
        return t.StructType([*found["value"].fields, *extra, *metadata, *extra_columns])

    def _settle_key(self, found: Mapping[str, t.StructType]) -> tuple[str, ...]:
        """What tells the rows of a new upsert table apart."""
        topic = self._spec.topic
        if self._spec.key is None:
            check_key(topic, found["key"])
            return tuple(found["key"].names)
        columns = {column.name: column for part in ("key", "value") for column in found.get(part, ())}
        lacking = [name for name in self._spec.key if name not in columns]
        if lacking:
            raise TableStopped(
                f"Table '{topic}' cannot have the key {', '.join(self._spec.key)}: "
                f"there is no column {', '.join(lacking)}.",
                f"Its columns are {', '.join(columns)}.",
            )
        check_key(topic, t.StructType([columns[name] for name in self._spec.key]))
        return self._spec.key

    def first_properties(self) -> dict[str, str]:
        """What else is to be known of a new table."""
        known = {
            CONNECT_SCHEMA_KEY: self._connect_schema,
            RECORD_NAME_KEY: self._first_record_name,
            KEY_KEY: json.dumps(self.first_key) if self.first_key else None,
        }
        return {key: value for key, value in known.items() if value is not None}

    def _latest(self, part: _InPlay) -> Reader | None:
        if part.format is not RecordFormat.AUTO:
            return None
        latest = self._schemas.latest(f"{self._spec.topic}-{part.name}")
        return None if latest is None else self._reader(latest, None, part)

    def _of_first(self, part: _InPlay, messages: Iterable[Message]) -> Reader | None:
        """The reader of the first message that tells: subjects need not be named after the topic."""
        for message in messages:
            data = message.value if part.name == "value" else message.key
            if data is None:
                continue
            if part.format is RecordFormat.CONNECT_JSON:
                self._connect_schema = connect_schema(data)
                if self._connect_schema is not None:
                    part.plain = self._plain(part, self._connect_schema)
                    return part.plain
                continue
            frame = frame_of(data, message.headers, part.name)
            schema = None if frame is None else self._schema_of(frame)
            if schema is not None and frame is not None:
                rest = frame.rest if frame.in_header else data[len(frame.mark) :]
                return self._reader(schema, rest, part)
        return None

    def _reader(self, schema: Schema, indexes: bytes | None, part: _InPlay) -> Reader:
        reader = registered_reader(schema, indexes, part.name)
        several = part.name == "value" and self._spec.record_types is RecordTypes.UNION
        return OneOf(reader) if several else self._opened(reader, part)

    def _plain(self, part: _InPlay, columns: str | None) -> Reader:
        bare = part.name == "value" and part.format is RecordFormat.JSON and columns is not None
        if bare and self._spec.is_upsert and self._spec.envelope is Envelope.DEBEZIUM:
            return ChangeReader(JsonReader(envelope_columns(parse_columns(columns or ""))))
        return self._opened(plain_reader(part.format, columns, part.name), part)

    def _opened(self, reader: Reader, part: _InPlay) -> Reader:
        """Rows out of their envelopes, where the table is one of rows."""
        if part.name != "value" or not self._spec.is_upsert or self._spec.envelope is Envelope.NONE:
            return reader
        if self._spec.envelope is Envelope.DEBEZIUM or is_envelope(reader.type):
            return ChangeReader(reader)
        return reader

    # -- a batch

    def evolve(self, table: Any) -> RecordPlan:
        """How to read, after the table's columns were brought to hold every schema in play."""
        columns = self._lake.columns(table)
        properties = table.properties()
        if self._value.format is RecordFormat.CONNECT_JSON:
            schema = properties.get(CONNECT_SCHEMA_KEY)
            self._value.plain = self._plain(self._value, schema)
        for part in self._parts:
            if part.format is RecordFormat.AUTO and not part.framed:
                self._guess(part, columns)
        self._check_record_names(table)
        columns, renames = self._rename(table, columns)
        columns = self.add_metadata(table, columns)
        plans: dict[str, Part] = {}
        taken: set[str] = set()
        for part in self._parts:
            entries = {
                frame: Entry(known.reader, known.schema_id, names_for(known.reader, known.schema_id, renames))
                for frame, known in part.framed.items()
            }
            plain = (
                None if part.plain is None else Entry(part.plain, None, names_for(part.plain, None, renames))
            )
            for entry in [plain] if plain is not None else entries.values():
                found = renamed(entry.reader.type, entry.names)
                assert isinstance(found, t.StructType)
                if part.name == "key":
                    found = t.StructType([c for c in found.fields if c.name.lower() not in taken])
                else:
                    self._check_metadata(found)
                    taken |= {name.lower() for name in found.names}
                columns = self._widen(table, columns, found)
            plans[part.name] = Part(part.name, entries, plain)
        if self._spec.is_upsert:
            # A delete comes as an event; the tombstone behind it is for Kafka's own compaction.
            skip = plans["value"].has_changes
        else:
            envelopes = any(is_envelope(reader.type) for reader in self._value.readers)
            skip = self._spec.tombstones is Tombstones.SKIP or envelopes
        identity = self._identity(properties) if self._spec.is_upsert else None
        metadata = self._spec.metadata_kept
        return RecordPlan(columns, plans["value"], plans.get("key"), metadata, skip, identity=identity)

    def identity(self, table: Any) -> Identity:
        return self._identity(table.properties())

    @property
    def has_changes(self) -> bool:
        return any(isinstance(reader, ChangeReader) for reader in self._value.readers)

    def _identity(self, properties: Any) -> Identity:
        """The key that the table was made with; records that have another are not of this table."""
        columns = tuple(json.loads(properties.get(KEY_KEY) or "[]"))
        if self._spec.key is not None and self._spec.key != columns:
            raise TableStopped(
                f"Table '{self._spec.topic}' has the key {', '.join(columns)}, which cannot be changed.",
                "Disable it with --purge and enable it again.",
            )
        from_key = self._spec.key is None
        if self._key is not None and from_key:
            for reader in self._key.readers:
                if set(reader.type.names) != set(columns):
                    raise SchemaConflict(
                        f"The key of topic '{self._spec.topic}' has the fields "
                        f"{', '.join(reader.type.names)}, its table the key {', '.join(columns)}.",
                        "Another key makes other rows: disable the table with --purge and enable it again.",
                    )
        values = {name for reader in self._value.readers for name in reader.type.names}
        overlaps = from_key and bool(values & set(columns))
        return Identity(columns, from_key, overlaps, self._has_versions)

    @property
    def _has_versions(self) -> bool:
        return self._spec.mode is TableMode.SCD2

    def add_metadata(self, table: Any, columns: t.StructType) -> t.StructType:
        """Metadata columns that are wanted since the table was made."""
        extra = metadata_columns(self._spec.metadata_kept)
        if self.has_changes:
            extra = t.StructType([*extra.fields, *CHANGE_COLUMNS.fields])
        return columns if fits(extra, columns) else self._lake.add_columns(table, extra)

    def learn(
        self, part: str, unknown: Iterable[Frame], present: Callable[[str, Sequence[bytes]], list[bytes]]
    ) -> set[Frame]:
        """Frames met for the first time join those in play; those returned are not in the registry.

        `present` says which of several marks values of this batch begin with: a Protobuf schema holds several
        message types, told apart by what follows its id.
        """
        missing: set[Frame] = set()
        known = self._value if part == "value" else self._key
        assert known is not None
        for frame in sorted(unknown):
            schema = self._schema_of(frame)
            if schema is None:
                missing.add(frame)
                continue
            if schema.type != "PROTOBUF" or frame.in_header:
                known.framed[frame] = _Known(self._reader(schema, frame.rest, known), schema.id)
                continue
            marks = [frame.mark + index for index in message_marks(schema)]
            found = present(part, marks)
            if not found:
                missing.add(frame)
            for mark in found:
                reader = self._reader(schema, mark[len(frame.mark) :], known)
                known.framed[Frame(False, mark)] = _Known(reader, schema.id)
        return missing

    def _schema_of(self, frame: Frame) -> Schema | None:
        try:
            if frame.schema_id is not None:
                return self._schemas.schema(frame.schema_id)
            return None if frame.guid is None else self._schemas.schema_by_guid(frame.guid)
        except NotFound:
            return None

    def _guess(self, part: _InPlay, columns: t.StructType) -> None:
        """The newest schema is likely the one in use: try it first, if the table holds it as it is.

        Only then: a schema that was registered and never used must not change a table, nor stop it.
        """
        latest = self._schemas.latest(f"{self._spec.topic}-{part.name}")
        if latest is None:
            return
        try:
            reader = self._reader(latest, None, part)
        except UnsupportedSchema:
            return
        if fits(reader.type, columns):
            index = b"\x00" if latest.type == "PROTOBUF" else b""
            part.framed[prefix_frame(latest.id, index)] = _Known(reader, latest.id)

    # -- columns

    def _widen(self, table: Any, columns: t.StructType, found: t.StructType) -> t.StructType:
        clash = case_conflict(found, columns)
        if clash is not None:
            raise SchemaConflict(
                f"Field '{clash}' of topic '{self._spec.topic}' differs only by case from a column.",
                "Name it as the table does, or disable the table with --purge and enable it again.",
            )
        if fits(found, columns):
            return columns
        wider = ", ".join(widened(found, columns))
        if wider and self._spec.has_delta and not self._spec.avoids_widening:
            # Before it is so: from then on they refuse the table.
            self._warn(
                f"types become wider ({wider}): delta-rs and Polars do not read the table's Delta side from "
                "now on. With --readers delta-rs its files are rewritten instead."
            )
        return self._lake.add_columns(table, found)

    def _check_metadata(self, found: t.StructType) -> None:
        own = {m.column for m in self._spec.metadata_kept}
        own |= set(VERSION_COLUMNS.names) if self._has_versions else set()
        clash = next((name for name in found.names if name.lower() in own), None)
        if clash is not None:
            raise SchemaConflict(
                f"Field '{clash}' of topic '{self._spec.topic}' has the name of a metadata column.",
                f"Choose other metadata columns: `headgate table alter {self._spec.topic} --metadata …`.",
            )

    def _check_record_names(self, table: Any) -> None:
        """Records of another type must not be poured into the columns of this one."""
        if self._spec.record_types is not RecordTypes.SINGLE:
            return
        first = table.properties().get(RECORD_NAME_KEY)
        for reader in self._value.readers:
            if reader.record_name is None:
                continue
            if first is None:
                first = reader.record_name
                self._lake.set_property(table, RECORD_NAME_KEY, first)
            if reader.record_name != first:
                raise SchemaConflict(
                    f"Topic '{self._spec.topic}' has records of type {reader.record_name}, "
                    f"its table is of type {first}.",
                    "To have each type as a struct column of one table, disable it with --purge and enable "
                    "it with --record-types union.",
                )

    def _rename(self, table: Any, columns: t.StructType) -> tuple[t.StructType, Sequence[Rename]]:
        """Columns whose field has another name now keep their id."""
        properties = table.properties()
        stored = [Rename(**one) for one in json.loads(properties.get(RENAMES_KEY) or "[]")]
        numbers: dict[str, int] = json.loads(properties.get(NUMBERS_KEY) or "{}")
        renames, seen = list(stored), dict(numbers)
        for old, new in self._spec.renames.items():
            wish = Rename(old, new, None)
            if wish not in renames:
                columns = self._rename_column(table, columns, wish, must=True)
                renames.append(wish)
        ordered = sorted(self._value.framed.values(), key=lambda known: known.schema_id)
        for known in ordered:
            for rename in renames_of(known.reader, known.schema_id, seen):
                if rename not in renames:
                    columns = self._rename_column(table, columns, rename, must=False)
                    renames.append(rename)
            seen |= known.reader.field_numbers
        changed = {}
        if renames != stored:
            changed[RENAMES_KEY] = json.dumps([vars(one) for one in renames])
        if seen != numbers:
            changed[NUMBERS_KEY] = json.dumps(seen)
        for key, text in changed.items():
            self._lake.set_property(table, key, text)
        return columns, renames

    def _rename_column(self, table: Any, columns: t.StructType, rename: Rename, must: bool) -> t.StructType:
        present = set(paths(columns))
        old, new = rename.path, rename.new_path
        if old not in present:
            return columns
        if new in present:
            if not must:
                return columns
            raise TableStopped(
                f"Column '{old}' of table '{self._spec.topic}' cannot become '{new}': both exist.",
                "Rename it before records with the new name come, or take the instruction back.",
            )
        return self._lake.rename_column(table, old, rename.to)


def stopped(topic: str, partition: int, offset: int, problem: str) -> BadRecords:
    return BadRecords(
        f"The record of topic '{topic}' at partition {partition}, offset {offset} {problem}.",
        "Nothing of its batch was written. Register what is missing, then `headgate table resume`; or let "
        f"bad records go to the dead letters: `headgate table alter {topic} --on-error log`.",
    )
