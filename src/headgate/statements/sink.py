"""Rows of a statement into its topic: keys and values by registered schemas, each batch once."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from headgate.decode.project import same_type, widens
from headgate.errors import AlreadyExists, InvalidRequest, StatementFailed
from headgate.failpoints import failpoint
from headgate.kafka.access import KafkaAccess
from headgate.kafka.frames import Written, collect_frame, write_frame
from headgate.kafka.kept import KeptWriters
from headgate.kafka.markers import Marker, keep_prepared
from headgate.kafka.topics import ANY_TIME, VERSIONS, Topics
from headgate.registry.client import RegisteredSchema, SchemaSource
from headgate.registry.schemas import SchemaType
from headgate.sql.tables import CAME, OP_CODES, OP_HEADER
from headgate.sql.types import quote
from headgate.statements import runnable as r
from headgate.statements.codec import codec_of
from headgate.statements.encode import (
    avro_schema,
    encoded_avro,
    encoded_json,
    json_schema,
    record_name,
)
from headgate.statements.small import Sizes, offsets_read
from headgate.tables.readers import registered_reader

MARKERS = "__headgate_markers"
# What a task says of a NULL that its column does not take; looked for in the failure of its query.
NULL_IN = "headgate: a row has NULL in column"
_FORMATS = {"avro": SchemaType.AVRO, "json": SchemaType.JSON}


def check_output(found: r.Runnable, output: r.Output) -> None:
    """Refuses what could not be written; nothing was created yet."""
    for stage in found.stages:
        codec_of(stage)
    if found.changelog == "upsert" and (output.changelog != "upsert" or not output.key):
        raise InvalidRequest(
            f"The query changes rows that it gave before, and topic '{output.topic}' only takes new ones.",
            "Declare a primary key for it: `PRIMARY KEY (…) NOT ENFORCED`.",
        )
    if found.changelog == "retract" and output.changelog != "retract":
        raise InvalidRequest(
            f"The query takes rows back, and topic '{output.topic}' does not say so of its records.",
            "Write a table with 'changelog.mode' = 'retract'.",
        )
    if output.changelog == "upsert" and not output.key:
        raise InvalidRequest(
            f"Topic '{output.topic}' is to be updated, and has no key.", "Declare a primary key for it."
        )
    kinds = {field.name: field.dataType for field in found.columns.fields}
    for field in output.columns.fields:
        kind = kinds.get(field.name)
        if kind is None:
            if not field.nullable:
                raise InvalidRequest(
                    f"Column '{field.name}' of '{output.topic}' takes no NULL, and gets no value."
                )
        elif not same_type(kind, field.dataType) and not widens(kind, field.dataType):
            raise InvalidRequest(
                f"Column '{field.name}' of '{output.topic}' is {field.dataType.simpleString()}, "
                f"the query gives {kind.simpleString()}.",
                f"Cast it: CAST({field.name} AS …).",
            )
    unknown = [name for name in (*kinds, *output.key) if name not in output.columns.names]
    if unknown:
        raise InvalidRequest(
            f"'{output.topic}' has no column {', '.join(unknown)}.",
            f"Its columns are {', '.join(output.columns.names)}.",
        )


@dataclass(frozen=True)
class Encoding:
    """The expressions that make a record."""

    value: Column
    key: Column | None
    #: Over how many partitions records are spread by their values, so that equal rows stay in one, or by
    #: where they come from; None where their keys decide, or nothing does.
    spread: int | None = None


def prepare_output(output: r.Output, access: KafkaAccess, schemas: SchemaSource) -> Encoding:
    """The topic and its schemas, made where they are missing."""
    value, key = _part(output, "value", schemas), None
    if output.key:
        key = _part(output, "key", schemas)
    topics = Topics(access)
    if output.topic not in topics.describe_many([output.topic]):
        policy = VERSIONS if output.changelog == "upsert" else ANY_TIME
        with suppress(AlreadyExists):
            topics.create(output.topic, output.partitions, config=policy)
    if (output.changelog != "retract" and not output.in_place) or key is not None:
        return Encoding(value, key)
    return Encoding(value, None, len(topics.describe(output.topic).partitions))


def key_columns(output: r.Output) -> t.StructType:
    by_name = {field.name: field for field in output.columns.fields}
    return t.StructType([t.StructField(name, by_name[name].dataType, False) for name in output.key])


def register_output(output: r.Output, schemas: SchemaSource) -> None:
    """The topic's schemas, where they are not registered yet."""
    for part in ("value", "key") if output.key else ("value",):
        _registered(output, part, schemas)


def _part(output: r.Output, part: str, schemas: SchemaSource) -> Column:
    schema_id, text = _registered(output, part, schemas)
    columns = output.columns if part == "value" else key_columns(output)
    if _FORMATS[output.format] is SchemaType.AVRO:
        return encoded_avro(columns, schema_id, text)
    return encoded_json(columns, schema_id)


