"""The Spark session of the integration tests."""

from collections.abc import Mapping

from pyspark.sql import SparkSession

from headgate.config import Settings
from headgate.spark import READS_DELTA, build_session
from headgate.tables.lane import SESSION

# Rows of a test are few, and a core or two has them all: two hundred pieces of them are only work.
SMALL = {"spark.sql.shuffle.partitions": "2"}


def session_of_tests(settings: Settings, catalog: Mapping[str, str]) -> SparkSession:
    """A session that reads Iceberg and Delta tables, with the catalog of these properties."""
    return build_session(settings, "tests", "1g", catalog, {**SESSION, **READS_DELTA, **SMALL})
