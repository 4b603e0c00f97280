"""`python -m headgate.engine`: the Spark driver that writes the tables."""

import argparse
import logging
import os
import signal
import sys
import threading
import time
import uuid
from pathlib import Path
from typing import Any

from headgate.catalog.client import catalog_properties
from headgate.embedded.runtime import Runtime
from headgate.engine.loop import Loop
from headgate.engine.source import KafkaSource
from headgate.errors import TransientError
from headgate.registry.client import SchemaSource
from headgate.spark import build_session
from headgate.store import Store, TableRecord
from headgate.tables.lake import Lake
from headgate.tables.lane import SparkLane
from headgate.tables.materialize import Materializer
from headgate.tables.plan import Limits

NAME = "engine"
log = logging.getLogger("headgate.engine")


def main() -> int:
    parser = argparse.ArgumentParser(prog="headgate.engine", description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--config", type=Path)
    parser.add_argument("--instance", default=str(uuid.uuid4()))
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    # Libraries speak only of what goes wrong.
    logging.getLogger("httpx2").setLevel(logging.WARNING)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    return run(Runtime.load(arguments.data), arguments.instance, stop)


def run(runtime: Runtime, instance: str, stop: threading.Event) -> int:
    """Until told to stop (0), superseded by another engine (0), or the driver's JVM is gone (1)."""
    settings = runtime.settings
    store = Store.open(settings.store_url)
    store.beat(NAME, instance, os.getpid(), "starting")
    properties = catalog_properties(
        runtime.iceberg, settings.catalog.warehouse, None, settings.catalog.properties
    )
    # Names of fields and tables are taken as they are written.
    spark = build_session(
        settings, NAME, settings.spark.memory, properties, {"spark.sql.caseSensitive": "true"}
    )
    gateway: Any = spark.sparkContext._gateway
    try:
        lake = _open_lake(spark, properties, settings.namespace, stop)
        if lake is None:
            return 0
        source = KafkaSource(runtime.kafka)
        schemas = SchemaSource(runtime.registry)
        limits = Limits(settings.engine.max_batch_rows, settings.engine.max_batch_bytes)

        def make(record: TableRecord) -> Materializer:
            lane = SparkLane(spark, runtime.kafka)
            return Materializer(record.spec, repr(record.created_at), lake, lane, schemas, source, limits)

        loop = Loop(store, source, lake, make, settings.engine)
        log.info("ready")
        try:
            while not stop.is_set():
                if not store.keep(NAME, instance, "ready"):
                    log.warning("another engine has taken over; this one steps down")
                    return 0
                if gateway.proc.poll() is not None:
                    log.error("the driver's JVM ended with %s", gateway.proc.returncode)
                    return 1
                loop.tick()
                loop.wake.wait(settings.engine.tick_seconds)
                loop.wake.clear()
        finally:
            loop.close()
        return 0
    finally:
        if gateway.proc.poll() is None:
            spark.stop()
            gateway.proc.stdin.close()
        store.close()


def _open_lake(spark: Any, properties: dict[str, str], namespace: str, stop: threading.Event) -> Lake | None:
    """The catalog may come up after the engine does."""
    while not stop.is_set():
        try:
            return Lake(spark, properties, namespace)
        except TransientError as error:
            log.warning("waiting for the catalog: %s", error)
            time.sleep(1)
    return None


if __name__ == "__main__":
    sys.exit(main())
