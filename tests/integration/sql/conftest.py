"""Plans run in the session that all tests share."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.integration.sql.running import Running


@pytest.fixture(scope="module")
def running(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Running:
    folder: Path = tmp_path_factory.mktemp("streams")
    return Running(spark, folder)
