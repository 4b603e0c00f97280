"""Kafka's rows become the table's rows, as Spark expressions: which reader, which columns, what is wrong."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from headgate.decode.debezium import ChangeReader
from headgate.decode.project import misfit, project, same_type
from headgate.decode.reader import Reader
from headgate.model import Metadata
from headgate.tables.frames import PREFIX_LENGTH, Frame, header_name
from headgate.tables.identity import KEY_COLUMN, Identity, is_blank, key_id

# Why a record is not in the table.
NULL_VALUE = "NullValue"
NULL_KEY = "NullKey"
NO_SCHEMA_ID = "NoSchemaId"
UNKNOWN_SCHEMA = "UnknownSchema"
UNDECODABLE = "Undecodable"
TOO_WIDE = "TooWide"  # a value that its column cannot hold, where columns stay as they are
SKIPPED = "Skipped"  # left out by its owner's word; not a bad record
# What a task says when it meets a bad record, and where that is; looked for in the failure of its job.
BAD_RECORD = "headgate: a record does not decode"
BAD_RECORD_PLACE = re.compile(rf"{BAD_RECORD} at (\d+):(\d+) of ([A-Za-z0-9._-]+)")

# What a record does to the row that it is about, beside the table's own columns.
CHANGE = "_headgate_change"
# Where a change came from, in tables of change events: which stream of positions, and where in it.
SOURCE_COLUMN, POSITION_COLUMN = "_change_source", "_change_position"
CHANGE_COLUMNS = t.StructType(
    [t.StructField(SOURCE_COLUMN, t.StringType()), t.StructField(POSITION_COLUMN, t.BinaryType())]
)
# From when to when a version of a row held; the present one has no end.
VALID_FROM, VALID_TO = "valid_from", "valid_to"
VERSION_COLUMNS = t.StructType(
    [t.StructField(VALID_FROM, t.TimestampType()), t.StructField(VALID_TO, t.TimestampType())]
)
# The generation of a row's record, in tables that have had more than one.
GENERATION_COLUMN = "_headgate_generation"
_WRITERS = {
    KEY_COLUMN: t.BinaryType(),
    GENERATION_COLUMN: t.LongType(),
    VALID_FROM: t.TimestampType(),
    VALID_TO: t.TimestampType(),
}
UPSERT, DELETE, TRUNCATE, IGNORE = "upsert", "delete", "truncate", "ignore"
_EVENT = (
    "struct<op: string, source: string, position: binary, at: timestamp, missing: array<string>, "
    "snapshot: boolean>"
)

TIMESTAMP_TYPES = {0: "create-time", 1: "log-append-time"}
METADATA_TYPES: Mapping[Metadata, t.DataType] = {
    Metadata.TOPIC: t.StringType(),
    Metadata.PARTITION: t.IntegerType(),
    Metadata.OFFSET: t.LongType(),
    Metadata.TIMESTAMP: t.TimestampType(),
    Metadata.TIMESTAMP_TYPE: t.StringType(),
    Metadata.KEY: t.BinaryType(),
    Metadata.HEADERS: t.ArrayType(
        t.StructType([t.StructField("key", t.StringType()), t.StructField("value", t.BinaryType())])
    ),
    Metadata.LEADER_EPOCH: t.IntegerType(),
    Metadata.SCHEMA_ID: t.IntegerType(),
}
# What a source of records has, Kafka or the dead letters.
SOURCE = ("topic", "partition", "offset", "timestamp", "timestampType", "key", "value", "headers")


def bad_record() -> Column:
    """Ends the job, and says where the record is."""
    place = f.concat("partition", f.lit(":"), "offset", f.lit(" of "), "topic")
    return f.raise_error(f.concat(f.lit(f"{BAD_RECORD} at "), place))


def all_headers() -> Column:
    """A record without headers has an empty list of them; Spark says NULL."""
    none = f.array().cast(METADATA_TYPES[Metadata.HEADERS])
    return f.coalesce(f.col("headers"), none).alias("headers")


def metadata_columns(wanted: Sequence[Metadata]) -> t.StructType:
    return t.StructType([t.StructField(m.column, METADATA_TYPES[m]) for m in wanted])


@dataclass(frozen=True)
class Entry:
    """A reader with what it reads for this table."""

    reader: Reader
    schema_id: int | None = None
    #: Where a field's column has another name: written path to column's name.
    names: Mapping[str, str] = field(default_factory=dict)
    #: Columns that stay as they are where a field is wider: values are cast, one that does not fit is bad.
    columns: t.StructType | None = None


@dataclass(frozen=True)
class Part:
    """How keys or values are read: by the schema that each names, or all alike."""

    name: str
    framed: Mapping[Frame, Entry] = field(default_factory=dict)
    plain: Entry | None = None

    def stage(self) -> list[Column]:
        """The costly part of every reader, once, in columns of their own."""
        return [
            entry.reader.raw(f.when(mine, body)).alias(self._raw(number))
            for number, (mine, body, entry) in enumerate(self._cases())
        ]

    def opened(self) -> list[Column]:
        """Rows out of their envelopes, in columns of their own: fields are taken from them one by one."""
        return [
            entry.reader.value(f.col(self._raw(number))).alias(self._opened(number))
            for number, (_, _, entry) in enumerate(self._cases())
            if isinstance(entry.reader, ChangeReader)
        ]

    def framing(self, headers: bool) -> list[Column]:
        """What a record says of its schema: the first bytes, and the header."""
        if self.plain is not None:
            return []
        if not headers:
            none = f.lit(None).cast("binary").alias(f"{self.name}_header")
            return [f.substring(self.name, 1, PREFIX_LENGTH).alias(f"{self.name}_prefix"), none]
        header = header_name(self.name)
        found = f.filter("headers", lambda h: h["key"] == f.lit(header))
        return [
            f.substring(self.name, 1, PREFIX_LENGTH).alias(f"{self.name}_prefix"),
            # Most records have no headers: for them this is one look at a null.
            f.when(f.col("headers").isNotNull(), f.try_element_at(found, f.lit(-1))["value"]).alias(
                f"{self.name}_header"
            ),
        ]

    def record(self, wanted: t.StructType) -> Column:
        """A struct of `wanted`; NULL where the bytes are not read exactly."""
        record = f.lit(None).cast(wanted)
        for number, (mine, body, entry) in enumerate(self._cases()):
            reader = entry.reader
            # Fields are copied one by one only where the record differs from the table.
            fits_as_is = same_type(reader.type, wanted) and not entry.names
            value = self._value(number, entry)
            narrow = entry.columns is not None
            columns = [] if fits_as_is else project(value, reader.type, wanted, entry.names, narrow=narrow)
            good = mine & self._is_good(number, body, entry)
            record = f.when(good, value if fits_as_is else f.struct(*columns)).otherwise(record)
        return record

    def identity(self, columns: Sequence[str]) -> Column:
        """The id that these columns make, as the bytes tell it; NULL where they are not read exactly, or
        where nothing is said."""
        found = f.lit(None).cast("binary")
        for number, (mine, body, entry) in enumerate(self._cases()):
            reader, value = entry.reader, self._value(number, entry)
            by_name = {entry.names.get(c.name, c.name): c for c in reader.type.fields}
            if any(name not in by_name for name in columns):
                continue
            told = [(value[by_name[name].name], by_name[name].dataType) for name in columns]
            sound = mine & self._is_good(number, body, entry) & ~is_blank(told)
            found = f.when(sound, key_id(told)).otherwise(found)
        return found

    @property
    def has_changes(self) -> bool:
        """Whether some of the messages are changes of rows, not rows."""
        entries = [self.plain] if self.plain is not None else list(self.framed.values())
        return any(isinstance(entry.reader, ChangeReader) for entry in entries)

    def event(self) -> Column:
        """What a change event says beside its row; NULL for other messages."""
        found = f.lit(None).cast(_EVENT)
        for number, (mine, body, entry) in enumerate(self._cases()):
            reader = entry.reader
            if isinstance(reader, ChangeReader):
                raw = f.col(self._raw(number))
                said = reader.change(raw).cast(_EVENT)
                found = f.when(mine & reader.is_exact(raw, body), said).otherwise(found)
        return found

    def problem(self) -> Column:
        """For rows whose `record` is NULL: class, part, and a message that completes 'the record …'."""
        bytes_ = f.col(self.name)
        absent = _problem(NULL_KEY if self.name == "key" else NULL_VALUE, f"has no {self.name}", self.name)
        if self.plain is not None:
            said = self._undecodable(0, self.plain)
            return f.when(bytes_.isNull(), absent).otherwise(said)
        header = f.col(f"{self.name}_header")
        unframed = header.isNull() & (
            (f.length(bytes_) < PREFIX_LENGTH) | (f.substring(bytes_, 1, 1) != f.lit(b"\x00"))
        )
        unknown = f"names a schema for its {self.name} that the registry does not have"
        found = _problem(UNKNOWN_SCHEMA, unknown, self.name)
        for number, (mine, _, entry) in enumerate(self._cases()):
            said = self._undecodable(number, entry)
            found = f.when(mine, said).otherwise(found)
        nameless = _problem(
            NO_SCHEMA_ID, f"has a {self.name} that does not begin with a schema id", self.name
        )
        found = f.when(unframed, nameless).otherwise(found)
        return f.when(bytes_.isNull(), absent).otherwise(found)

    def schema_id(self) -> Column:
        """As the registry numbers it, for schemas in play; else the number in the prefix, if there is one."""
        if self.plain is not None:
            return f.lit(None).cast("int")
        prefix, header = f.col(f"{self.name}_prefix"), f.col(f"{self.name}_header")
        framed = (f.length(prefix) == PREFIX_LENGTH) & (f.substring(prefix, 1, 1) == f.lit(b"\x00"))
        number = f.conv(f.hex(f.substring(prefix, 2, 4)), 16, 10).cast("bigint")
        signed = f.when(number <= 2**31 - 1, number.cast("int"))
        found = f.when(header.isNull() & framed, signed)
        for mine, _, entry in self._cases():
            found = f.when(mine, f.lit(entry.schema_id).cast("int")).otherwise(found)
        return found

    def mark(self) -> Column:
        """The frame of a record as bytes: its header's or its prefix."""
        return f.coalesce(f.col(f"{self.name}_header"), f.col(f"{self.name}_prefix"))

    def _cases(self) -> list[tuple[Column, Column, Entry]]:
        bytes_ = f.col(self.name)
        if self.plain is not None:
            return [(bytes_.isNotNull(), bytes_, self.plain)]
        return [(*self._framed(frame), entry) for frame, entry in self.framed.items()]

    def _framed(self, frame: Frame) -> tuple[Column, Column]:
        bytes_ = f.col(self.name)
        prefix, header = f.col(f"{self.name}_prefix"), f.col(f"{self.name}_header")
        if frame.in_header:
            return bytes_.isNotNull() & (header == f.lit(frame.mark)), bytes_
        length = len(frame.mark)
        mine = header.isNull() & (prefix == f.lit(frame.mark[:PREFIX_LENGTH]))
        if length > PREFIX_LENGTH:
            mine = mine & (f.substring(bytes_, 1, length) == f.lit(frame.mark))
        return mine, f.expr(f"substring({self.name}, {length + 1})")

    def _undecodable(self, number: int, entry: Entry) -> Column:
        _, body, _ = self._cases()[number]
        otherwise = f.lit(f"has a {self.name} that does not fit its schema or format")
        said = entry.reader.problem(f.col(self._raw(number)), body)
        message = otherwise if said is None else f.coalesce(said, otherwise)
        if entry.schema_id is not None:
            message = f.concat(message, f.lit(f" (schema {entry.schema_id})"))
        problem = _problem(UNDECODABLE, message, self.name)
        text = self._misfit(number, entry)
        if text is None:
            return problem
        exact = entry.reader.is_exact(f.col(self._raw(number)), body)
        return f.when(exact & text.isNotNull(), _problem(TOO_WIDE, text, self.name)).otherwise(problem)

    def _is_good(self, number: int, body: Column, entry: Entry) -> Column:
        """Whether the bytes are read exactly, and every value fits its column."""
        exact = entry.reader.is_exact(f.col(self._raw(number)), body)
        text = self._misfit(number, entry)
        return exact if text is None else exact & text.isNull()

    def _misfit(self, number: int, entry: Entry) -> Column | None:
        if entry.columns is None:
            return None
        return misfit(self._value(number, entry), entry.reader.type, entry.columns, entry.names)

    def _value(self, number: int, entry: Entry) -> Column:
        if isinstance(entry.reader, ChangeReader):
            return f.col(self._opened(number))
        return entry.reader.value(f.col(self._raw(number)))

    def _opened(self, number: int) -> str:
        return f"{self.name}_opened_{number}"

    def _raw(self, number: int) -> str:
        return f"{self.name}_raw_{number}"


