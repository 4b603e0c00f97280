"""One Spark session for all tests that need one.

PySpark changes py4j for the whole process when a session is made: tests that speak to the catalog's own JVM
come before these, as their folders do.
"""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from headgate.catalog.client import catalog_properties
from headgate.spark import READS_DELTA, Driver, build_session
from headgate.tables.lane import SESSION
from tests.support.services import Services

# Rows of a test are few, and a core or two has them all: two hundred pieces of them are only work.
SMALL = {"spark.sql.shuffle.partitions": "2"}


@pytest.fixture(scope="session")
def spark(services: Services) -> Iterator[SparkSession]:
    properties = catalog_properties(services.runtime.iceberg, token=services.runtime.catalog_key)
    extra = {**SESSION, **READS_DELTA, **SMALL}
    session = build_session(services.runtime.settings, "tests", "1g", properties, extra)
    with Driver(session):
        yield session
