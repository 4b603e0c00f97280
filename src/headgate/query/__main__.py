"""`python -m headgate.query`: started on demand, with a memory limit of its own."""

import logging
import os
import sys
import threading
from contextlib import closing

from headgate.catalog.client import DELEGATION, VENDED, catalog_properties
from headgate.embedded.entry import enter, stop_on_signal
from headgate.embedded.ports import LOOPBACK
from headgate.embedded.runtime import Runtime
from headgate.embedded.secrets import secret
from headgate.spark import CATALOG, Driver, build_session
from headgate.store import Store

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
    with closing(store), Driver(session) as driver:
        log.info("ready at %s", runtime.spark_connect)
        while store.keep(NAME, instance, "ready", {"address": runtime.spark_connect}):
            if driver.ended is not None:
                log.error("the driver's JVM ended with %s", driver.ended)
                return 1
            if stop.wait(BEAT_SECONDS):
                break
    return 0


def _connect_settings(runtime: Runtime) -> dict[str, str]:
    return {
        "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
        "spark.connect.grpc.binding.address": LOOPBACK,
        "spark.connect.grpc.binding.port": str(runtime.connect_port),
        "spark.sql.defaultCatalog": CATALOG,
        f"spark.sql.catalog.{CATALOG}.default-namespace": runtime.settings.namespace,
    }


if __name__ == "__main__":
    sys.exit(main())
