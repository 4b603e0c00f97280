"""Change events of the scenarios: what is in them, how many there are, and what they leave as it is."""

import hashlib
import io
import json
from collections import Counter
from typing import Any

import fastavro
import pytest

from headgate.datagen import Hotels, Orders, Sales, hotels, orders
from headgate.datagen.avro import compile_key
from headgate.datagen.scenario import Record
from headgate.datagen.seeded import Seeded
from headgate.decode.avro import AvroReader
from headgate.decode.debezium import ChangeReader
from headgate.errors import InvalidRequest
from tests.unit.datagen.test_orders import without_times

LIMIT = 700
SCENARIOS = (Orders, Hotels)
COUNTS = {Orders: orders.counts_of_changes, Hotels: hotels.counts_of_changes}


def digest(scenario: Seeded, limit: int) -> str:
    """Of everything that reaches the broker."""
    content = hashlib.sha256()
    for record in scenario.records(limit):
        content.update(repr((record.topic, record.key, record.timestamp_ms)).encode())
        content.update(scenario.encode(record, 1))
    return content.hexdigest()


@pytest.fixture(scope="module", params=SCENARIOS, ids=lambda kind: kind.name)
def scenario(request: pytest.FixtureRequest) -> Seeded:
    kind: type[Seeded] = request.param
    return kind(seed=7, cdc=True)


@pytest.fixture(scope="module")
def records(scenario: Seeded) -> list[Record]:
    return list(scenario.records(LIMIT))


def changes(scenario: Seeded, records: list[Record]) -> list[Record]:
    return [record for record in records if record.topic in scenario.keys and record.value]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (Orders, "774a2e983bc64e33"),
        (Hotels, "fdfe16b0632148d3"),
    ],
)
def test_change_events_of_a_seed_are_the_same_in_every_version(kind: type[Seeded], expected: str) -> None:
    """Who changes the scenario changes what users get for a seed: then this changes, knowingly."""
    assert digest(kind(1, cdc=True), 200)[:16] == expected
    assert digest(kind(2, cdc=True), 200)[:16] != expected


def test_topics_without_change_events_are_as_they_are_without(
    scenario: Seeded, records: list[Record]
) -> None:
    plain = [record for record in type(scenario)(7).records(LIMIT) if record.topic not in scenario.keys]
    assert [record for record in records if record.topic not in scenario.keys] == plain


@pytest.mark.parametrize("kind", SCENARIOS)
@pytest.mark.parametrize("limit", [0, 7, 37, 100, 500])
def test_counts_of_changes_are_what_is_made(kind: type[Seeded], limit: int) -> None:
    scenario = kind(7, cdc=True)
    made: dict[str, Counter[str]] = {topic: Counter() for topic in scenario.keys}
    for record in scenario.records(limit):
        if record.topic in made:
            made[record.topic][record.value["op"] if record.value else "tombstones"] += 1
    told = COUNTS[kind](limit, seed=7)
    assert told.keys() == made.keys()
    for topic, counted in made.items():
        assert told[topic] == {op: counted[op] for op in ("r", "c", "u", "d", "tombstones")}


def test_each_event_follows_from_the_row_before_it(scenario: Seeded, records: list[Record]) -> None:
    rows: dict[tuple[str, bytes], dict[str, Any]] = {}
    for record in records:
        if record.topic not in scenario.keys:
            continue
        name = (record.topic, record.key)
        if not record.value:
            assert name not in rows
            continue
        event = record.value
        match event["op"]:
            case "r" | "c":
                assert name not in rows
                assert event["before"] is None
            case "u" | "d":
                assert event["before"] == rows.pop(name)
                assert event["before"] != event["after"]
        if event["op"] == "d":
            assert event["after"] is None
        else:
            rows[name] = event["after"]
            assert str(event["after"][scenario.keys[record.topic]]).encode() == record.key


