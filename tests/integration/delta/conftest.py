"""Tables that are changed by hand, each test's own."""

from collections.abc import Callable

import pytest
from pyspark.sql import SparkSession

from headgate.catalog.client import catalog_properties
from headgate.tables.lake import Lake
from tests.integration.delta.history import History
from tests.support.services import Services


@pytest.fixture
def history(
    services: Services, spark: SparkSession, request: pytest.FixtureRequest
) -> Callable[..., History]:
    runtime = services.runtime
    lake = Lake(spark, catalog_properties(runtime.iceberg, token=runtime.catalog_key), "local")
    name = request.node.name.replace("[", "-").strip("]")

    def make(suffix: str = "", **properties: str) -> History:
        return History(spark, lake, services.runtime.iceberg, f"delta.{name}{suffix}", **properties)

    return make
