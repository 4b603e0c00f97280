"""`python -m headgate.engine`: the Spark driver that writes the tables."""

import hashlib
import logging
import os
import threading
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Protocol

from pyspark.sql import SparkSession

from headgate.catalog.client import catalog_properties
from headgate.embedded.entry import enter, stop_on_signal
from headgate.embedded.runtime import Runtime
from headgate.engine.loop import Loop
from headgate.engine.publish import KafkaPublisher
from headgate.engine.source import KafkaSource
from headgate.engine.statements import StatementLoop
from headgate.engine.task import BACKOFF
from headgate.errors import TransientError
from headgate.kafka.access import SPARK_REDACTION
from headgate.maintain.service import Maintenance
from headgate.maintain.verify import Verifier
from headgate.model import OnError, TableSpec
from headgate.publication.publisher import Publisher
from headgate.publication.source import LakeTables
from headgate.registry.client import SchemaSource
from headgate.spark import Driver, build_session
from headgate.statements.execute import job_of
from headgate.statements.runnable import Job
from headgate.storage import Places, Storages
from headgate.store import StatementRecord, Statements, Store, TableRecord
from headgate.tables.dead_letters import DeadLetters
from headgate.tables.key_index import KeyIndex
from headgate.tables.lake import Lake
from headgate.tables.lane import SESSION, SparkLane
from headgate.tables.materialize import Materializer
from headgate.tables.mirror import DeltaMirror
from headgate.tables.plan import Limits

NAME = "engine"
log = logging.getLogger("headgate.engine")


def main() -> int:
    runtime, instance = enter("headgate.engine", __doc__)
    return run(runtime, instance, stop_on_signal())


def run(runtime: Runtime, instance: str, stop: threading.Event) -> int:
    """Until told to stop or superseded by another engine (0), or the driver's JVM is gone (1)."""
    settings = runtime.settings
    store = Store.open(settings.store_url)
    store.beat(NAME, instance, os.getpid(), "starting")
    places = Places.of(settings, Storages(store.engine))
    properties = catalog_properties(
        runtime.iceberg,
        settings.catalog.warehouse,
        runtime.catalog_key,
        # Ours says with each table how its storage is reached.
        {**({} if settings.catalog.uri is None else places.default_settings), **settings.catalog.properties},
    )
    session = build_session(settings, NAME, settings.spark.memory, properties, {**SESSION, **SPARK_REDACTION})
    with closing(store), Driver(session) as driver:
        lake = open_lake(driver.session, properties, settings.namespace, places, stop)
        if lake is None:
            return 0
        loop = make_loop(runtime, store, driver.session, lake, places, instance)
        ended = threading.Event()
        statements = threading.Thread(
            target=make_statements(runtime, store, driver.session).run, args=(ended,), name="statements"
        )
        statements.start()
        publisher = make_publisher(runtime, store, driver.session, lake)
        # It may be waiting for somebody else's catalog: nobody waits for it.
        threading.Thread(target=publisher.run, args=(ended,), name="publication", daemon=True).start()
        log.info("ready")
        try:
            return attend(
                loop,
                lambda: store.keep(NAME, instance, "ready"),
                lambda: driver.ended,
                stop,
                settings.engine.tick_seconds,
            )
        finally:
            ended.set()
            loop.close()
            statements.join()


class Rounds(Protocol):
    """The tables as they are looked after: `Loop`."""

    def tick(self) -> None: ...

    def rest(self, seconds: float) -> None: ...


def attend(
    loop: Rounds,
    keep: Callable[[], bool],
    driver_ended: Callable[[], int | None],
    stop: threading.Event,
    tick_seconds: float,
) -> int:
    """Round after round, until told to stop or another engine has taken over (0), or the JVM is gone (1).

    `keep` says that this engine lives, and whether it still is the one. A round that raises, whatever it met,
    is followed by another: batches that run go on meanwhile, and commits of a replaced engine are refused.
    """
    failures = 0
    while not stop.is_set():
        try:
            if not keep():
                log.warning("another engine has taken over; this one steps down")
                return 0
            if (code := driver_ended()) is not None:
                log.error("the driver's JVM ended with %s", code)
                return 1
            loop.tick()
            loop.rest(tick_seconds)
            failures = 0
        except Exception:
            failures += 1
            pause = BACKOFF.after(failures)
            log.exception("tables are looked at again in %.1f s", pause)
            stop.wait(pause)
    return 0


def make_statements(runtime: Runtime, store: Store, spark: SparkSession) -> StatementLoop:
    settings, access = runtime.settings, runtime.kafka_access
    schemas = SchemaSource(runtime.registry_access)

    def make(record: StatementRecord) -> Job:
        return job_of(record, settings.secret)

    statements = Statements(store.engine)
    return StatementLoop(statements, spark, access, schemas, make, settings.checkpoints, settings.statements)


def make_publisher(runtime: Runtime, store: Store, spark: SparkSession, lake: Lake) -> Publisher:
    settings = runtime.settings
    tables = LakeTables(spark, lake)
    interval = settings.publication.interval
    return Publisher(store, tables, settings.cluster.name, settings.secret, interval)


def make_loop(
    runtime: Runtime, store: Store, spark: SparkSession, lake: Lake, places: Places, instance: str
) -> Loop:
    settings = runtime.settings.engine
    access = runtime.kafka_access
    source = KafkaSource(access)
    schemas = SchemaSource(runtime.registry_access)
    limits = Limits(settings.max_batch_rows, settings.max_batch_bytes)
    lane = SparkLane(spark, access.spark_options())
    kept: dict[str, DeadLetters] = {}
    indexes: dict[str, KeyIndex] = {}
    mirrors: dict[str, DeltaMirror] = {}

    def mirror(topic: str) -> DeltaMirror:
        if topic not in mirrors:
            mirrors[topic] = DeltaMirror(spark, lake, topic, places.files)
        return mirrors[topic]

    def dead_letters(spec: TableSpec) -> DeadLetters | None:
        if spec.on_error is not OnError.LOG:
            return None
        name = spec.dead_letters_name
        if name not in kept:
            kept[name] = DeadLetters(name, lake, lane, instance, KafkaPublisher(access, name))
        return kept[name]

    def make(record: TableRecord) -> Materializer:
        spec = record.spec
        enablement = repr(record.created_at)
        index = indexes.get(spec.topic)
        if index is None:
            # Of a topic's name only what a folder may be named remains; the table itself is told by its id.
            folder = hashlib.sha256(spec.topic.encode()).hexdigest()[:32]
            index = indexes[spec.topic] = KeyIndex(runtime.settings.data / "indexes" / folder)
        dead = dead_letters(spec)

        def warn(text: str) -> None:
            log.warning("table '%s': %s", spec.topic, text)
            store.log(spec.topic, "warning", text)

        delta = mirror(spec.topic)
        return Materializer(spec, enablement, lake, lane, schemas, source, limits, dead, index, delta, warn)

    maintenance = Maintenance(spark, lake, runtime.settings.maintenance, store, mirror)
    verifier = Verifier(spark, lake, lane, source, places.files)
    return Loop(store, source, lake, make, settings, runtime.settings.tables, maintenance, verifier)


def open_lake(
    spark: SparkSession, properties: Mapping[str, str], namespace: str, places: Places, stop: threading.Event
) -> Lake | None:
    """The catalog may come up after the engine does; None when the engine is to stop before it has."""
    while not stop.is_set():
        try:
            return Lake(spark, properties, namespace, places)
        except TransientError as error:
            log.warning("waiting for the catalog: %s", error)
            stop.wait(1)
    return None
