"""`make bench-sql`: rows per second of statements beside the same by hand in PySpark, in one run.

Dedup, interval join and window aggregation read the same backlog from earliest, in batches of the same
bound, in one driver with the same state store and as many tasks: once as a statement, once as the same
plan with Spark's own Kafka sink (what the transactions cost is the difference), and once written by hand,
with Spark's own Kafka source, `from_avro`, `to_avro` and Kafka sink. All have to write as many rows, but for
the last seconds of event time: Spark's watermark is that of the fastest partition, ours that of the slowest.
"""

import argparse
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from pyspark.sql import DataFrame, Row, SparkSession, Window
from pyspark.sql import functions as f
from pyspark.sql import types as t
from pyspark.sql.avro.functions import from_avro, to_avro
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from bench.append import running
from bench.payments import SCHEMA, TOPIC, produce
from headgate.catalog.client import catalog_properties
from headgate.embedded.runtime import Runtime
from headgate.kafka.offsets import Offsets
from headgate.kafka.topics import Topics
from headgate.registry.client import SchemaSource
from headgate.spark import Driver, build_session
from headgate.sql.insert import plan_create
from headgate.sql.planner import Options
from headgate.sql.script import parse_statement
from headgate.sql.statements import CreateTable
from headgate.sql.tables import Catalog, TableInfo, Watermark
from headgate.statements.query import SESSION, Running, StatementQuery
from headgate.statements.runnable import Job, Output
from headgate.statements.sink import TopicSink

ORDERS, CUSTOMERS = "orders", "customers"
# One version of a customer for so many payments.
PER_VERSION = 20
TASKS = 4
COLUMNS = (
    t.StructType()
    .add("payment_id", "string")
    .add("order_id", "integer")
    .add("customer_id", "integer")
    .add("amount", "double")
    .add("method", "string")
    .add("paid_at", "timestamp")
)
DEDUP = f"""
CREATE TABLE result AS SELECT order_id, amount, method, paid_at FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY order_id ORDER BY paid_at) AS n FROM {TOPIC}
) WHERE n = 1
"""
JOIN = f"""
CREATE TABLE result AS SELECT o.order_id, p.amount, p.method, p.paid_at FROM {TOPIC} p, {ORDERS} o
WHERE p.payment_id = o.payment_id AND o.paid_at BETWEEN p.paid_at - INTERVAL '10' SECOND AND p.paid_at
"""
WINDOW = f"""
CREATE TABLE result AS SELECT window_start, window_end, customer_id, COUNT(*) AS payments, SUM(amount) AS paid
FROM TABLE(TUMBLE(TABLE {TOPIC}, DESCRIPTOR(paid_at), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end, customer_id
"""
TEMPORAL = f"""
CREATE TABLE result AS SELECT p.payment_id, p.amount, c.method, p.paid_at FROM {TOPIC} p
JOIN {CUSTOMERS} FOR SYSTEM_TIME AS OF p.paid_at AS c ON c.customer_id = p.customer_id
"""
ROLLING = f"""
CREATE TABLE result AS SELECT payment_id, paid_at, SUM(amount) OVER w AS spent, COUNT(*) OVER w AS payments
FROM {TOPIC} WINDOW w AS (
  PARTITION BY customer_id ORDER BY paid_at RANGE BETWEEN INTERVAL '1' MINUTE PRECEDING AND CURRENT ROW
)
"""
Read = Callable[[str], DataFrame]


def dedup(read: Read) -> DataFrame:
    """The first of each order by time, then by place."""
    due = (
        read(TOPIC)
        .groupBy("order_id", "paid_at")
        .agg(f.min_by(f.struct("amount", "method"), f.struct("partition", "offset")).alias("row"))
    )
    first = Window.partitionBy("order_id").orderBy("paid_at")
    return (
        due.withColumn("n", f.row_number().over(first))
        .where("n = 1")
        .select("order_id", "row.amount", "row.method", "paid_at")
        .dropDuplicates(["order_id"])
    )


def join(read: Read) -> DataFrame:
    payments, orders = read(TOPIC).alias("p"), read(ORDERS).alias("o")
    within = "p.payment_id = o.payment_id AND o.paid_at BETWEEN p.paid_at - INTERVAL 10 SECOND AND p.paid_at"
    return payments.join(orders, f.expr(within)).select("o.order_id", "p.amount", "p.method", "p.paid_at")


