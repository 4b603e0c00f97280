"""`python -m headgate.query`: started on demand, with a memory limit of its own."""

import logging
import os
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager

from pyspark.sql import SparkSession

from headgate.adhoc.app import Door, create_app
from headgate.adhoc.history import HistoryWriter
from headgate.adhoc.queries import Queries
from headgate.catalog.client import DELEGATION, VENDED, catalog_properties, key_properties
from headgate.embedded.entry import enter, stop_on_signal
from headgate.embedded.ports import LOOPBACK
from headgate.embedded.runtime import Runtime
from headgate.embedded.secrets import QUERY_KEY, secret
from headgate.kafka.access import SPARK_REDACTION
from headgate.query.sessions import HARDENED, LakeSessions
from headgate.query.warm import warm_up
from headgate.registry.client import SchemaSource
from headgate.spark import Driver, build_session
from headgate.storage import Places, Storages
from headgate.store import Store
from headgate.store.queries import QueryHistory
from headgate.tables.lane import SESSION as LANE

NAME = "query"
BEAT_SECONDS = 2.0
# The driver holds the rows of one part at a time: parts are a fraction of its heap, also as Arrow.
SMALL_PARTS = {
    "spark.sql.iceberg.read.split-size": str(32 * 1024**2),
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": str(16 * 1024**2),
    # The first rows of an order are kept in a task's memory up to so many; more are sorted on disk.
    "spark.sql.execution.topKSortFallbackThreshold": "200000",
}
log = logging.getLogger("headgate.query")


def main() -> int:
    runtime, instance = enter("headgate.query", __doc__)
    return run(runtime, instance, stop_on_signal())


def run(runtime: Runtime, instance: str, stop: threading.Event) -> int:
    """Until told to stop or superseded (0), or the driver's JVM is gone (1)."""
    settings = runtime.settings
    store = Store.open(settings.store_url)
    store.beat(NAME, instance, os.getpid(), "starting")
    Places.of(settings, Storages(store.engine))
    properties = catalog_properties(
        runtime.iceberg,
        settings.catalog.warehouse,
        None,
        # Keys of storage follow the rights of who asks. A session that has no token of its own opens nothing:
        # without any, the catalog would take it for whoever runs Headgate.
        {**_nobody(runtime), DELEGATION: VENDED, **settings.catalog.properties},
    )
    session = build_session(settings, NAME, settings.query.memory, properties, _query_settings())
    kept = settings.query
    history = HistoryWriter(QueryHistory(store.engine), instance, kept.keep, kept.keep_count)
    with closing(store), Driver(session) as driver, asking(runtime, driver.session, history) as door:
        log.info("ready at %s", door.address)
        if settings.query.start == "eager":
            warm_up(driver.session)
        addresses = {"queries": door.address}
        while store.keep(NAME, instance, "ready", addresses):
            if driver.ended is not None:
                log.error("the driver's JVM ended with %s", driver.ended)
                return 1
            if stop.wait(BEAT_SECONDS):
                break
    return 0


@contextmanager
def asking(runtime: Runtime, spark: SparkSession, history: HistoryWriter) -> Iterator[Door]:
    """Where the server brings the SELECTs that users ask."""
    settings, token = runtime.settings, secret(runtime.data, QUERY_KEY)
    queries = Queries(
        spark,
        runtime.kafka_access,
        SchemaSource(runtime.registry_access),
        settings.secret,
        f"{settings.checkpoints.rstrip('/')}/adhoc",
        settings.statements,
        LakeSessions(spark, settings.namespace),
        # A catalog of yours is told nothing of ours.
        key_properties(runtime.iceberg) if settings.catalog.uri is None else {},
        history,
    )
    with Door(create_app(queries, token), LOOPBACK) as door:
        try:
            yield door
        finally:
            queries.close()


def _nobody(runtime: Runtime) -> dict[str, str]:
    return key_properties(runtime.iceberg, "nobody") if runtime.settings.catalog.uri is None else {}


def _query_settings() -> dict[str, str]:
    """The catalog of the lake is no default here: SELECTs on topics ask it for nothing, with no token."""
    return {
        # How Kafka is read; names of columns stay as free as Spark's users know them.
        **{key: value for key, value in LANE.items() if key.startswith("spark.kafka.")},
        **SPARK_REDACTION,
        **HARDENED,
        **SMALL_PARTS,
    }