@dataclass(frozen=True)
class RecordPlan:
    """What a table's rows are made of. The same plan over the same records gives the same rows."""

    columns: t.StructType
    value: Part
    key: Part | None
    metadata: Sequence[Metadata]
    skip_nulls: bool = False
    #: Whether headers are looked at. Without, `rows` takes a record that has any for a bad one: finding one
    #: header among several breaks Spark's generated code apart, and most topics have none.
    headers: bool = True
    #: For the leader epoch: (first offset, epoch) steps of each partition.
    epochs: Mapping[int, Sequence[tuple[int, int]]] = field(default_factory=dict)
    #: What tells rows apart, in upsert tables: there a record without a value deletes.
    identity: Identity | None = None

    def rows(self, source: DataFrame) -> DataFrame:
        """The table's columns; the first bad record ends the job.

        Counting bad records on the way would break Spark's generated code apart, and a filter on the record
        would be pushed down, so that each value is decoded twice.
        """
        return self._sound(source).select(*self._row)

    def changes(self, source: DataFrame) -> DataFrame:
        """The table's columns with what each record does to its row, in the struct `CHANGE`; the first bad
        record ends the job."""
        return self._sound(source).select(*self._changed_row)

    # Building expressions takes longer than planning them: one plan builds them once.

    @cached_property
    def _row(self) -> list[Column]:
        return self._columns()

    @cached_property
    def _changed_row(self) -> list[Column]:
        return [*self._columns(), self._change()]

    def _sound(self, source: DataFrame) -> DataFrame:
        if self.skip_nulls:
            source = source.where(f.col("value").isNotNull())
        return self._staged(source).select(*self._kept)

    @cached_property
    def _kept(self) -> list[Column | str]:
        record = f.col("value_record")
        good = record.isNotNull()
        if self.identity is not None:
            good = (good | f.col("value").isNull()) & self._is_identified()
        if not self.headers and any(part.plain is None for part in (self.value, self.key) if part):
            good = good & f.col("headers").isNull()
        sound = f.when(good, record).otherwise(bad_record())
        kept = [sound.alias("value_record")]
        if self.key is not None:
            bad = f.col("key").isNotNull() & f.col("key_record").isNull()
            kept.append(f.when(~bad, f.col("key_record")).otherwise(bad_record()).alias("key_record"))
        if self.identity is not None:
            kept += [f.col("key_id"), f.col("event")]
        return [*SOURCE, *self._carried(), *kept]

    def judged(self, source: DataFrame) -> DataFrame:
        """All records with `problem` (NULL for good ones), `mark` and `schema_id`, and the
        table's columns in the struct `row`."""
        staged = self._staged(source)
        problem = f.when(f.col("value_record").isNull(), self.value.problem())
        if self.identity is not None:
            # Without a value it deletes.
            problem = f.when(f.col("value").isNotNull(), problem)
        if self.skip_nulls:
            skipped = _problem(SKIPPED, "has no value", "value")
            problem = f.when(f.col("value").isNull(), skipped).otherwise(problem)
        marks = [self._mark(self.value)]
        if self.key is not None:
            bad_key = f.col("key").isNotNull() & f.col("key_record").isNull()
            if self.identity is not None:
                bad_key = f.col("key").isNotNull() & f.col("key_id").isNull() & self._has_row()
            problem = f.coalesce(problem, f.when(bad_key, self.key.problem()))
            marks.append(self._mark(self.key))
        columns = self._columns()
        if self.identity is not None:
            problem = f.coalesce(problem, f.when(~self._is_identified(), self._nobody()))
            columns.append(self._change())
        return staged.select(
            *SOURCE,
            *marks,
            self.value.schema_id().alias("schema_id"),
            problem.alias("problem"),
            f.struct(*columns).alias("row"),
        )

    def _has_row(self) -> Column:
        """Some events are about no row in particular."""
        return ~f.coalesce(f.col("event.op").isin(TRUNCATE, IGNORE), f.lit(False))

    def _is_identified(self) -> Column:
        return self._id().isNotNull() | ~self._has_row()

    def _id(self) -> Column:
        identity = self._who
        if identity.from_key:
            return f.col("key_id")
        told = self._told(identity)
        whole = f.lit(True)
        for column, _ in told:
            whole = whole & column.isNotNull()
        return f.when(f.col("value").isNull(), f.col("key_id")).otherwise(f.when(whole, key_id(told)))

    def _told(self, identity: Identity) -> list[tuple[Column, t.DataType]]:
        """What the row's own columns say."""
        columns = dict(zip(self.columns.names, self._columns(), strict=True))
        return [(columns[name], self.columns[name].dataType) for name in identity.columns]

    def _nobody(self) -> Column:
        names = ", ".join(self._who.columns)
        return f.when(
            f.col("key").isNull() & f.lit(self._who.from_key), _problem(NULL_KEY, "has no key", "key")
        ).otherwise(_problem(NULL_KEY, f"does not say which row it is about: it lacks {names}", "key"))

    def _change(self) -> Column:
        event, identity = f.col("event"), self._who
        plain = f.when(f.col("value").isNull(), f.lit(DELETE)).otherwise(f.lit(UPSERT))
        differs = f.lit(False)
        if identity.overlaps:
            differs = f.col("value").isNotNull() & ~f.col("key_id").eqNullSafe(key_id(self._told(identity)))
        return f.struct(
            self._id().alias("id"),
            f.coalesce(event["op"], plain).alias("op"),
            f.col("partition").alias("partition"),
            f.col("offset").alias("offset"),
            differs.alias("differs"),
            event["source"].alias("source"),
            event["position"].alias("position"),
            f.coalesce(event["at"], f.col("timestamp")).alias("at"),
            event["missing"].alias("missing"),
            event["snapshot"].alias("snapshot"),
        ).alias(CHANGE)

    @property
    def _who(self) -> Identity:
        if self.identity is None:
            raise AssertionError("only upsert tables tell rows apart")
        return self.identity

    def _staged(self, source: DataFrame) -> DataFrame:
        for columns in self._stages:
            source = source.select(*columns)
        return source

    @cached_property
    def _stages(self) -> list[list[Column | str]]:
        """One after the other, each on what the one before gives."""
        parts = [self.value] + ([self.key] if self.key is not None else [])
        framing = [column for part in parts for column in part.framing(self.headers)]
        stages: list[list[Column | str]] = [
            [*SOURCE, *framing],
            ["*", *(column for part in parts for column in part.stage())],
        ]
        if opened := self.value.opened():
            stages.append(["*", *opened])
        records = [part.record(self._columns_of(part)).alias(f"{part.name}_record") for part in parts]
        if self.identity is not None:
            who = f.lit(None).cast("binary") if self.key is None else self.key.identity(self._who.columns)
            records += [who.alias("key_id"), self.value.event().alias("event")]
        return [*stages, ["*", *records]]

    def _carried(self) -> list[Column]:
        """What the metadata columns need beside the source's own."""
        if Metadata.SCHEMA_ID not in self.metadata or self.value.plain is not None:
            return []
        return [f.col("value_prefix"), f.col("value_header")]

    def _mark(self, part: Part) -> Column:
        name = f"{part.name}_mark"
        if part.plain is not None:
            return f.lit(None).cast("struct<in_header: boolean, mark: binary>").alias(name)
        in_header = f.col(f"{part.name}_header").isNotNull()
        return f.struct(in_header.alias("in_header"), part.mark().alias("mark")).alias(name)

    def _columns_of(self, part: Part) -> t.StructType:
        """The table's columns that come from values; from keys, those of theirs that values do not have."""
        own = {m.column for m in self.metadata} | self._keyed
        from_value = self._names(self.value)
        if part.name == "value":
            key_only = self._names(self.key) - from_value if self.key is not None else set()
            kept = [c for c in self.columns.fields if c.name not in own | key_only]
        else:
            kept = [c for c in self.columns.fields if c.name in self._names(part) - from_value - own]
        return t.StructType(kept)

    @staticmethod
    def _names(part: Part) -> set[str]:
        entries = [part.plain] if part.plain is not None else list(part.framed.values())
        return {entry.names.get(column, column) for entry in entries for column in entry.reader.type.names}

    @property
    def _keyed(self) -> set[str]:
        """Columns of tables with keys that come from no record."""
        if self.identity is None:
            return set()
        found = {SOURCE_COLUMN, POSITION_COLUMN, KEY_COLUMN, GENERATION_COLUMN}
        return found | ({VALID_FROM, VALID_TO} if self.identity.versions else set())

    def _columns(self) -> list[Column]:
        own = {m.column: self._metadata(m) for m in self.metadata}
        if self.identity is not None:
            own |= {SOURCE_COLUMN: f.col("event.source"), POSITION_COLUMN: f.col("event.position")}
            # Their writer knows.
            own |= {name: f.lit(None).cast(_WRITERS[name]) for name in self._keyed if name in _WRITERS}
        from_key = set(self._columns_of(self.key).names) if self.key is not None else set()
        return [
            (
                own[name]
                if name in own
                else f.col("key_record" if name in from_key else "value_record")[name]
            ).alias(name)
            for name in self.columns.names
        ]

    def _metadata(self, wanted: Metadata) -> Column:
        match wanted:
            case Metadata.TIMESTAMP_TYPE:
                found = f.lit(None).cast("string")
                for number, name in TIMESTAMP_TYPES.items():
                    found = f.when(f.col("timestampType") == number, f.lit(name)).otherwise(found)
                return found
            case Metadata.SCHEMA_ID:
                return self.value.schema_id()
            case Metadata.LEADER_EPOCH:
                return self._leader_epoch()
            case Metadata.HEADERS:
                return all_headers()
            case _:
                return f.col(wanted.value)

    def _leader_epoch(self) -> Column:
        found = f.lit(None).cast("int")
        for partition, steps in self.epochs.items():
            for first, epoch in steps:
                here = (f.col("partition") == partition) & (f.col("offset") >= first)
                found = f.when(here, f.lit(epoch)).otherwise(found)
        return found


def _problem(kind: str, message: str | Column, part: str) -> Column:
    said = f.lit(message) if isinstance(message, str) else message
    return f.struct(f.lit(kind).alias("class"), said.alias("message"), f.lit(part).alias("part"))
