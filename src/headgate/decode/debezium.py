"""Change events of Debezium become changes of rows: what happened to which row, and in which order.

An upsert table compares the positions of two changes of one key before it lets the second replace the first.
A wrong position loses a change for good; a missing one costs nothing but that, after a connector's restart, a
row is old for a moment: Kafka's order, which is Debezium's own, is always right in the end. So there is a
position only where the database promises the order:

- Postgres: the change's place in the write-ahead log. Transactions interleave there, but two that change the
  same row do not: the second waits for the first one's lock, and writes after it has ended. The same holds of
  a key that is deleted and inserted again (the unique index waits), and of a truncate (it locks the table).
- MySQL: file and place in the binlog, into which whole transactions are written as they commit. `row` is left
  out: in a compressed transaction all events are at one place, and each counts its rows from 0. Where the
  event has a GTID there is no position: Debezium may have gone on with another server, whose files have other
  numbers, and nothing in the event says so. (The numbers of the GTIDs are no order either: the members of a
  group take theirs from blocks.) MariaDB's GTIDs are one: a server's sequence in a domain only grows.
- SQL Server: the transaction's place in the log, then the change's.
- A row that a snapshot has read has none. What it says is as of its reading, but its event names a place in
  the log before which other transactions, not yet committed and not seen, may have written. They follow in
  Kafka. Debezium has taken care that nothing newer precedes it there, in incremental snapshots too.

A snapshot that is not incremental and comes after stream events may be of a database that was restored: what
the log of before it said is no order of what comes after it. `snapshot` tells them apart.
"""

import base64
import hashlib
import re
import struct
import uuid
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import TypeVar

from pyspark.sql import Column
from pyspark.sql import functions as f
from pyspark.sql import types as t

from headgate.decode.connect import is_envelope
from headgate.decode.project import same_type
from headgate.decode.reader import Reader
from headgate.errors import UnsupportedSchema

V = TypeVar("V")

PLACEHOLDER = "__debezium_unavailable_value"
#: What `ChangeReader.change` gives.
CHANGE = t.StructType(
    [
        t.StructField("op", t.StringType()),
        t.StructField("source", t.StringType()),
        t.StructField("position", t.BinaryType()),
        t.StructField("at", t.TimestampType()),
        t.StructField("missing", t.ArrayType(t.StringType())),
        t.StructField("snapshot", t.BooleanType()),
    ]
)

#: Beside the columns of an after-image: whether the event has one.
HAS_ROW = "$has_row"
_UPSERTS = ("c", "r", "u")
_OPERATIONS = (*_UPSERTS, "d", "t", "m")
_BINLOG = r"^(.*?)\.?(?<![0-9])([0-9]{1,18})$"
_MARIADB_GTID = r"^([0-9]{1,18})-[0-9]{1,18}-([0-9]{1,18})$"
_SQL_SERVER_LSN = r"^[0-9a-fA-F]{8}:[0-9a-fA-F]{8}:[0-9a-fA-F]{4}$"
_CONTROL_NAME = re.compile(
    r"io\.debezium\.connector\.(common\.(Heartbeat|TransactionMetadataValue)|[^.]+\.SchemaChangeValue)"
)
# Those that are like no row; a heartbeat without its name could be anybody's.
_CONTROL_COLUMNS = (
    {"status", "id", "event_count", "data_collections", "ts_ms"},
    {"source", "ts_ms", "databaseName", "schemaName", "ddl", "tableChanges"},
)
_SOURCE_FIELDS: Mapping[str, t.DataType] = {
    "connector": t.StringType(),
    "name": t.StringType(),
    "db": t.StringType(),
    "snapshot": t.StringType(),
    "ts_ms": t.LongType(),
    "ts_us": t.LongType(),
    "lsn": t.LongType(),
    "server_id": t.LongType(),
    "gtid": t.StringType(),
    "file": t.StringType(),
    "pos": t.LongType(),
    "commit_lsn": t.StringType(),
    "change_lsn": t.StringType(),
}


