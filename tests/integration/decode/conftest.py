"""Readers in real Spark jobs. Tests of tables find the same session again, and add their catalog to it."""

import os
import sys
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from headgate.config import load_settings
from headgate.spark import Driver, build_session


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    # Workers need the packages of this Python, not of the first one on the path.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = load_settings(environment={}, data=tmp_path_factory.mktemp("decode") / "data")
    with Driver(build_session(settings, "tests", "1g", {})) as driver:
        yield driver.session
