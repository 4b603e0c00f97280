"""A frame of Spark's into a topic as one batch: a transaction per task."""

import json
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from headgate import errors
from headgate.errors import HeadgateError
from headgate.kafka.client import KafkaAccess, Link, Where
from headgate.kafka.markers import Marker, keep_prepared
from headgate.kafka.transactional import Row, TransactionalWriter

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_REPORT = re.compile(r'headgate-writer: (\{".*\})')
_TASK = "headgate_task"
_OPTIONAL = ("headers", "partition", "timestamp")
_planning = threading.Lock()


class Written(NamedTuple):
    """What became of a batch: how many tasks wrote now, and the size of what all of them were given."""

    tasks: int
    rows: int
    bytes: int


def write_frame(
    df: "DataFrame",
    where: Where,
    name: str,
    batch: int | Marker,
    topic: str,
    tasks: int,
    markers_topic: str,
    order: "Sequence[str | Column]" = (),
    by: Sequence[str] = ("key",),
    mark_empty: bool = True,
) -> Written:
    """Writes a frame as one batch, by so many tasks, each with a transaction.

    Columns as in Spark's own Kafka sink: `key` and `value` (binary), and `headers`, `partition`, `timestamp`
    if there are any. Rows of equal `by` columns go to the same task, and leave it in the order of `order`.

    A batch that is tried again must have the same rows and the same number of tasks: those that had committed
    are left out, and their rows may be missing in the size that is returned. Columns of `order` and `by` may
    be others than those that are written.

    A task without rows records the batch all the same, unless `mark_empty` is false: then it does nothing.
    The same batch has none for it the next time either, and a later one that has some opens a writer, which
    ends what an older one left open.
    """
    access = KafkaAccess.at(where)
    keep_prepared(access, markers_topic)
    plan = _planned(
        _distributed(df, tasks, order, by),
        _task_function(access, name, batch, topic, markers_topic, mark_empty),
    )
    try:
        done = plan.collect()
    except Exception as error:
        raise _reported(error) or error from error
    # Of a frame that is known to be empty before it runs, Spark runs nothing.
    if done and sorted(row["task"] for row in done) != list(range(tasks)):
        number = batch.batch if isinstance(batch, Marker) else batch
        raise RuntimeError(f"{len(done)} tasks of {tasks} wrote batch {number} of '{name}'.")
    return Written(*(sum(row[name] for row in done) for name in ("written", "rows", "bytes")))


def collect_frame(
    df: "DataFrame",
    tasks: int,
    order: "Sequence[str | Column]" = (),
    by: Sequence[str] = ("key",),
    is_narrow: bool = False,
) -> "tuple[dict[int, list[Row]], Written]":
    """The rows of a small frame by the task that `write_frame` would give them to, each task's in its order;
    and their size, with no task that has written yet.

    `is_narrow`: one task may compute all of it. State has its tasks.
    """
    written, task = _columns(df, tasks, by)
    tasked = df.select("*", task)
    one = tasked.coalesce(1) if is_narrow else tasked.repartition(1)
    ordered = one.sortWithinPartitions(*order) if order else one
    found = ordered.select(*written, _TASK).toArrow()
    rows: dict[int, list[Row]] = {}
    for batch in found.to_batches():
        for own, row in zip(batch.column(_TASK).to_pylist(), _rows_of(batch), strict=True):
            rows.setdefault(own, []).append(row)
    return rows, Written(0, found.num_rows, found.nbytes)


def _columns(df: "DataFrame", tasks: int, by: Sequence[str]) -> "tuple[list[str], Column]":
    """The columns that are written, and the task of a row: the expression that Spark distributes by."""
    from pyspark.sql import functions as f

    names = df.columns
    written = ["key", "value", *(column for column in _OPTIONAL if column in names)]
    return written, f.pmod(f.hash(*by), f.lit(tasks)).cast("int").alias(_TASK)


