"""What makes a table of a topic, step by step, in the tests' own process."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.catalog.client import catalog_properties
from headgate.delta.files import files_at
from headgate.engine.publish import KafkaPublisher
from headgate.engine.source import KafkaSource
from headgate.maintain.verify import Verifier
from headgate.model import OnError
from headgate.registry.client import SchemaSource
from headgate.tables.dead_letters import DeadLetters
from headgate.tables.key_index import KeyIndex
from headgate.tables.lake import Lake
from headgate.tables.lane import SparkLane
from headgate.tables.materialize import Materializer
from headgate.tables.plan import Limits
from tests.integration.tables.drive import Drive
from tests.support.services import Services


@pytest.fixture
def drive(
    services: Services, spark: SparkSession, request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[Drive]:
    """A topic of the test's own, and what makes a table of it, step by step. It ends with a verification."""
    runtime = services.runtime
    lake = Lake(spark, catalog_properties(runtime.iceberg, token=runtime.catalog_key), "local")
    source = KafkaSource(runtime.kafka)
    lane = SparkLane(spark, {"kafka.bootstrap.servers": runtime.kafka})
    with SchemaSource(runtime.registry) as schemas:

        def make(drive: Drive) -> Materializer:
            limits = Limits(drive.max_rows, 10**9)
            spec, dead = drive.spec, None
            if spec.on_error is OnError.LOG:
                publisher = KafkaPublisher(runtime.kafka_access, spec.dead_letters_name)
                dead = DeadLetters(spec.dead_letters_name, lake, lane, drive.engine, publisher)
            return Materializer(
                spec, drive.enablement, lake, lane, schemas, source, limits, dead, drive.index
            )

        name = request.node.name.replace("[", "-").strip("]")
        driven = Drive(runtime, source, lake, make, f"drive.{name}", KeyIndex(tmp_path / "index"))
        yield driven
        driven.check_whole(Verifier(spark, lake, lane, source, files_at))
        driven.index.close()