def _registered(output: r.Output, part: str, schemas: SchemaSource) -> tuple[int, str]:
    """The id of a part's schema, and its text."""
    columns = output.columns if part == "value" else key_columns(output)
    subject = f"{output.topic}-{part}"
    kind = _FORMATS[output.format]
    there = schemas.latest(subject)
    if there is not None and there.type is not kind:
        raise StatementFailed(
            f"Subject '{subject}' has a schema of type {there.type}, the statement writes {kind}.",
            "Protobuf cannot be written: write another topic."
            if there.type is SchemaType.PROTOBUF
            else f"Say 'value.format' = '{there.type.lower()}-registry', or write another topic.",
        )
    text = _text(output, part)
    if there is not None and _says(there, columns, part):
        return there.id, there.text
    return schemas.register(subject, kind, text), text


def schema_texts(output: r.Output) -> list[str]:
    """The schemas that would be registered; refuses what none can hold."""
    return [_text(output, part) for part in (("value", "key") if output.key else ("value",))]


def _text(output: r.Output, part: str) -> str:
    columns = output.columns if part == "value" else key_columns(output)
    make = avro_schema if _FORMATS[output.format] is SchemaType.AVRO else json_schema
    return make(columns, record_name(output.topic, part))


def _says(there: RegisteredSchema, columns: t.StructType, part: str) -> bool:
    """Whether a schema of somebody else's is for just these columns: then records are written by it."""
    if there.type is not SchemaType.AVRO:
        return False
    known = {field.name: field.dataType for field in registered_reader(there, None, part).type.fields}
    return known.keys() == set(columns.names) and all(
        same_type(known[field.name], field.dataType) for field in columns.fields
    )


class Sink(ABC):
    """What Spark calls with each batch. The same batch again writes what is not there yet, and no more."""

    def __init__(
        self, topic: str, access: KafkaAccess, name: str, tasks: int, by: Sequence[str], silent_before: int
    ) -> None:
        """`name`: whose transactions these are. Batches before `silent_before` only build state.

        `by`: columns of the records. Those that are equal there stay in order.
        """
        self._topic = topic
        self._access = access
        self._name = name
        self._tasks = tasks
        #: Rows that are equal there go to the same task.
        self.by = tuple(by)
        self._order: tuple[str, ...] = (r.PARTITION, r.OFFSET)
        self._silent_before = silent_before
        #: What is recorded with a batch, when it is known of which checkpoint it is.
        self.marker_of: Callable[[int], Marker] = Marker
        #: How many rows may come of so many offsets in a batch; None where nobody knows.
        self.most_rows: Callable[[int, int], int | None] = lambda offsets, batch: None
        #: One task may compute all of a small batch.
        self.is_narrow = False
        self._encoded: tuple[t.StructType, Sequence[Sequence[Column]]] | None = None
        self._sizes = Sizes()
        self._writers = KeptWriters(access, name, MARKERS)
        #: What Spark hands on as text only.
        self.error: Exception | None = None

    def records(self, rows: DataFrame) -> DataFrame:
        """As the transactional writer takes them, with `$partition` and `$offset` if the rows have them, and
        `$op` where rows are taken back whole."""
        schema = rows.schema
        if self._encoded is None or self._encoded[0] != schema:
            # Each column is a dozen calls into the JVM; all batches of a query have the same.
            self._encoded = schema, self.encoded(schema)
        for columns in self._encoded[1]:
            rows = rows.select(*columns)
        return rows

    @abstractmethod
    def encoded(self, schema: t.StructType) -> Sequence[Sequence[Column]]:
        """The columns of records made of rows of this schema, selected in steps."""

    def order(self, records: DataFrame) -> list[Column]:
        """In which rows leave a task."""
        names = records.columns
        found = [f.col(quote(name)) for name in self._order if name in names]
        if r.OP in names:
            # What is retracted goes first: '-' is behind '+'.
            found.append(f.col(quote(r.OP)).desc())
        return found

    def __call__(self, rows: DataFrame, batch: int) -> None:
        try:
            if batch < self._silent_before:
                rows.write.format("noop").mode("overwrite").save()
                return
            written = self._write(self.records(rows), self.marker_of(batch))
            if written.tasks:
                # The records are there, and Spark does not know it yet.
                failpoint("statement-written")
        except Exception as error:  # noqa: BLE001
            self.error = error
            # The text is all that Spark takes; in the trace of a batch that was cut off it would look for
            # words with an expression that overflows its stack.
            raise RuntimeError(str(error)) from None

    def _write(self, records: DataFrame, marker: Marker) -> Written:
        """A small batch by writers of this process, which stay open, another one by tasks of their own: which
        task a row belongs to, and what its transaction records, is the same."""
        offsets = offsets_read(marker)
        most = None if offsets is None else self.most_rows(offsets, marker.batch)
        order = self.order(records)
        if self._sizes.is_small(offsets, most):
            keep_prepared(self._access, MARKERS)
            rows, written = collect_frame(records, self._tasks, order, self.by, self.is_narrow)
            written = written._replace(tasks=self._writers.write(marker, self._topic, rows))
        else:
            # Tasks take over from the writers that are open here.
            self._writers.forget()
            written = write_frame(
                records,
                self._access,
                self._name,
                marker,
                self._topic,
                self._tasks,
                MARKERS,
                order=order,
                by=self.by,
                mark_empty=False,
            )
        self._sizes.see(most, written)
        return written

    def rest(self) -> None:
        """Ends what is kept for batches that do not come."""
        self._writers.close_idle()

    def close(self) -> None:
        """A batch that is still under way ends as it can."""
        self._writers.close()