class ChangeReader(Reader):
    """Reads Debezium change events as the rows that they are about."""

    def __init__(self, envelope: Reader, placeholder: str = PLACEHOLDER) -> None:
        """`placeholder` is the connector's `unavailable.value.placeholder`."""
        if not is_envelope(envelope.type):
            raise UnsupportedSchema(
                "The records are no change events of Debezium: they lack before, after, op or source.",
                "Read them as the rows that they are.",
            )
        self._envelope = envelope
        self._placeholder = placeholder
        self._before = _struct(envelope.type, "before")
        self._source = _struct(envelope.type, "source")
        self.type = _struct(envelope.type, "after")
        self.record_name = _row_name(envelope.record_name)
        self.former_names = MappingProxyType(_inside_after(envelope.former_names))
        self.field_numbers = MappingProxyType(_inside_after(envelope.field_numbers))

    def raw(self, body: Column) -> Column:
        return self._envelope.raw(body)

    def is_exact(self, raw: Column, body: Column) -> Column:
        op, after = self._envelope.field(raw, "op"), self._envelope.field(raw, "after")
        complete = op.isin(*_OPERATIONS) & (~op.isin(*_UPSERTS) | after.isNotNull())
        return self._envelope.is_exact(raw, body) & f.coalesce(complete, f.lit(False))

    def value(self, raw: Column) -> Column:
        """The row after the change; of a delete what is known of the row before it, be it nothing."""
        op, after = self._envelope.field(raw, "op"), self._envelope.field(raw, "after")
        before = self._row_before(self._envelope.field(raw, "before"))
        nothing = (f.lit(None).cast(field.dataType).alias(field.name) for field in self.type.fields)
        return f.coalesce(f.when(op == "d", before).otherwise(after), f.struct(*nothing))

    def problem(self, raw: Column, body: Column) -> Column | None:
        said = self._envelope.problem(raw, body)
        undecoded = f.lit(None).cast("string") if said is None else said
        op, after = self._envelope.field(raw, "op"), self._envelope.field(raw, "after")
        unknown = f.concat(f.lit("is a change event of the unknown operation '"), op, f.lit("'"))
        lacks = f.concat(f.lit("is a change event of the operation '"), op, f.lit("' without the row after"))
        own = (
            f.when(op.isNull(), "is a change event without an operation")
            .when(~op.isin(*_OPERATIONS), unknown)
            .when(op.isin(*_UPSERTS) & after.isNull(), lacks)
        )
        return f.when(self._envelope.is_exact(raw, body), own).otherwise(undecoded)

    def change(self, raw: Column) -> Column:
        """What happened, as a struct of `CHANGE`; for rows where `is_exact` holds.

        `op`: `upsert`, `delete`, `truncate` or `ignore`. `position`: of two changes with the same `source`
        that both have one, the one with the lesser bytes is the older; in all other cases, and where they
        are equal, Kafka's order decides. `at`: when the database changed. `missing`: columns whose value
        the event does not have; what `value` has there is a placeholder. `snapshot`: whether it was read by a
        snapshot and not from the log; NULL for rows of incremental snapshots, which come between others.
        """
        op = self._envelope.field(raw, "op")
        source = _Origin(lambda name: self._envelope.field(raw, "source", name), self._source)
        # When Debezium wrote the event, where it does not say when the database changed.
        written = _Origin(lambda name: self._envelope.field(raw, name), self._envelope.type).micros()
        what = (
            f.when(op.isin(*_UPSERTS), "upsert")
            .when(op == "d", "delete")
            .when(op == "t", "truncate")
            .otherwise("ignore")
        )
        none = f.array().cast("array<string>")
        missing = f.when(op.isin(*_UPSERTS), self._missing(raw))
        return f.struct(
            what.alias("op"),
            source.identity().alias("source"),
            f.when(op != "r", source.position()).alias("position"),
            f.timestamp_micros(f.coalesce(source.micros(), written)).alias("at"),
            f.coalesce(missing, none).alias("missing"),
            f.when((op != "r") | source.is_snapshot(), source.is_snapshot()).alias("snapshot"),
        )

    def _row_before(self, before: Column) -> Column:
        """With the columns of `after`, which are the same but for a schema of somebody else's."""
        if same_type(self._before, self.type):
            return before
        have = {field.name: field.dataType for field in self._before.fields}
        fields = (
            before[field.name].alias(field.name)
            if field.name in have and same_type(have[field.name], field.dataType)
            else f.lit(None).cast(field.dataType).alias(field.name)
            for field in self.type.fields
        )
        return f.when(before.isNotNull(), f.struct(*fields))

    def _missing(self, raw: Column) -> Column:
        found = [
            f.when(f.coalesce(held, f.lit(False)), f.lit(field.name))
            for field in self.type.fields
            for held in _is_placeholder(
                self._envelope.field(raw, "after", field.name), field.dataType, self._placeholder
            )
        ]
        return f.array_compact(f.array(*found)) if found else f.array().cast("array<string>")


