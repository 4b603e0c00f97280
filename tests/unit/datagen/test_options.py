"""What can be said of a scenario: start, speed, schemas that change, shares of late and repeated records."""

import io
import json
from collections import Counter
from typing import Any

import fastavro
import pytest

from headgate.datagen import SCENARIOS, GeneratorSpec
from headgate.datagen.formats import Format, registered_schema, value_encoder
from headgate.datagen.pace import Timeline
from headgate.datagen.scenario import Record
from headgate.datagen.shares import Shares
from headgate.datagen.times import DAY_MS, HOUR_MS, MINUTE_MS, START_MS, parse_start
from headgate.decode.avro import AvroReader
from headgate.errors import InvalidRequest
from tests.unit.datagen.test_orders import without_times

NAMES = sorted(SCENARIOS)


def spec(name: str, **said: Any) -> GeneratorSpec:
    return GeneratorSpec(name, seed=4, **said)


def told(name: str, limit: int = 300, **said: Any) -> list[Record]:
    return list(spec(name, **said).made().records(limit))


def keyed(records: list[Record]) -> Counter[tuple[str, bytes, str]]:
    return Counter((record.topic, record.key, repr(record.value)) for record in records)


# -- start


@pytest.mark.parametrize("name", NAMES)
def test_another_start_moves_all_times_alike(name: str) -> None:
    plain, moved = told(name), told(name, start_ms=START_MS + 500 * DAY_MS)
    assert [one.timestamp_ms for one in moved] == [one.timestamp_ms + 500 * DAY_MS for one in plain]
    assert [(one.topic, one.key) for one in moved] == [(one.topic, one.key) for one in plain]
    columns = {"orders": "placed_at", "bookings": "booked_at", "sales": "happened_at"}
    for before, after in zip(plain, moved, strict=True):
        if (column := columns.get(before.topic)) is not None:
            assert after.value[column] == before.value[column] + 500 * DAY_MS


def test_a_start_is_a_time_with_its_zone_or_now() -> None:
    assert parse_start("2025-01-01T00:00:00Z") == START_MS
    assert parse_start("2025-01-01T01:00:00+01:00") == START_MS
    assert parse_start("now") > START_MS
    for text in ("2025-01-01T00:00:00", "yesterday", ""):
        with pytest.raises(InvalidRequest, match="no time to start"):
            parse_start(text)
    with pytest.raises(InvalidRequest, match="between 1970 and 2200"):
        told("orders", start_ms=-1)


# -- shares


@pytest.mark.parametrize("name", NAMES)
def test_late_and_repeated_records_are_those_of_the_story(name: str) -> None:
    plain = told(name, limit=2_000)
    shared = told(name, limit=2_000, late_share=0.1, duplicate_share=0.2)
    happenings = spec(name).made().happenings
    assert [one for one in shared if one.topic not in happenings] == [
        one for one in plain if one.topic not in happenings
    ]
    before, after = keyed(plain), keyed(shared)
    assert before.keys() == after.keys()
    assert all(after[one] >= count for one, count in before.items())
    count = sum(one.topic in happenings for one in plain)
    assert (after - before).total() / count == pytest.approx(0.2, abs=0.03)
    arrivals = [one.timestamp_ms for one in shared]
    assert arrivals == sorted(arrivals)
    assert shared == told(name, limit=2_000, late_share=0.1, duplicate_share=0.2)


def test_a_late_record_arrives_between_a_minute_and_an_hour_later() -> None:
    plain, shared = (
        {record.key: record for record in told("sales", limit=2_000, late_share=share) if record.value}
        for share in (0.0, 0.3)
    )
    delays = [shared[key].timestamp_ms - plain[key].timestamp_ms for key in plain]
    late = [delay for delay in delays if delay]
    assert len(late) / len(delays) == pytest.approx(0.3, abs=0.04)
    assert all(MINUTE_MS <= delay < HOUR_MS for delay in late)


def test_shares_are_parts_of_one() -> None:
    for late, duplicate in ((-0.1, 0), (0, 1.1)):
        with pytest.raises(InvalidRequest, match="no share"):
            Shares(late, duplicate)


# -- schemas that change


