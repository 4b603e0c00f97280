"""Topics as statements read them: decoded by the schemas in play, each row with its change and its place."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

from headgate.decode.connect import is_envelope
from headgate.decode.debezium import HAS_ROW, AfterReader, ChangeReader
from headgate.decode.project import project, widens
from headgate.decode.reader import Reader
from headgate.errors import NotFound, SchemaConflict, StatementFailed, UnsupportedSchema
from headgate.kafka.access import KafkaAccess
from headgate.kafka.records import committed_records
from headgate.model import Batch, Metadata, Position
from headgate.registry.client import RegisteredSchema, SchemaSource
from headgate.sql.tables import AFTER, BEFORE, CAME, GONE, OP_CODES, OP_HEADER
from headgate.sql.types import quote
from headgate.statements import runnable as r
from headgate.tables.frames import Frame, prefix_frame
from headgate.tables.identity import Identity
from headgate.tables.lane import SparkLane
from headgate.tables.readers import frame_of, message_marks, registered_reader
from headgate.tables.records import (
    BAD_RECORD,
    CHANGE,
    DELETE,
    IGNORE,
    SKIPPED,
    TOO_WIDE,
    TRUNCATE,
    UNKNOWN_SCHEMA,
    Entry,
    Part,
    RecordPlan,
    bad_record,
    metadata_columns,
)
from headgate.tables.renames import Former, former_names, names_as

_METADATA = (Metadata.TIMESTAMP, Metadata.PARTITION, Metadata.OFFSET, Metadata.HEADERS)
# What Debezium's unwrapping leaves in a row that was deleted.
DELETED_COLUMN = "__deleted"
# The key's own fields, beside columns of the same names.
_KEY = "$key_"
# How many of a subject's newest versions are expected; others are learned when a record has them.
_VERSIONS = 16
_MAKE_AGAIN = (
    "Make the statement again under another name: the new one has the columns that the topic has now, and "
    "can take over from this one ('sql.tables.initial-offset-from')."
)
_LEAVE_OUT = "Or let it leave such records out, with the option 'sql.on-bad-record' = 'skip'."
_REGISTER = (
    "Register what is missing and start the statement again; or let it leave such records out, with "
    "the option 'sql.on-bad-record' = 'skip'."
)


@dataclass(frozen=True)
class _Known:
    reader: Reader
    schema_id: int


class TopicReader:
    """One topic, with the schemas that its records were met with so far."""

    def __init__(
        self, table: r.Table, schemas: SchemaSource, access: KafkaAccess, skip_bad: bool = False
    ) -> None:
        """With `skip_bad`, records that cannot be decoded are left out, else the first one ends the job."""
        self.table = table
        self._skip_bad = skip_bad
        #: What records name that the registry does not have.
        self._missing: set[bytes] = set()
        self._schemas = schemas
        self._access = access
        # Who leaves bad records out must know them for sure; who takes rows back reads it in a header.
        self._headers = skip_bad or self._is_retract
        self._value: dict[Frame, _Known] = {}
        self._key: dict[Frame, _Known] = {}
        self._learn_newest("value", self._value)
        self._learn_newest("key", self._key)
        if not self._value:
            raise StatementFailed(
                f"Topic '{table.name}' has no schema that fits its table.",
                f"Register one for subject '{table.name}-value', or produce a record that names one.",
            )

    def rows(self, source: DataFrame) -> DataFrame:
        """The table's columns, `$rowtime`, `$partition`, `$offset`, `$headers`, and `$op` of tables that are
        not append-only.

        Records that are to be left out are there: bad ones with `$bad`, events without an after-image with a
        false `HAS_ROW`. `with_rows` leaves them out.
        """
        plan = self.plan()
        if not self._skip_bad:
            decoded = plan.changes(source) if self._by_key else plan.rows(source)
            sound = decoded.select(*self._columns(), f.lit(False).alias("$bad"))
            return self._with_op(sound) if self._is_retract else sound
        kind, part = f.col("problem.class"), f.col("problem.part")
        judged = plan.judged(source).where(~kind.eqNullSafe(SKIPPED))
        mark = f.col("value_mark.mark")
        if plan.key is not None:
            mark = f.when(part == "key", f.col("key_mark.mark")).otherwise(mark)
        # A schema that is new is no bad record: it has to be learned first.
        new = kind.eqNullSafe(UNKNOWN_SCHEMA) & ~f.coalesce(mark.isin(*self._missing), f.lit(False))
        bad = f.when(new, bad_record()).otherwise(f.col("problem").isNotNull())
        rows = judged.select("row.*", bad.alias("$bad")).select(*self._columns(), "$bad")
        return self._with_op(rows) if self._is_retract else rows

    def with_rows(self, read: DataFrame) -> DataFrame:
        """Of `rows`, behind which filters may stand, those that are rows of the table."""
        kept = (read.where("not `$bad`") if self._skip_bad else read).drop("$bad")
        if HAS_ROW in read.columns:
            kept = kept.where(quote(HAS_ROW)).drop(HAS_ROW)
        return kept if self.table.changelog == "append" else kept.where(f.col(quote(r.OP)).isNotNull())

    def plan(self) -> RecordPlan:
        upsert = self._by_key
        own = [t.StructField(name, kind) for name, kind in self._key_columns().items()] if upsert else []
        has_row = [t.StructField(HAS_ROW, t.BooleanType())] if self._has_events else []
        rows = t.StructType([*self.table.columns.fields, *has_row, *own])
        columns = t.StructType([*rows.fields, *metadata_columns(_METADATA).fields])
        value = Part(
            "value",
            {
                frame: Entry(known.reader, known.schema_id, self._names(known), rows)
                for frame, known in self._value.items()
            },
        )
        # Of a field that values have too, the key's is not looked at.
        others = {
            entry.names.get(name, name) for entry in value.framed.values() for name in entry.reader.type.names
        }
        keyed = t.StructType([column for column in rows.fields if column.name not in others])
        key = Part(
            "key",
            {
                frame: Entry(known.reader, known.schema_id, self._key_names(known), keyed)
                for frame, known in self._key.items()
            },
        )
        # Where rows have a key and each record is a row, one without a value is none.
        changes = value.has_changes or (bool(self.table.primary_key) and self.table.changelog == "append")
        return RecordPlan(
            columns,
            value,
            key if self._reads_keys else None,
            _METADATA,
            skip_nulls=changes,
            headers=self._headers,
            identity=self._identity() if upsert else None,
        )

    def learn(self, partition: int, offset: int, spark: SparkSession) -> None:
        """A record does not decode: what it names is learned, or the statement fails with its coordinate."""
        name = self.table.name
        places = {partition: offset}
        at = committed_records(self._access, name, places, limit=1, idle_seconds=None, whole=True)
        message = next(iter(at), None)
        if message is None or message.offset() != offset:
            raise self._failed(partition, offset, "is gone")
        pairs = cast(list[tuple[str, str | bytes | None]], message.headers() or [])
        headers = [(key, value.encode() if isinstance(value, str) else value) for key, value in pairs]
        if self._is_retract and dict(headers).get(OP_HEADER) not in (None, *OP_CODES.values()):
            said = "has a header 'op' that is none of the bytes 0 (+I), 1 (-U), 2 (+U) and 3 (-D)"
            raise self._failed(partition, offset, said)
        learned = bool(headers) and not self._headers
        self._headers = self._headers or bool(headers)
        for part, data, known in (("value", message.value(), self._value), ("key", message.key(), self._key)):
            body = data.encode() if isinstance(data, str) else data
            frame = None if body is None else frame_of(body, headers, part)
            # A part that no schema was ever known of is not read.
            if frame is not None and body is not None and known and (part == "value" or self._reads_keys):
                try:
                    learned = self._learn(part, frame, body, known) or learned
                except SchemaConflict as error:
                    said = f"is of a schema that does not fit the statement. {error.message}".rstrip(".")
                    raise self._failed(partition, offset, said, _MAKE_AGAIN) from error
        if not learned:
            raise self._bad(partition, offset, spark)

    def _learn(self, part: str, frame: Frame, body: bytes, known: dict[Frame, _Known]) -> bool:
        if any(_is_of(body, frame, other) for other in known):
            return False
        try:
            if frame.schema_id is not None:
                schema = self._schemas.schema(frame.schema_id)
            elif frame.guid is not None:
                schema = self._schemas.schema_by_guid(frame.guid)
            else:
                return False
        except NotFound:
            if not self._skip_bad or frame.mark in self._missing:
                return False
            self._missing.add(frame.mark)
            return True
        if schema.type == "PROTOBUF" and not frame.in_header:
            marks = (frame.mark + index for index in message_marks(schema))
            mark = next((mark for mark in marks if body.startswith(mark)), None)
            if mark is None:
                return False
            frame = Frame(False, mark)
        known[frame] = self._known(part, schema, frame.rest)
        return True

    def _learn_newest(self, part: str, known: dict[Frame, _Known]) -> None:
        for schema in self._schemas.versions(f"{self.table.name}-{part}")[-_VERSIONS:]:
            index = b"\x00" if schema.type == "PROTOBUF" else b""
            try:
                known[prefix_frame(schema.id, index)] = self._known(part, schema, index or None)
            except (SchemaConflict, UnsupportedSchema):
                # Perhaps no record was ever written with it; one that was says so.
                continue

    def _known(self, part: str, schema: RegisteredSchema, indexes: bytes | None) -> _Known:
        reader = registered_reader(schema, indexes, part)
        if part == "value" and is_envelope(reader.type):
            reader = self._of_rows(reader)
        known = _Known(reader, schema.id)
        if part == "value":
            # Raises where a field's type has nothing to do with its column's.
            record = f.lit(None).cast(reader.type)
            project(record, reader.type, self.table.columns, self._names(known), narrow=True)
        return known

    def _names(self, known: _Known) -> dict[str, str]:
        """By path, the column of each field that has another name: the statement's columns keep theirs."""
        kind = known.reader.record_name
        others = [one for one in self._value.values() if one.reader.record_name == kind and one != known]
        ordered = sorted([*others, known], key=lambda one: one.schema_id)
        if not any(one.reader.former_names or one.reader.field_numbers for one in ordered):
            return {}
        so_far = [one.reader for one in ordered if one.schema_id <= known.schema_id]
        former = Former(former_names(so_far), former_names([one.reader for one in ordered]))
        return names_as(known.reader.type, self.table.columns, former)

    def _of_rows(self, envelope: Reader) -> Reader:
        """The reader of the rows in change events. Where the table has the columns of an envelope, the events
        are its rows."""
        if self._is_upsert:
            return ChangeReader(envelope)
        is_after = self.table.changelog == "append" and not is_envelope(self.table.columns)
        return AfterReader(envelope) if is_after else envelope

    @property
    def _has_events(self) -> bool:
        """Whether some records are change events of which the after-images are rows."""
        return any(isinstance(known.reader, AfterReader) for known in self._value.values())

    @property
    def _reads_keys(self) -> bool:
        """Keys are decoded where they say which row it is, or have columns that values do not have."""
        values = {name for known in self._value.values() for name in known.reader.type.names}
        own = self._key_fields() - values
        return bool(self._key) and (self._by_key or not own.isdisjoint(self.table.columns.names))

    @property
    def _is_upsert(self) -> bool:
        return self.table.changelog == "upsert"

    @property
    def _is_retract(self) -> bool:
        return self.table.changelog == "retract"

    @property
    def _by_key(self) -> bool:
        """Whether records are about the row of their key."""
        return self._is_upsert or (self._is_retract and bool(self.table.primary_key))

    def _identity(self) -> Identity:
        """Kafka's key says which row it is; where keys have no schema, the row's own columns do."""
        if self._key and set(self.table.primary_key) <= self._key_fields():
            return Identity(tuple(f"{_KEY}{name}" for name in self.table.primary_key), from_key=True)
        return Identity(self.table.primary_key, from_key=False)

    def _key_fields(self) -> set[str]:
        return {name for known in self._key.values() for name in known.reader.type.names}

    def _key_names(self, known: _Known) -> Mapping[str, str]:
        return {name: f"{_KEY}{name}" for name in known.reader.type.names} if self._by_key else {}

    def _key_columns(self) -> dict[str, t.DataType]:
        """By name: those of the primary key as the table has them, others as wide as any schema has them."""
        found: dict[str, t.DataType] = {}
        own = {field.name: field.dataType for field in self.table.columns.fields}
        for known in self._key.values():
            for field in known.reader.type.fields:
                name, kind = f"{_KEY}{field.name}", field.dataType
                if field.name in self.table.primary_key and widens(own.get(field.name, kind), kind):
                    kind = own[field.name]
                elif name in found and widens(kind, found[name]):
                    kind = found[name]
                found[name] = kind
        return found

    def _columns(self) -> list[Column]:
        own = {f"{_KEY}{name}" for name in self._key_fields()} if self._by_key else set()
        found = [self._column(field, own) for field in self.table.columns.fields]
        found += [
            f.col(Metadata.TIMESTAMP.column).alias(r.ROWTIME),
            f.col(Metadata.PARTITION.column).alias(r.PARTITION),
            f.col(Metadata.OFFSET.column).alias(r.OFFSET),
            f.map_from_entries(Metadata.HEADERS.column).alias(r.HEADERS),
        ]
        if self._has_events:
            # A record that is no event is a row.
            found.append(f.coalesce(f.col(quote(HAS_ROW)), f.lit(True)).alias(HAS_ROW))
        return [*found, self._op().alias(r.OP)] if self._by_key else found

    def _column(self, field: t.StructField, own: set[str]) -> Column:
        column, of_key = f.col(quote(field.name)), f"{_KEY}{field.name}"
        if of_key in own and field.name in self.table.primary_key:
            # A record that deletes has nothing but its key.
            column = f.coalesce(column, f.col(quote(of_key)).cast(field.dataType))
        return column.alias(field.name)

    def _op(self) -> Column:
        op = f.col(CHANGE)["op"]
        gone = op == DELETE
        kinds = {field.name: field.dataType for field in self.table.columns.fields}
        if isinstance(kinds.get(DELETED_COLUMN), t.StringType | t.BooleanType):
            gone = gone | f.coalesce(f.col(DELETED_COLUMN).cast("string") == "true", f.lit(False))
        truncated = f"headgate: the source of topic '{self.table.name}' was truncated"
        return (
            f.when(op == TRUNCATE, f.raise_error(f.lit(truncated)))
            .when(op == IGNORE, f.lit(None))
            .when(gone, f.lit(r.DELETE))
            .otherwise(f.lit(r.UPSERT))
        )

    def _with_op(self, rows: DataFrame) -> DataFrame:
        """What the header of each record says: the row came, or is taken back. Another word is bad."""
        said = f.try_element_at(f.col(quote(r.HEADERS)), f.lit(OP_HEADER))
        code = f.coalesce(said, f.lit(OP_CODES[CAME]))
        came, gone = (code.isin(*(OP_CODES[op] for op in ops)) for ops in ((CAME, AFTER), (BEFORE, GONE)))
        place = f.concat(quote(r.PARTITION), f.lit(":"), quote(r.OFFSET), f.lit(f" of {self.table.name}"))
        bad = f.lit(None) if self._skip_bad else f.raise_error(f.concat(f.lit(f"{BAD_RECORD} at "), place))
        # Without a value, and so with a key, it deletes.
        before = f.col(quote(r.OP)) if self._by_key else f.lit(r.UPSERT)
        op = f.when(came, before).when(gone, f.lit(r.DELETE)).otherwise(bad)
        return rows.withColumns({r.OP: op, "$bad": f.col("`$bad`") | ~(came | gone)})

    def _bad(self, partition: int, offset: int, spark: SparkSession) -> StatementFailed:
        """What is wrong with one record, as the readers say it."""
        lane = SparkLane(spark, self._access.spark_options())
        here, behind = ({partition: at} for at in (offset, offset + 1))
        batch = Batch(Position("", "", here), Position("", "", behind))
        found = lane.bad(self.plan(), lane.read(batch, self.table.name))
        if not found:
            return self._failed(partition, offset, "does not fit its schema")
        if found[0].kind == TOO_WIDE:
            said = f"{found[0].message.replace(_KEY, '')} in this statement"
            return self._failed(partition, offset, said, f"{_MAKE_AGAIN} {_LEAVE_OUT}")
        return self._failed(partition, offset, found[0].message)

    def _failed(self, partition: int, offset: int, problem: str, remedy: str = _REGISTER) -> StatementFailed:
        return StatementFailed(
            f"The record of topic '{self.table.name}' at partition {partition}, offset {offset} {problem}.",
            remedy,
        )


def _is_of(body: bytes, frame: Frame, known: Frame) -> bool:
    if frame.in_header or known.in_header:
        return frame == known
    return body.startswith(known.mark)