def test_a_delete_is_followed_by_its_tombstone(scenario: Seeded, records: list[Record]) -> None:
    deletes = [i for i, record in enumerate(records) if "op" in record.value and record.value["op"] == "d"]
    assert deletes
    for i in deletes:
        assert records[i + 1] == records[i]._replace(value={})
    assert sum(not record.value for record in records) == len(deletes)


def test_places_in_the_log_increase(scenario: Seeded, records: list[Record]) -> None:
    events = [record.value for record in changes(scenario, records)]
    read = [event["source"] for event in events if event["op"] == "r"]
    logged = [event["source"] for event in events if event["op"] != "r"]
    assert len({source["lsn"] for source in read}) == 1
    places = [read[0]["lsn"], *(source["lsn"] for source in logged)]
    assert places == sorted(set(places))
    assert [source["snapshot"] for source in read] == ["true"] * (len(read) - 1) + ["last"]
    assert {source["snapshot"] for source in logged} == {"false"}
    assert events[: len(read)] == [event for event in events if event["op"] == "r"]


def test_the_clock_only_moves_forward(scenario: Seeded, records: list[Record]) -> None:
    times = [record.timestamp_ms for record in records]
    assert times == sorted(times)
    for record in changes(scenario, records):
        assert record.value["source"]["ts_ms"] == record.value["ts_ms"] == record.timestamp_ms


def test_what_is_named_has_not_been_deleted(scenario: Seeded, records: list[Record]) -> None:
    """So that a join with the rows of its time finds what it finds without change events."""
    names = {"guest_mail": "guests", "hotel_id": "hotels", "order_id": "orders"}
    there: dict[str, set[Any]] = {topic: set() for topic in names.values()}
    for record in records:
        if record.topic not in scenario.keys:
            for column, topic in names.items():
                if topic in scenario.keys and record.value.get(column) is not None:
                    assert record.value[column] in there[topic]
        elif record.value:
            row = record.value["after"] or record.value["before"]
            key = row[scenario.keys[record.topic]]
            (there[record.topic].discard if record.value["op"] == "d" else there[record.topic].add)(key)


def test_values_and_keys_survive_encoding(scenario: Seeded, records: list[Record]) -> None:
    parsed = {
        topic: fastavro.parse_schema(without_times(schema), named_schemas={})
        for topic, schema in scenario.schemas.items()
    }
    for record in records:
        body = scenario.encode(record, 3)
        if not record.value:
            assert body == b""
            continue
        read = fastavro.schemaless_reader(io.BytesIO(body[5:]), parsed[record.topic], None)
        assert read == record.value
    for topic, schema in scenario.key_schemas.items():
        encode = compile_key(schema, 258)
        [field] = schema["fields"]
        for record in records:
            if record.topic == topic:
                encoded = encode(record.key)
                assert encoded[:5] == b"\0\0\0\1\2"
                key: Any = fastavro.schemaless_reader(io.BytesIO(encoded[5:]), schema, None)
                assert str(key[field["name"]]).encode() == record.key


def test_keys_of_other_types_have_no_encoder() -> None:
    field = {"name": "id", "type": "double"}
    with pytest.raises(ValueError, match="keys"):
        compile_key({"type": "record", "name": "Key", "fields": [field]}, 1)


def test_a_scenario_without_a_database_refuses_change_events() -> None:
    with pytest.raises(InvalidRequest, match="sales"):
        Sales(1, cdc=True)


def test_headgate_reads_the_columns_of_the_rows(scenario: Seeded) -> None:
    for topic in scenario.keys:
        reader = ChangeReader(AvroReader(json.dumps(scenario.schemas[topic])))
        plain = AvroReader(json.dumps(type(scenario).schemas[topic]))
        assert reader.type == plain.type
        assert reader.record_name == f"{scenario.database}.public.{topic}.Value"
        assert AvroReader(json.dumps(scenario.key_schemas[topic])).type.names == [scenario.keys[topic]]