@pytest.mark.parametrize("cdc", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_schemas_change_after_so_many_records(name: str, cdc: bool) -> None:
    if name == "sales" and cdc:
        return
    scenario = spec(name, evolve_after=40, cdc=cdc).made()
    plain, evolved = told(name, cdc=cdc), list(scenario.records(300))
    versions = [record.version for record in evolved]
    assert versions == sorted(versions)
    assert sum(r.topic == scenario.counted for r in evolved if r.version == 0) == 40
    assert [record for record in evolved if record.version == 0] == plain[: versions.count(0)]
    later = {topic: without_times(schema) for topic, schema in scenario.later_schemas().items()}
    parsed = {topic: fastavro.parse_schema(schema, named_schemas={}) for topic, schema in later.items()}
    for old, new in zip(plain, evolved, strict=True):
        assert old._replace(value={}, version=new.version) == new._replace(value={})
        if new.version and new.value:
            body = io.BytesIO(scenario.encode(new, 1)[5:])
            read: Any = fastavro.schemaless_reader(body, parsed[new.topic], None)
            # All that was there is there, under its name or another.
            assert list(map(str, read.values()))[: len(old.value)] == [
                str(new.value[field["name"]]) for field in later[new.topic]["fields"][: len(old.value)]
            ]


@pytest.mark.parametrize("name", NAMES)
def test_later_schemas_have_a_field_more_wider_types_and_other_names(name: str) -> None:
    scenario = spec(name, evolve_after=1).made()
    changes: Counter[str] = Counter()
    for topic, schema in scenario.schemas.items():
        later = scenario.later_schemas()[topic]
        unnamed = scenario.later_schemas(renames=False)[topic]
        reader = AvroReader(json.dumps(later))
        before = AvroReader(json.dumps(schema)).type.simpleString()
        changes["changed"] += reader.type.simpleString() != before
        changes["renamed"] += len(reader.former_names)
        changes["wider"] += json.dumps(schema).count('"int"') - json.dumps(unnamed).count('"int"') > 0
        for kind in Format:
            chosen = unnamed if kind is Format.JSON else later
            assert registered_schema(kind, chosen).text != ""
            rows = [r.value for r in scenario.records(30) if r.topic == topic and r.version]
            encode = value_encoder(kind, chosen)
            assert all(encode(row) for row in rows)
    assert changes["changed"] >= 1
    assert changes["wider"] >= 1
    assert changes["renamed"] == (0 if name == "sales" else 1)


# -- speed


def test_records_are_due_when_their_times_have_come() -> None:
    now = [50.0]
    records = [Record("t", b"", {}, ms) for ms in (1_000, 1_000, 3_000, 11_000)]
    timeline = Timeline(iter(records), speed=2, clock=lambda: now[0])
    assert timeline.take(10) == records[:2]
    assert timeline.wait() == pytest.approx(1.0)
    assert timeline.take(10) == []
    now[0] = 51.0
    assert timeline.take(10) == records[2:3]
    assert not timeline.ended
    now[0] = 60.0
    assert timeline.take(10) == records[3:]
    assert timeline.ended
    assert timeline.wait() == 0.0


def test_without_a_speed_all_records_are_due() -> None:
    records = [Record("t", b"", {}, ms) for ms in (1_000, 9_000)]
    timeline = Timeline(iter(records), None)
    assert timeline.wait() == 0.0
    assert timeline.take(1) == records[:1]
    assert timeline.take(5) == records[1:]
    assert timeline.ended
    with pytest.raises(InvalidRequest, match="no speed"):
        Timeline(iter(records), 0)


# -- all of it


def test_a_specification_survives_being_written_down() -> None:
    said = spec("hotels", limit=7, cdc=True, format=Format.JSON, rate=2.5, evolve_after=3, late_share=0.5)
    assert GeneratorSpec.from_dict(json.loads(json.dumps(said.to_dict()))) == said
    assert said.topics() == ["guests", "hotels", "bookings", "reviews", "clicks"]


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ({"scenario": "weather"}, "no scenario"),
        ({"scenario": "orders", "limit": 0}, "no limit"),
        ({"scenario": "orders", "rate": 0}, "no rate"),
        ({"scenario": "orders", "speed": float("nan")}, "no speed"),
        ({"scenario": "orders", "cdc": True, "format": Format.PROTOBUF}, "no Protobuf"),
        ({"scenario": "sales", "cdc": True}, "no database"),
        ({"scenario": "orders", "evolve_after": -1}, "cannot change"),
    ],
)
def test_what_cannot_be_made_is_refused(said: dict[str, Any], problem: str) -> None:
    with pytest.raises(InvalidRequest, match=problem):
        GeneratorSpec(**said).made()
