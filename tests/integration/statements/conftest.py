"""Topics and statements of a test's own."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.registry.client import SchemaSource
from tests.integration.statements.bench import Bench
from tests.support.services import Services


@pytest.fixture
def bench(services: Services, spark: SparkSession, tmp_path: Path) -> Iterator[Bench]:
    with SchemaSource(services.runtime.registry) as schemas:
        found = Bench(services.runtime.kafka, services.runtime.registry, schemas, spark, tmp_path)
        yield found
        found.close()