def window(read: Read) -> DataFrame:
    return (
        read(TOPIC)
        .groupBy(f.window("paid_at", "1 minute"), "customer_id")
        .agg(f.count(f.lit(1)).alias("payments"), f.sum("amount").alias("paid"))
        .select("window.start", "window.end", "customer_id", "payments", "paid")
    )


def temporal(read: Read) -> DataFrame:
    payments, customers = read(TOPIC).alias("p"), read(CUSTOMERS).alias("c")
    versions = "p.customer_id = c.customer_id AND c.paid_at <= p.paid_at"
    found = (
        payments.join(customers, f.expr(versions))
        .groupBy("p.paid_at", "p.partition", "p.offset")
        .agg(
            f.first(f.struct("p.payment_id", "p.amount")).alias("row"),
            f.max_by("c.method", f.struct("c.paid_at", "c.partition", "c.offset")).alias("method"),
        )
    )
    return found.select("row.payment_id", "row.amount", "method", "paid_at")


def rolling(read: Read) -> DataFrame:
    each, before = read(TOPIC).alias("e"), read(TOPIC).alias("b")
    near = (
        "e.customer_id <=> b.customer_id AND b.paid_at <= e.paid_at AND "
        "b.paid_at >= e.paid_at - INTERVAL 1 MINUTE"
    )
    # Above the join Spark's watermark is a minute behind: rows would come out that much later.
    pairs = each.join(before, f.expr(near)).select(
        f.expr("e.paid_at - INTERVAL 1 MINUTE").alias("due", metadata={"spark.watermarkDelayMs": 0}),
        f.col("e.paid_at").alias("paid_at", metadata={"watermark": "due"}),
        "e.partition",
        "e.offset",
        "e.payment_id",
        "b.amount",
    )
    return (
        pairs.groupBy("due", "paid_at", "partition", "offset")
        .agg(
            f.first("payment_id").alias("payment_id"),
            f.sum("amount").alias("spent"),
            f.count(f.lit(1)).alias("payments"),
        )
        .select("payment_id", "paid_at", "spent", "payments")
    )


class Versions(StatefulProcessor):
    """A temporal join with a state of one's own: payments wait for event time, versions stay."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._versions = handle.getListState("versions", "at timestamp, method string")
        self._waiting = handle.getListState("waiting", "payment_id string, amount double, at timestamp")

    # Spark gives these by their names.
    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        for row in rows:
            if row.is_version:
                self._versions.appendValue((row.paid_at, row.method))
            else:
                self._waiting.appendValue((row.payment_id, row.amount, row.paid_at))
                self._handle.registerTimer(int(row.paid_at.timestamp() * 1000))
        return iter(())

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:  # noqa: N802, N803
        now = expiredTimerInfo.getExpiryTimeInMs()
        versions = sorted(self._versions.get(), key=lambda version: version[0])
        waiting = list(self._waiting.get())
        due = [one for one in waiting if int(one[2].timestamp() * 1000) <= now]
        self._waiting.put([one for one in waiting if int(one[2].timestamp() * 1000) > now])
        for payment_id, amount, at in due:
            valid = [method for since, method in versions if since <= at]
            if valid:
                yield Row(payment_id=payment_id, amount=amount, method=valid[-1], paid_at=at)

    def close(self) -> None:
        pass


def temporal_with_state(read: Read) -> DataFrame:
    sides = [
        read(topic).select(
            "customer_id",
            "payment_id",
            "amount",
            "method",
            "paid_at",
            f.lit(topic == CUSTOMERS).alias("is_version"),
        )
        for topic in (TOPIC, CUSTOMERS)
    ]
    return (
        sides[0]
        .union(sides[1])
        .groupBy("customer_id")
        .transformWithState(
            statefulProcessor=Versions(),
            outputStructType="payment_id string, amount double, method string, paid_at timestamp",
            outputMode="Append",
            timeMode="EventTime",
        )
    )


@dataclass(frozen=True)
class Case:
    name: str
    sql: str
    by_hand: Callable[[Read], DataFrame]
    #: How many times the rows of the payments it reads.
    topics: float = 1
    #: The same with PySpark's `transformWithState`: read in part only, since it takes so long.
    with_state: Callable[[Read], DataFrame] | None = None


CASES = (
    Case("dedup", DEDUP, dedup),
    Case("interval join", JOIN, join, topics=2),
    Case("window", WINDOW, window),
    Case("temporal join", TEMPORAL, temporal, 1 + 1 / PER_VERSION, temporal_with_state),
    Case("rolling", ROLLING, rolling, 2),
)
# How many rows the version with `transformWithState` reads.
STATE_ROWS = 60_000


class PlainSink(TopicSink):
    """Spark's own Kafka sink: each batch at least once."""

    def __call__(self, rows: DataFrame, batch: int) -> None:
        written = self.records(rows).select("key", "value").write.format("kafka")
        written.options(**self._access.spark_options()).option("topic", self._output.topic).save()


