"""Change events of the scenarios, in Headgate's own reader of Debezium's events and on a real broker."""

import json
from typing import Any

import pyarrow
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from headgate.datagen import Hotels, Orders, produce
from headgate.datagen.avro import compile_key
from headgate.datagen.scenario import Record
from headgate.datagen.seeded import Seeded
from headgate.decode.avro import AvroReader
from headgate.decode.debezium import ChangeReader
from headgate.embedded.broker import Broker
from headgate.kafka import Offsets, Topics
from headgate.kafka.records import committed_records
from tests.integration.datagen.test_produce import schema_id

LIMIT = 300


def read_changes(spark: SparkSession, schema: Any, bodies: list[bytes]) -> list[dict[str, Any]]:
    reader = ChangeReader(AvroReader(json.dumps(schema)))
    raw, body = f.col("raw"), f.col("body")
    table = pyarrow.table({"n": range(len(bodies)), "body": pyarrow.array(bodies, pyarrow.binary())})
    decoded = spark.createDataFrame(table).coalesce(1).select("n", "body", reader.raw(body).alias("raw"))
    columns = (
        reader.is_exact(raw, body).alias("exact"),
        reader.value(raw).alias("row"),
        reader.change(raw).alias("change"),
    )
    changes: list[dict[str, Any]] = (
        decoded.orderBy("n").select(*columns).toArrow().to_pylist(maps_as_pydicts="strict")
    )
    return changes


def read_rows(spark: SparkSession, schema: Any, bodies: list[bytes]) -> list[dict[str, Any]]:
    reader = AvroReader(json.dumps(schema))
    table = pyarrow.table({"n": range(len(bodies)), "body": pyarrow.array(bodies, pyarrow.binary())})
    decoded = spark.createDataFrame(table).coalesce(1).select("n", reader.raw(f.col("body")).alias("raw"))
    rows = decoded.orderBy("n").select(reader.value(f.col("raw")).alias("row")).toArrow()
    return [one["row"] for one in rows.to_pylist(maps_as_pydicts="strict")]


@pytest.mark.parametrize("kind", [Orders, Hotels])
def test_the_reader_of_debeziums_events_has_the_rows_and_their_order(
    spark: SparkSession, kind: type[Seeded]
) -> None:
    scenario, plain = kind(5, cdc=True), kind(5)
    records = list(scenario.records(LIMIT))
    for topic in scenario.keys:
        events = [record for record in records if record.topic == topic and record.value]
        changes = read_changes(
            spark, scenario.schemas[topic], [scenario.encode(event, 1)[5:] for event in events]
        )
        assert all(change["exact"] for change in changes)
        rows = [event.value["after"] or event.value["before"] for event in events]
        bodies = [plain.encode(Record(topic, b"", row, 0), 1)[5:] for row in rows]
        assert [change["row"] for change in changes] == read_rows(spark, plain.schemas[topic], bodies)
        ops = [event.value["op"] for event in events]
        assert [change["change"]["op"] for change in changes] == [
            "delete" if op == "d" else "upsert" for op in ops
        ]
        assert [change["change"]["snapshot"] for change in changes] == [op == "r" for op in ops]
        assert {change["change"]["source"] for change in changes} == {
            f"postgresql/{scenario.database}/{scenario.database}"
        }
        positions = [change["change"]["position"] for change in changes]
        assert [position is None for position in positions] == [op == "r" for op in ops]
        logged = [position for position in positions if position is not None]
        assert logged == sorted(set(logged))
        assert all(change["change"]["missing"] == [] for change in changes)


def test_topics_hold_events_keys_with_a_schema_and_tombstones(
    broker: Broker, registry: str, prefix: str
) -> None:
    scenario = Hotels(3, cdc=True)
    entries: dict[tuple[str, int, int], dict[str, Any]] = {}

    def enter(topic: str, partition: int, offset: int, value: dict[str, Any]) -> None:
        entries[topic, partition, offset] = value

    written = produce(scenario, broker.bootstrap, registry, limit=100, prefix=prefix, ledger=enter)
    assert sum(written.values()) == len(entries)
    made = list(scenario.records(100))
    for topic, schema in scenario.key_schemas.items():
        name = prefix + topic
        encode_key = compile_key(schema, schema_id(registry, f"{name}-key"))
        value_id = schema_id(registry, f"{name}-value")
        ends = Offsets(broker.bootstrap).stable_ends([Topics(broker.bootstrap).describe(name)])[name]
        found: dict[bytes, list[bytes | None]] = {}
        for message in committed_records(broker.bootstrap, name, dict.fromkeys(ends, 0), sum(ends.values())):
            key, value = message.key(), message.value()
            assert isinstance(key, bytes)
            assert value is None or isinstance(value, bytes)
            found.setdefault(key, []).append(value)
            entry = entries[name, int(message.partition() or 0), int(message.offset() or 0)]
            assert bool(entry) == (value is not None)
        wanted: dict[bytes, list[bytes | None]] = {}
        for record in made:
            if record.topic == topic:
                value = scenario.encode(record, value_id) if record.value else None
                wanted.setdefault(encode_key(record.key), []).append(value)
        assert found == wanted
        assert any(values[-1] is None for values in found.values())
