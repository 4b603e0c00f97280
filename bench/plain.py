"""The yardstick: plain Spark Structured Streaming, Kafka to `from_avro` to Iceberg, in a driver of its own.

Reads a line with a round's number, runs it, prints the seconds it took.
"""

import shutil
import sys
import time
from pathlib import Path

from pyspark.sql import functions as f
from pyspark.sql.avro.functions import from_avro

from bench.payments import SCHEMA, TOPIC
from headgate.catalog.client import catalog_properties
from headgate.embedded.runtime import Runtime
from headgate.spark import CATALOG, build_session


def main() -> None:
    runtime = Runtime.load(Path(sys.argv[1]))
    settings = runtime.settings
    properties = catalog_properties(runtime.iceberg)
    spark = build_session(settings, "plain", settings.spark.memory, properties)
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {CATALOG}.plain")
    print("ready", flush=True)
    for line in sys.stdin:
        table = f"{CATALOG}.plain.payments_{line.strip()}"
        checkpoint = settings.data / "scratch" / f"plain-{line.strip()}"
        spark.sql(
            f"CREATE TABLE {table} (payment_id string, order_id int, customer_id int, amount double, "
            "method string, paid_at timestamp) USING iceberg TBLPROPERTIES ('format-version' = '3')"
        )
        started = time.monotonic()
        query = (
            spark.readStream.format("kafka")
            .option("kafka.bootstrap.servers", runtime.kafka)
            .option("subscribe", TOPIC)
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", settings.engine.max_batch_rows)
            .load()
            .select(from_avro(f.expr("substring(value, 6)"), SCHEMA).alias("r"))
            .select("r.*")
            .writeStream.format("iceberg")
            .outputMode("append")
            .trigger(availableNow=True)
            .option("checkpointLocation", str(checkpoint))
            .toTable(table)
        )
        query.awaitTermination()
        seconds = time.monotonic() - started
        rows = spark.table(table).count()
        spark.sql(f"DROP TABLE {table} PURGE")
        shutil.rmtree(checkpoint)
        print(f"{seconds} {rows}", flush=True)


if __name__ == "__main__":
    main()
