"""Scenarios in each format: Headgate's readers give the same rows, and a registry takes the schemas."""

from typing import Any

import httpx
import pytest
from pyspark.sql import SparkSession

from headgate.datagen import GeneratorSpec, produce
from headgate.datagen.formats import Format, registered_schema, value_encoder
from headgate.decode.avro import AvroReader
from headgate.decode.json_schema import JsonSchemaReader
from headgate.decode.protobuf import ProtobufReader
from headgate.embedded.broker import Broker
from headgate.kafka import Offsets, Topics
from headgate.kafka.records import committed_records
from tests.integration.decode.json_reading import read
from tests.support.ledger import canonical

READERS = {Format.AVRO: AvroReader, Format.JSON: JsonSchemaReader, Format.PROTOBUF: ProtobufReader}


@pytest.mark.parametrize(
    ("name", "topic"), [("orders", "orders"), ("orders", "payments"), ("sales", "sales")]
)
def test_readers_give_the_same_rows_of_each_format(spark: SparkSession, name: str, topic: str) -> None:
    scenario = GeneratorSpec(name, seed=6, evolve_after=0).made()
    values = [record.value for record in scenario.records(60) if record.topic == topic and record.version]
    assert len(values) > 40
    schema = scenario.later_schemas(renames=False)[topic]
    rows: dict[Format, list[Any]] = {}
    for kind, reader in READERS.items():
        bodies = [value_encoder(kind, schema)(value) for value in values]
        found = read(spark, reader(registered_schema(kind, schema).text), bodies)
        assert [one.problem for one in found] == [None] * len(values)
        rows[kind] = [canonical(one.value) for one in found]
    assert rows[Format.AVRO] == rows[Format.JSON] == rows[Format.PROTOBUF]


@pytest.mark.parametrize("kind", Format)
@pytest.mark.parametrize("name", ["orders", "hotels", "sales"])
def test_registry_takes_the_later_schemas_and_topics_hold_both(
    broker: Broker, registry: str, prefix: str, kind: Format, name: str
) -> None:
    spec = GeneratorSpec(name, seed=3, prefix=prefix, evolve_after=20, format=kind)
    scenario = spec.made()
    written = produce(scenario, broker.bootstrap, registry, limit=60, prefix=prefix, written_as=spec.format)
    later = scenario.later_schemas(renames=kind is not Format.JSON)
    for topic, schema in scenario.schemas.items():
        subject = f"{registry}/subjects/{prefix}{topic}-value/versions"
        versions = httpx.get(subject).raise_for_status().json()
        assert len(versions) == (1 if later[topic] == schema else 2), topic
        shown = [httpx.get(f"{subject}/{version}").json() for version in versions]
        assert all(one.get("schemaType", "AVRO") == kind.value.upper() for one in shown)
        ends = Offsets(broker.bootstrap).stable_ends([Topics(broker.bootstrap).describe(prefix + topic)])
        offsets = ends[prefix + topic]
        ids = set()
        for message in committed_records(
            broker.bootstrap, prefix + topic, dict.fromkeys(offsets, 0), sum(offsets.values())
        ):
            value = message.value()
            assert isinstance(value, bytes)
            ids.add(int.from_bytes(value[1:5], "big"))
        versions_made = {one.version for one in scenario.records(60) if one.topic == topic}
        assert ids == {shown[min(version, len(shown) - 1)]["id"] for version in versions_made}
        assert sum(offsets.values()) == written[prefix + topic]