class TopicSink(Sink):
    """Rows into the topic that the statement writes."""

    def __init__(
        self,
        output: r.Output,
        encoding: Encoding,
        access: KafkaAccess,
        name: str,
        tasks: int,
        silent_before: int = 0,
    ) -> None:
        by = ("key",) if encoding.key is not None else ("value",)
        if output.in_place and encoding.key is None:
            by = (quote(r.PARTITION),)
        super().__init__(output.topic, access, name, tasks, by, silent_before)
        self._output = output
        self._encoding = encoding
        if output.in_place:
            # Several partitions may go into one.
            self._order = ("timestamp", r.PARTITION, r.OFFSET)

    def encoded(self, schema: t.StructType) -> Sequence[Sequence[Column]]:
        """Bytes of keys and values; a row that is deleted is a key without a value, one that is taken back is
        whole and has a header that says so."""
        retract = self._output.changelog == "retract"
        deleted = f.col(quote(r.OP)) == r.DELETE if r.OP in schema.names and not retract else None
        kinds = {field.name: field.dataType for field in schema.fields}
        carried = [name for name in (r.ROWTIME, r.PARTITION, r.OFFSET, r.OP) if name in kinds]
        checked = [
            *(self._column(field, kinds, deleted) for field in self._output.columns.fields),
            *(f.col(quote(name)) for name in carried),
        ]
        value = self._encoding.value
        if deleted is not None:
            value = f.when(~deleted, value)
        key = f.lit(None).cast("binary") if self._encoding.key is None else self._encoding.key
        found = [key.alias("key"), value.alias("value")]
        if r.ROWTIME in carried:
            time = f.col(quote(r.ROWTIME))
            # Kafka's client takes no time before 1970.
            found.append(f.when(f.unix_millis(time) > 0, time).alias("timestamp"))
        if retract:
            found.append(_op_header(r.OP in carried).alias("headers"))
        kept = [name for name in carried if name in (r.PARTITION, r.OFFSET) or (retract and name == r.OP)]
        made = [*found, *(f.col(quote(name)) for name in kept)]
        if self._encoding.spread is None:
            return checked, made
        place = f.pmod(f.hash("value"), f.lit(self._encoding.spread)).cast("int")
        if self._output.in_place:
            place = same_place(self._output.in_place, self._encoding.spread)
        return checked, made, [f.col("*"), place.alias("partition")]

    def _column(
        self, field: t.StructField, kinds: Mapping[str, t.DataType], deleted: Column | None
    ) -> Column:
        if field.name not in kinds:
            return f.lit(None).cast(field.dataType).alias(field.name)
        column = f.col(quote(field.name))
        if not same_type(kinds[field.name], field.dataType):
            column = column.cast(field.dataType)
        in_key = field.name in self._output.key
        if field.nullable and not in_key:
            return column.alias(field.name)
        refused = column.isNull() if deleted is None or in_key else column.isNull() & ~deleted
        said = f"{NULL_IN} '{field.name}' of topic '{self._output.topic}', which takes none"
        return f.when(refused, f.raise_error(f.lit(said))).otherwise(column).alias(field.name)


def same_place(before: int, now: int) -> Column:
    """The partition of a topic with `now` of them for a record that was in one of `before`.

    None is left empty, or event time would wait for it: where there are more, several share the rows of one.
    """
    partition = f.pmod(f.col(quote(r.PARTITION)), f.lit(min(before, now)))
    sharing = f.floor((f.lit(now - 1) - partition) / before) + 1
    return (partition + before * f.pmod(f.hash("value"), sharing)).cast("int")


def _op_header(said: bool) -> Column:
    """What a row does; one of which nothing is said came."""
    code = f.lit(OP_CODES[CAME])
    if said:
        for op, bytes_ in OP_CODES.items():
            code = f.when(f.col(quote(r.OP)) == op, f.lit(bytes_)).otherwise(code)
    return f.array(f.struct(f.lit(OP_HEADER).alias("key"), code.alias("value")))
