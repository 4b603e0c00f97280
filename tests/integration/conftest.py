"""One Spark session for all tests that need one.

PySpark changes py4j for the whole process when a session is made: tests that speak to the catalog's own JVM
come before these, as their folders do.
"""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from headgate.catalog.client import catalog_properties
from headgate.spark import Driver
from tests.support.services import Services
from tests.support.spark import session_of_tests
from tests.support.warm.lease import Lease
from tests.support.warm.spark import use_kept_jvm


@pytest.fixture(scope="session")
def spark(services: Services, warm: Lease | None) -> Iterator[SparkSession]:
    runtime = services.runtime
    properties = catalog_properties(runtime.iceberg, token=runtime.catalog_key)
    if warm is not None:
        use_kept_jvm(warm)
        with session_of_tests(runtime.settings, properties) as session:
            yield session
        return
    with Driver(session_of_tests(runtime.settings, properties)) as driver:
        yield driver.session