class AfterReader(ChangeReader):
    """Reads Debezium change events as their after-images, each a row by itself. The column `HAS_ROW` is false
    for deletes, truncates and messages, which have none."""

    def __init__(self, envelope: Reader) -> None:
        super().__init__(envelope)
        self._row = self.type
        self.type = t.StructType([*self._row.fields, t.StructField(HAS_ROW, t.BooleanType())])

    def value(self, raw: Column) -> Column:
        after = self._envelope.field(raw, "after")
        columns = (after[field.name].alias(field.name) for field in self._row.fields)
        return f.struct(*columns, self._envelope.field(raw, "op").isin(*_UPSERTS).alias(HAS_ROW))

    def change(self, raw: Column) -> Column:
        raise AssertionError("an after-image is a row, and no change of one")


class _Origin:
    """What an event says of where it comes from. Connectors differ: a field that is not there is NULL."""

    def __init__(self, get: Callable[[str], Column], kind: t.StructType) -> None:
        self._get = get
        self._kind = {field.name: field.dataType for field in kind.fields}

    def identity(self) -> Column:
        """Two positions are comparable only where this is the same."""
        ours = (self._text("connector"), self._text("name"))
        file, gtid = self._text("file"), self._text("gtid")
        # A server whose files are called otherwise from now on counts them from 1 again.
        log = f.when(
            _has(gtid), f.concat(f.lit("gtid-"), f.regexp_extract(gtid, _MARIADB_GTID, 1))
        ).otherwise(f.regexp_extract(file, _BINLOG, 1))
        binlog = f.concat_ws("/", *ours, self._number("server_id").cast("string"), log)
        return f.when(self._is("mysql", "mariadb"), binlog).otherwise(
            f.concat_ws("/", *ours, self._text("db"))
        )

    def position(self) -> Column:
        """Bytes that sort as the changes happened; NULL where nothing does."""
        found = (
            f.when(self._is("postgresql"), _sortable(self._number("lsn")))
            .when(self._is("mysql", "mariadb"), self._in_binlog())
            .when(self._is("sqlserver"), self._in_sql_server())
        )
        return f.when(~self.is_snapshot(), found)

    def is_snapshot(self) -> Column:
        """Whether a snapshot read it; NULL where an incremental one did."""
        snapshot = f.coalesce(self._text("snapshot"), f.lit("false"))
        return f.when(snapshot != "incremental", snapshot != "false")

    def micros(self) -> Column:
        return f.coalesce(self._number("ts_us"), f.try_multiply(self._number("ts_ms"), f.lit(1000)))

    def _in_binlog(self) -> Column:
        gtid, pos = self._text("gtid"), self._number("pos")
        number = f.regexp_extract(self._text("file"), _BINLOG, 2).try_cast("long")
        sequence = f.regexp_extract(gtid, _MARIADB_GTID, 2).try_cast("long")
        place = f.concat(_sortable(number), _sortable(f.when(pos >= 0, pos)))
        return f.when(_has(gtid), _sortable(sequence)).otherwise(place)

    def _in_sql_server(self) -> Column:
        places = (self._text("commit_lsn"), self._text("change_lsn"))
        return f.concat(
            *(
                f.when(at.rlike(_SQL_SERVER_LSN), f.unhex(f.replace(at, f.lit(":"), f.lit(""))))
                for at in places
            )
        )

    def _is(self, *connectors: str) -> Column:
        return self._text("connector").isin(*connectors)

    def _text(self, name: str) -> Column:
        there = isinstance(self._kind.get(name), t.StringType)
        return self._get(name) if there else f.lit(None).cast("string")

    def _number(self, name: str) -> Column:
        there = isinstance(self._kind.get(name), t.IntegerType | t.LongType)
        return self._get(name).cast("long") if there else f.lit(None).cast("long")