class Timed(StatementQuery):
    """How long its batches took. To start costs a moment more: schemas, topics, transactions left open."""

    spent = 0.0

    def _take_in(self, told: Mapping[str, Any]) -> None:
        super()._take_in(told)
        self.spent += seconds_of(told)


class Plain(Timed):
    _make_sink = PlainSink


def seconds_of(told: Mapping[str, Any]) -> float:
    """Of a batch that has read something."""
    return float(told["durationMs"]["triggerExecution"]) / 1000 if told["numInputRows"] else 0.0


class Bench:
    def __init__(self, runtime: Runtime, spark: SparkSession, schemas: SchemaSource, rows: int, batch: int):
        self.runtime = runtime
        self.spark = spark
        self.schemas = schemas
        self.rows = rows
        self.batch = batch

    @contextmanager
    def folder(self) -> Iterator[Path]:
        made = self.runtime.data / "scratch" / f"bench-{uuid4().hex}"
        made.mkdir(parents=True)
        yield made
        shutil.rmtree(made)

    def statement(self, case: Case, kind: type[Timed]) -> tuple[float, int]:
        """Seconds of the batches that read and write all of it, and how many rows were written."""
        mark = Watermark("paid_at", 5_000)
        tables = Catalog({name: TableInfo(name, COLUMNS, watermark=mark) for name in (TOPIC, ORDERS)})
        tables.tables[CUSTOMERS] = TableInfo(CUSTOMERS, COLUMNS, ("customer_id",), watermark=mark)
        create = parse_statement(case.sql)
        assert isinstance(create, CreateTable)
        made, plan = plan_create(create, tables, Options())
        assert plan is not None
        output = Output(f"result-{uuid4().hex[:8]}", made.columns, partitions=TASKS)
        with self.folder() as folder:
            uri = folder.as_uri()
            running = Running(uuid4().hex, uri, TASKS, interval_seconds=0.0, max_rows=self.batch)
            job = Job(plan, output)
            query = kind(self.spark, self.runtime.kafka_access, self.schemas, job, running)
            query.start()
            while query.totals.rows_in < int(case.topics * self.rows):
                query.poll()
                if not query.is_active:
                    raise SystemExit(f"{case.name}: {query.failure()}")
                time.sleep(0.02)
            query.stop()
        return query.spent, query.totals.rows_out

    def by_hand(self, case: Case) -> tuple[float, int]:
        seconds, written, _ = self._by_hand(case.name, case.by_hand, int(case.topics * self.rows), self.batch)
        return seconds, written

    def with_state(self, case: Case) -> float:
        """Seconds for as many rows as the others read, by what a part of them took."""
        assert case.with_state is not None
        wanted = int(case.topics * self.rows)
        part = min(wanted, STATE_ROWS)
        seconds, _, read = self._by_hand(case.name, case.with_state, part, part // 3)
        return seconds * wanted / read

    def _by_hand(
        self, name: str, make: Callable[[Read], DataFrame], wanted: int, batch: int
    ) -> tuple[float, int, int]:
        """Seconds, rows written and rows read."""
        session = self.spark.newSession()
        tasks = {"spark.sql.shuffle.partitions": str(TASKS)}
        # Spark refuses windows over rows in streams, and they do what they should within a batch.
        checks = {"spark.sql.streaming.unsupportedOperationCheck": "false"}
        for key, value in {**SESSION, **tasks, **checks}.items():
            session.conf.set(key, value)

        def read(topic: str) -> DataFrame:
            source = (
                session.readStream.format("kafka")
                .option("kafka.bootstrap.servers", self.runtime.kafka)
                .option("subscribe", topic)
                .option("startingOffsets", "earliest")
                .option("maxOffsetsPerTrigger", batch)
                .load()
            )
            value = from_avro(f.expr("substring(value, 6)"), SCHEMA).alias("r")
            return (
                source.select(value, "partition", "offset")
                .select("r.*", "partition", "offset")
                .withWatermark("paid_at", "5 seconds")
            )

        topic = f"result-{uuid4().hex[:8]}"
        made = Topics(self.runtime.kafka).create(topic, TASKS)
        rows = make(read)
        header = f.lit(b"\x00\x00\x00\x00\x01")
        record = f.concat(header, to_avro(f.struct(*rows.columns))).alias("value")
        with self.folder() as folder:
            writer = (
                rows.select(record)
                .writeStream.format("kafka")
                .option("kafka.bootstrap.servers", self.runtime.kafka)
                .option("topic", topic)
                .option("checkpointLocation", folder.as_uri())
                .outputMode("append")
            )
            query = writer.start()
            done = 0
            while done < wanted:
                if not query.isActive:
                    raise SystemExit(f"{name}: {query.exception()}")
                time.sleep(0.02)
                done = sum(progress["numInputRows"] for progress in query.recentProgress)
            seconds = sum(map(seconds_of, query.recentProgress))
            query.stop()
        ends = Offsets(self.runtime.kafka).stable_ends([made])[topic]
        return seconds, sum(ends.values()), done


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--batch", type=int, default=250_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--warm-up", type=int, default=1)
    names = [case.name for case in CASES]
    parser.add_argument("--case", choices=names, action="append", help="again for each that is wanted")
    arguments = parser.parse_args()
    os.environ |= {f"HEADGATE_PORTS__{part}": "0" for part in ("SERVER", "BROKER", "CONNECT")}
    os.environ["HEADGATE_QUERY__START"] = "lazy"
    with tempfile.TemporaryDirectory(prefix="headgate-bench-") as folder, running(folder):
        runtime = Runtime.load(Path(folder))
        print(f"producing {arguments.rows:,} orders and payments", flush=True)
        for topic in (TOPIC, ORDERS):
            produce(runtime.kafka, runtime.registry, arguments.rows, topic=topic)
        versions = arguments.rows // PER_VERSION
        produce(runtime.kafka, runtime.registry, versions, topic=CUSTOMERS, step=PER_VERSION)
        session = build_session(
            runtime.settings, "bench", runtime.settings.spark.memory, catalog_properties(runtime.iceberg)
        )
        with Driver(session), SchemaSource(runtime.registry_access) as schemas:
            bench = Bench(runtime, session, schemas, arguments.rows, arguments.batch)
            for case in CASES:
                if case.name in (arguments.case or names):
                    compare(bench, case, arguments)


