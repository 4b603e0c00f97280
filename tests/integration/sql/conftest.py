"""Plans run in the session that all tests share."""

import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.integration.sql.running import Running


@pytest.fixture
def running(spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> Running:
    return Running(spark, tmp_path, random.Random(request.node.name))
