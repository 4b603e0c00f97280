"""`python -m headgate.query`: started on demand, with a memory limit of its own."""

import logging
import os
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager

from pyspark.sql import SparkSession

from headgate.adhoc.app import Door, create_app
from headgate.adhoc.queries import Queries
from headgate.catalog.client import DELEGATION, VENDED, catalog_properties, key_properties
from headgate.embedded.entry import enter, stop_on_signal
from headgate.embedded.ports import LOOPBACK
from headgate.embedded.runtime import Runtime
from headgate.embedded.secrets import OPERATOR_KEY, secret
from headgate.kafka.access import SPARK_REDACTION
from headgate.registry.client import SchemaSource
from headgate.spark import CATALOG, Driver, build_session
from headgate.storage import Places, Storages
from headgate.store import Store
from headgate.tables.lane import SESSION as LANE

NAME = "query"
BEAT_SECONDS = 2.0
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
    # By the environment: an argument could be read by every user of the machine.
    os.environ["SPARK_CONNECT_AUTHENTICATE_TOKEN"] = secret(runtime.data, "connect")
    properties = catalog_properties(
        runtime.iceberg,
        settings.catalog.warehouse,
        None,
        # Keys of storage follow the rights of who asks.
        {DELEGATION: VENDED, **settings.catalog.properties},
    )
    session = build_session(settings, NAME, settings.query.memory, properties, _connect_settings(runtime))
    with closing(store), Driver(session) as driver, asking(runtime, driver.session) as door:
        log.info("ready at %s", runtime.spark_connect)
        addresses = {"address": runtime.spark_connect, "queries": door.address}
        while store.keep(NAME, instance, "ready", addresses):
            if driver.ended is not None:
                log.error("the driver's JVM ended with %s", driver.ended)
                return 1
            if stop.wait(BEAT_SECONDS):
                break
    return 0


@contextmanager
def asking(runtime: Runtime, spark: SparkSession) -> Iterator[Door]:
    """Where the server brings the SELECTs that users ask."""
    settings, token = runtime.settings, secret(runtime.data, "connect")
    queries = Queries(
        spark,
        runtime.kafka_access,
        SchemaSource(runtime.registry_access),
        settings.secret,
        f"{settings.checkpoints.rstrip('/')}/adhoc",
        settings.statements,
        # A catalog of yours is told nothing of ours.
        key_properties(runtime.iceberg, secret(runtime.data, OPERATOR_KEY))
        if settings.catalog.uri is None
        else {},
    )
    with Door(create_app(queries, token), LOOPBACK) as door:
        try:
            yield door
        finally:
            queries.close()


def _connect_settings(runtime: Runtime) -> dict[str, str]:
    return {
        # How Kafka is read; names of columns stay as free as Spark's users know them.
        **{key: value for key, value in LANE.items() if key.startswith("spark.kafka.")},
        **SPARK_REDACTION,
        "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
        "spark.connect.grpc.binding.address": LOOPBACK,
        "spark.connect.grpc.binding.port": str(runtime.connect_port),
        "spark.sql.defaultCatalog": CATALOG,
        f"spark.sql.catalog.{CATALOG}.default-namespace": runtime.settings.namespace,
    }