def envelope_columns(columns: t.StructType) -> t.StructType:
    """The columns of change events without a schema, for a `JsonReader`, by the declared ones of the row.

    Events have more keys than these; a `JsonReader` does not look at keys that no column has.
    """
    source = t.StructType([t.StructField(name, kind) for name, kind in _SOURCE_FIELDS.items()])
    return t.StructType(
        [
            t.StructField("before", columns),
            t.StructField("after", columns),
            t.StructField("source", source),
            t.StructField("op", t.StringType()),
            t.StructField("ts_ms", t.LongType()),
            t.StructField("ts_us", t.LongType()),
        ]
    )


def is_control(reader_type: t.StructType, record_name: str | None) -> bool:
    """Whether these are Debezium's own records and no rows: heartbeats, transactions, changes of schemas."""
    if record_name is not None:
        return _CONTROL_NAME.fullmatch(record_name) is not None
    return set(reader_type.names) in _CONTROL_COLUMNS


def _is_placeholder(value: Column, kind: t.DataType, placeholder: str) -> Iterator[Column]:
    """Asks a value of `kind` whether it only stands for one that the log does not have.

    Yields nothing for types that have no placeholder. An array of numbers has those of the placeholder's
    bytes, and so has one of days.
    """
    data = placeholder.encode()
    match kind:
        case t.StringType():
            yield value.isin(*_texts(placeholder))
        case t.BinaryType():
            yield value == f.lit(data)
        case t.VariantType():
            yield f.try_variant_get(value, "$", "string").isin(*_texts(placeholder))
        case t.ArrayType(elementType=t.StringType()):
            alone = [f.array(f.lit(text)) for text in (placeholder, _uuid(data))]
            yield value.isin(*alone)
        case t.ArrayType(elementType=t.BinaryType()):
            yield value == f.array(f.lit(data))
        case t.ArrayType(elementType=t.DateType()):
            yield value == f.array(*(f.date_from_unix_date(f.lit(byte)) for byte in data))
        case t.ArrayType(elementType=t.DecimalType(precision=digits, scale=scale)) if digits - scale < 3:
            # Too short for the numbers of bytes; it has no placeholder.
            return
        case t.ArrayType(elementType=t.NumericType() as item):
            yield value == f.array(*(f.lit(byte).cast(item) for byte in data))
        case t.MapType(keyType=t.StringType(), valueType=t.StringType()):
            held = f.try_element_at(value, f.lit(placeholder)) == placeholder
            yield (f.size(value) == 1) & held
        case t.StructType() if "wkb" in kind.names and isinstance(kind["wkb"].dataType, t.BinaryType):
            yield value["wkb"].isin(*(f.lit(point) for point in _POINTS))


def _texts(placeholder: str) -> list[str]:
    """As it is; as bytes that the connector writes as text; as the map of an hstore, as JSON."""
    data = placeholder.encode()
    return [
        placeholder,
        data.hex(),
        base64.b64encode(data).decode(),
        f'{{"{placeholder}":"{placeholder}"}}',
    ]


def _uuid(data: bytes) -> str:
    """What Java makes of bytes that are to be a UUID."""
    return str(uuid.UUID(bytes=hashlib.md5(data, usedforsecurity=False).digest(), version=3))


def _point(x: float, y: float) -> bytes:
    """A point of the usual coordinates, as PostGIS writes it."""
    return struct.pack("<BIIdd", 1, 0x20000001, 4326, x, y)


# Far off the earth, and nearly at its pole: Debezium's for PostGIS' geometry and geography.
_POINTS = (_point(-99_999_999, -99_999_999), _point(179.999999, 89.999999))


def _has(text: Column) -> Column:
    return f.coalesce(text != "", f.lit(False))


def _sortable(number: Column) -> Column:
    """Eight bytes that sort as the number does, taken without its sign."""
    return f.unhex(f.lpad(f.hex(number), 16, "0"))


def _struct(kind: t.StructType, name: str) -> t.StructType:
    found = kind[name].dataType
    assert isinstance(found, t.StructType)
    return found


def _row_name(envelope: str | None) -> str | None:
    """Debezium calls the row's type `Value`, beside `Envelope`."""
    if envelope is None or not envelope.endswith(".Envelope"):
        return envelope
    return f"{envelope.removesuffix('Envelope')}Value"


def _inside_after(found: Mapping[str, V]) -> dict[str, V]:
    return {path.removeprefix("after."): value for path, value in found.items() if path.startswith("after.")}