def _distributed(
    df: "DataFrame", tasks: int, order: "Sequence[str | Column]", by: Sequence[str]
) -> "DataFrame":
    # A task checks that it was given its own rows.
    written, task = _columns(df, tasks, by)
    spread = df.select("*", task).repartition(tasks, *by)
    ordered = spread.sortWithinPartitions(*order) if order else spread
    return ordered.select(*written, _TASK)


def _planned(
    rows: "DataFrame", function: "Callable[[Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]]"
) -> "DataFrame":
    """Planned without adaptive execution, which may join partitions: a task is a partition, always."""
    found = rows.mapInArrow(function, "task int, written boolean, rows long, bytes long")
    session = rows.sparkSession
    with _planning:
        before = session.conf.get("spark.sql.adaptive.enabled")
        session.conf.set("spark.sql.adaptive.enabled", "false")
        try:
            found._jdf.queryExecution().executedPlan()
        finally:
            session.conf.set("spark.sql.adaptive.enabled", str(before))
    return found


def _task_function(
    access: KafkaAccess, name: str, batch: int | Marker, topic: str, markers_topic: str, mark_empty: bool
) -> "Callable[[Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]]":
    def run(batches: "Iterable[pa.RecordBatch]") -> "Iterable[pa.RecordBatch]":
        import pyarrow as pa
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        task = context.partitionId()
        sizes: list[tuple[int, int]] = []
        rows = _rows(batches, task, sizes)
        first = next(rows, None)
        written = False
        try:
            if first is not None or mark_empty:
                with TransactionalWriter(_kept(access), name, task, markers_topic) as writer:
                    written = writer.write(batch, topic, chain([] if first is None else [first], rows))
        except HeadgateError as error:
            _kept.cache_clear()
            said = {"error": type(error).__name__, "message": error.message, "remedy": error.remedy}
            # Spark passes on an error's text and no more.
            raise RuntimeError(f"headgate-writer: {json.dumps(said)}") from error
        yield pa.RecordBatch.from_pydict(
            {
                "task": pa.array([task], pa.int32()),
                "written": pa.array([written], pa.bool_()),
                "rows": pa.array([sum(rows for rows, _ in sizes)], pa.int64()),
                "bytes": pa.array([sum(size for _, size in sizes)], pa.int64()),
            }
        )

    return run


@lru_cache(maxsize=4)
def _kept(access: KafkaAccess) -> Link:
    """Of a worker's tasks, which come one after the other."""
    return Link(access)


def _rows(
    batches: "Iterable[pa.RecordBatch]", task: int, sizes: list[tuple[int, int]] | None = None
) -> Iterator[Row]:
    """`sizes` gets the rows and bytes of each batch."""
    for batch in batches:
        if any(own != task for own in batch.column(_TASK).to_pylist()):
            raise RuntimeError(f"Task {task} was given rows of others.")
        if sizes is not None:
            sizes.append((batch.num_rows, batch.nbytes))
        yield from _rows_of(batch)


def _rows_of(batch: "pa.RecordBatch") -> Iterator[Row]:
    found = {column: batch.column(column).to_pylist() for column in batch.schema.names if column != _TASK}
    nothing = [None] * batch.num_rows
    columns = [found.get(column, nothing) for column in ("key", "value", *_OPTIONAL)]
    for key, value, headers, partition, timestamp in zip(*columns, strict=True):
        pairs = [(header["key"], header["value"]) for header in headers or ()]
        millis = None if timestamp is None else _milliseconds(timestamp)
        yield Row(key, value, pairs, partition, millis)


def _milliseconds(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(milliseconds=1)


def _reported(error: Exception) -> HeadgateError | None:
    """The error of ours that a task said."""
    found = _REPORT.search(str(error))
    if found is None:
        return None
    said = json.loads(found[1])
    kind: type[HeadgateError] = getattr(errors, said["error"])
    return kind(said["message"], said["remedy"])
