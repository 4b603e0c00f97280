"""The same drive as the tests of tables, and what maintains its table."""

import pytest
from pyspark.sql import SparkSession

from headgate.maintain.actions import Actions
from tests.integration.maintain.upkeep import Upkeep
from tests.integration.tables.conftest import drive
from tests.integration.tables.drive import Drive

__all__ = ["drive"]


@pytest.fixture
def upkeep(drive: Drive, spark: SparkSession) -> Upkeep:
    return Upkeep(drive, Actions(spark, drive.lake))
