"""`python -m headgate.query`: started on demand, with a memory limit of its own."""

import argparse
import logging
import os
import signal
import sys
import threading
import uuid
from pathlib import Path
from typing import Any

from headgate.catalog.client import catalog_properties
from headgate.embedded.ports import LOOPBACK
from headgate.embedded.runtime import Runtime
from headgate.embedded.secrets import secret
from headgate.spark import CATALOG, build_session
from headgate.store import Store

NAME = "query"
BEAT_SECONDS = 2.0
log = logging.getLogger("headgate.query")


def main() -> int:
    parser = argparse.ArgumentParser(prog="headgate.query", description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--config", type=Path)
    parser.add_argument("--instance", default=str(uuid.uuid4()))
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    return run(Runtime.load(arguments.data), arguments.instance, stop)


def run(runtime: Runtime, instance: str, stop: threading.Event) -> int:
    settings = runtime.settings
    store = Store.open(settings.store_url)
    store.beat(NAME, instance, os.getpid(), "starting")
    # By the environment: an argument could be read by every user of the machine.
    os.environ["SPARK_CONNECT_AUTHENTICATE_TOKEN"] = secret(runtime.data, "connect")
    properties = catalog_properties(
        runtime.iceberg, settings.catalog.warehouse, None, settings.catalog.properties
    )
    spark = build_session(settings, NAME, settings.query.memory, properties, _connect_settings(runtime))
    gateway: Any = spark.sparkContext._gateway
    log.info("ready at %s", runtime.spark_connect)
    try:
        while store.keep(NAME, instance, "ready", {"address": runtime.spark_connect}):
            if gateway.proc.poll() is not None:
                log.error("the driver's JVM ended with %s", gateway.proc.returncode)
                return 1
            if stop.wait(BEAT_SECONDS):
                break
        return 0
    finally:
        if gateway.proc.poll() is None:
            spark.stop()
            gateway.proc.stdin.close()
        store.close()


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