def compare(bench: Bench, case: Case, arguments: argparse.Namespace) -> None:
    ways: dict[str, Callable[[], tuple[float, int]]] = {
        "statement": lambda: bench.statement(case, Timed),
        "without transactions": lambda: bench.statement(case, Plain),
        "by hand": lambda: bench.by_hand(case),
    }
    took: dict[str, list[float]] = {name: [] for name in ways}
    rows = int(case.topics * arguments.rows)
    if case.with_state is not None:
        took["transformWithState"] = []
    for number in range(arguments.warm_up + arguments.rounds):
        warm = number >= arguments.warm_up
        said, out = [], dict.fromkeys(ways, 0)
        for name, run in ways.items():
            seconds, out[name] = run()
            said.append(f"{name} {rows / seconds:,.0f}")
            if warm:
                took[name].append(seconds)
        if case.with_state is not None and warm:
            seconds = bench.with_state(case)
            said.append(f"transformWithState {rows / seconds:,.0f}")
            took["transformWithState"].append(seconds)
        print(
            f"{case.name}, {'round' if warm else 'warm-up'} {number + 1}: {', '.join(said)} rows/s",
            flush=True,
        )
        if min(out.values()) < 0.95 * max(out.values()):
            raise SystemExit(f"{case.name}: not the same was written: {out}")
    hand = took["by hand"]
    for name, times in took.items():
        rate = rows / statistics.median(times)
        print(f"{case.name}: {name} median {rate:,.0f} rows/s, {ratio(hand, times):.2f} of by hand")
    paid = ratio(took["statement"], took["without transactions"])
    print(f"{case.name}: with transactions it takes {paid:.2f} of the time without them", flush=True)
    if case.with_state is not None:
        faster = ratio(took["transformWithState"], took["without transactions"])
        print(f"{case.name}: {faster:.1f} times as fast as transformWithState", flush=True)


def ratio(these: list[float], those: list[float]) -> float:
    """The median of the rounds' own ratios: what else the machine does weighs on both sides of a round."""
    return statistics.median(one / other for one, other in zip(these, those, strict=True))


if __name__ == "__main__":
    main()
