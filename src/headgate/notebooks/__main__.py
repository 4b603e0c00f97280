"""`python -m headgate.notebooks FOLDER`: Spark Connect, with what its folder tells and nothing else."""

import argparse
import logging
import sys
from pathlib import Path

from headgate.catalog.client import DELEGATION, VENDED, catalog_properties
from headgate.config import load_settings
from headgate.embedded.entry import stop_on_signal
from headgate.embedded.notebooks import NAME, Told
from headgate.embedded.ports import LOOPBACK
from headgate.embedded.privacy import keep_private
from headgate.spark import CATALOG, Driver, build_session

LOOK_SECONDS = 1.0
log = logging.getLogger("headgate.notebooks")


def main() -> int:
    parser = argparse.ArgumentParser(prog="headgate.notebooks", description=__doc__)
    parser.add_argument("folder", type=Path)
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    return run(parser.parse_args().folder)


def run(folder: Path) -> int:
    """Until told to stop (0), or the driver's JVM is gone (1)."""
    keep_private()
    stop = stop_on_signal()
    told = Told.read(folder)
    settings = load_settings(environment={"HEADGATE_JARS": told.jars}, data=folder)
    connect = {
        "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
        "spark.connect.grpc.binding.address": LOOPBACK,
        "spark.connect.grpc.binding.port": str(told.port),
        "spark.connect.authenticate.token": (folder / "token").read_text(),
        "spark.sql.defaultCatalog": CATALOG,
        f"spark.sql.catalog.{CATALOG}.default-namespace": told.namespace,
    }
    with Driver(build_session(settings, NAME, told.memory, _catalog(told), connect)) as driver:
        while driver.ended is None:
            if stop.wait(LOOK_SECONDS):
                return 0
        log.error("the driver's JVM ended with %s", driver.ended)
        return 1


def _catalog(told: Told) -> dict[str, str]:
    """Keys of storage follow the rights of the credential."""
    shown = {DELEGATION: VENDED}
    if told.credential is not None:
        shown |= {
            "rest.auth.type": "oauth2",
            "oauth2-server-uri": f"{told.iceberg}/v1/oauth/tokens",
            "scope": "catalog",
            "credential": told.credential,
        }
    return catalog_properties(told.iceberg, told.warehouse, None, {**shown, **told.properties})


if __name__ == "__main__":
    sys.exit(main())
