"""`make bench-upsert`: seconds for a batch of random keys on tables of growing size, beside plain MERGE INTO.

One table grows: rows are loaded up to each size, and batches of random keys are measured there. A second
table with the same rows takes the same records by `MERGE INTO` (format version 3, merge-on-read), in the same
session. Fifty batches come before the first measurement, so that small files and deletes are there.
"""

import argparse
import hashlib
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as f
from pyspark.sql.avro.functions import from_avro

from bench.payments import SCHEMA, encode
from headgate.catalog.client import catalog_properties
from headgate.embedded.runtime import Runtime
from headgate.engine.source import KafkaSource
from headgate.kafka.topics import Topics
from headgate.model import Batch, RecordFormat, TableMode, TableSpec
from headgate.registry.client import SchemaSource
from headgate.spark import CATALOG, build_session
from headgate.tables.key_index import KeyIndex
from headgate.tables.lake import Lake
from headgate.tables.lane import SESSION, SparkLane
from headgate.tables.materialize import Materializer
from headgate.tables.plan import Limits

HEADGATE = str(Path(sys.executable).parent / "headgate")
TOPIC = "accounts"
MERGED = f"{CATALOG}.plain.accounts"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000_000, 4_000_000, 16_000_000])
    parser.add_argument("--batch", type=int, default=100_000)
    parser.add_argument("--earlier", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    os.environ |= {f"HEADGATE_PORTS__{part}": "0" for part in ("SERVER", "BROKER", "CONNECT")}
    os.environ["HEADGATE_QUERY__START"] = "lazy"
    with tempfile.TemporaryDirectory(prefix="headgate-bench-") as folder:
        up = subprocess.Popen([HEADGATE, "up", "--data", folder], stdout=subprocess.PIPE, text=True)
        try:
            for line in up.stdout or ():
                if line.startswith("READY"):
                    break
            Bench(Path(folder), arguments).run()
        finally:
            up.terminate()
            up.wait(timeout=60)


class Bench:
    """The table, its likeness, and the topic of both."""

    def __init__(self, data: Path, arguments: argparse.Namespace) -> None:
        self._arguments = arguments
        self._runtime = runtime = Runtime.load(data)
        settings = runtime.settings
        properties = catalog_properties(runtime.iceberg, token=runtime.catalog_key)
        self._spark = build_session(settings, "bench", "4g", properties, SESSION)
        self._lake = Lake(self._spark, properties, "local")
        self._lane = SparkLane(self._spark, {"kafka.bootstrap.servers": runtime.kafka})
        self._source = KafkaSource(runtime.kafka)
        spec = TableSpec(
            TOPIC, mode=TableMode.UPSERT, key_format=RecordFormat.STRING, metadata=(), partition=()
        )
        self._table = Materializer(
            spec,
            "bench",
            self._lake,
            self._lane,
            SchemaSource(runtime.registry),
            self._source,
            Limits(2_000_000, 10**10),
            None,
            KeyIndex(data / "bench-index"),
        )
        Topics(runtime.kafka).create(TOPIC, 4)
        client = SchemaRegistryClient({"url": runtime.registry})
        schema_id: int = client.register_schema(f"{TOPIC}-value", Schema(SCHEMA, "AVRO"))
        self._header = b"\x00" + schema_id.to_bytes(4, "big")
        self._random = random.Random(1)
        self._rows = 0
        self._records = 0

    def run(self) -> None:
        results: list[tuple[int, float, float]] = []
        for number, size in enumerate(self._arguments.sizes):
            self._grow(size)
            if number == 0:
                for _ in range(self._arguments.earlier):
                    self._random_batch()
                    self._apply()
                print(f"{self._arguments.earlier} batches of {self._arguments.batch:,} are in", flush=True)
            self._copy()
            ours, merge = [], []
            for turn in range(self._arguments.rounds + 1):
                self._random_batch()
                seconds, batch = self._apply()
                other = self._merge(batch)
                if turn:  # the first warms up
                    ours.append(seconds)
                    merge.append(other)
                print(f"  {size:,} rows: headgate {seconds:.2f} s, MERGE {other:.2f} s", flush=True)
            self._check(size)
            results.append((size, statistics.median(ours), statistics.median(merge)))
        first = results[0][1]
        for size, mine, other in results:
            print(
                f"{size:>12,} rows: headgate {mine:.2f} s a batch ({mine / first:.2f} of the first), "
                f"MERGE INTO {other:.2f} s, ratio {other / mine:.2f}"
            )

    def _grow(self, size: int) -> None:
        started = time.monotonic()
        self._produce(range(self._rows, size))
        self._rows = size
        produced = time.monotonic()
        self._apply()
        print(
            f"{size:,} rows: produced in {produced - started:.0f} s, "
            f"loaded in {time.monotonic() - produced:.0f} s",
            flush=True,
        )

    def _random_batch(self) -> None:
        self._produce(self._random.randrange(self._rows) for _ in range(self._arguments.batch))

    def _produce(self, numbers: Iterable[int]) -> None:
        producer = Producer(
            {
                "bootstrap.servers": self._runtime.kafka,
                "enable.idempotence": True,
                "linger.ms": 50,
                "compression.type": "lz4",
                "queue.buffering.max.messages": 1_000_000,
            }
        )
        for number in numbers:
            self._records += 1
            key = hashlib.sha1(b"%d" % number).hexdigest()
            while True:
                try:
                    producer.produce(TOPIC, self._header + encode(self._records), key)
                    break
                except BufferError:
                    producer.poll(0.1)
            if self._records % 10_000 == 0:
                producer.poll(0)
        if producer.flush(120):
            raise SystemExit("some records were not acknowledged")

    def _apply(self) -> tuple[float, Batch]:
        """Everything that is in the topic; how long it took."""
        view = self._source.view(TOPIC)
        started = time.monotonic()
        last = None
        while (report := self._table.run(view)) is not None:
            last = report.batch
        if last is None:
            raise SystemExit("there was nothing to write")
        return time.monotonic() - started, last

    def _copy(self) -> None:
        """The other table, with what ours has, in files of the same sizes as a plain writer makes them."""
        sql = self._spark.sql
        sql(f"CREATE NAMESPACE IF NOT EXISTS {CATALOG}.plain")
        sql(f"DROP TABLE IF EXISTS {MERGED} PURGE")
        sql(
            f"CREATE TABLE {MERGED} USING iceberg TBLPROPERTIES ('format-version' = '3', "
            "'write.merge.mode' = 'merge-on-read', 'write.update.mode' = 'merge-on-read', "
            "'write.delete.mode' = 'merge-on-read') AS "
            "SELECT payment_id, order_id, customer_id, amount, method, paid_at, key "
            f"FROM {CATALOG}.local.{TOPIC}"
        )

    def _merge(self, batch: Batch) -> float:
        started = time.monotonic()
        latest = Window.partitionBy("key").orderBy(f.desc("partition"), f.desc("offset"))
        changes = (
            self._lane.read(batch, TOPIC)
            .select(
                from_avro(f.expr("substring(value, 6)"), SCHEMA).alias("r"),
                f.col("key").cast("string").alias("key"),
                "partition",
                "offset",
            )
            .withColumn("rank", f.row_number().over(latest))
            .where("rank = 1")
            .select("r.*", "key")
        )
        changes.createOrReplaceTempView("changes")
        self._spark.sql(
            f"MERGE INTO {MERGED} t USING changes c ON t.key = c.key "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )
        return time.monotonic() - started

    def _check(self, size: int) -> None:
        """Both tables say the same, with one row for each key."""
        ours = summed(self._spark, f"{CATALOG}.local.{TOPIC}")
        other = summed(self._spark, MERGED)
        if ours != other or ours[0] != size:
            raise SystemExit(f"the tables differ: {ours}, {other}, {size} keys")


def summed(spark: SparkSession, table: str) -> list[Any]:
    found = spark.sql(
        "SELECT count(*), count(DISTINCT key), sum(crc32(concat_ws(',', key, payment_id, paid_at))) "
        f"FROM {table}"
    )
    return list(found.collect()[0])


if __name__ == "__main__":
    main()
