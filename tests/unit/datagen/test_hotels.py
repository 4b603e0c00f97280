"""The scenario `hotels`: the same for the same seed, and as it is documented."""

import hashlib
import io
from collections import Counter
from typing import Any

import fastavro
import pytest

from headgate.datagen.hotels import ARRIVES_MS, FATES, FIRST_HOTELS, Change, Fate, Hotels
from headgate.datagen.hotels import CHANGES as CHANGES_OF_A_HUNDRED
from headgate.datagen.scenario import Record
from headgate.datagen.times import DAY_MS
from headgate.errors import InvalidRequest

LIMIT = 1_000


@pytest.fixture(scope="module")
def records() -> list[Record]:
    return list(Hotels(seed=7).records(LIMIT))


def of(records: list[Record], topic: str) -> list[dict[str, Any]]:
    return [record.value for record in records if record.topic == topic]


def digest(seed: int, limit: int) -> str:
    scenario, found = Hotels(seed), hashlib.sha256()
    for record in scenario.records(limit):
        found.update(repr((record.topic, record.key, record.timestamp_ms)).encode())
        found.update(scenario.encode(record, 1))
    return found.hexdigest()


def test_the_data_of_a_seed_is_the_same_in_every_version() -> None:
    """Who changes the scenario changes what users get for a seed: then this changes, knowingly."""
    assert digest(1, 200) == "c80bfd49c8efebc4d472fda17b1f5462ae9d413522fcc000ee11cc07da720788"
    assert digest(2, 200) != digest(1, 200)


def test_there_are_as_many_as_is_said(records: list[Record]) -> None:
    found = Counter(record.topic for record in records)
    hundreds = LIMIT // 100
    assert found["bookings"] == LIMIT + hundreds * FATES[Fate.TWICE]
    assert found["reviews"] == hundreds * (FATES[Fate.REVIEW] + 2 * FATES[Fate.REVIEW_TWICE])
    assert found["hotels"] == FIRST_HOTELS + hundreds * CHANGES_OF_A_HUNDRED[Change.HOTEL]


def test_guests_and_hotels_are_told_of_before_they_are_named(records: list[Record]) -> None:
    guests: set[str] = set()
    hotels: set[str] = set()
    for record in records:
        if record.topic == "guests":
            guests.add(record.value["mail"])
        elif record.topic == "hotels":
            hotels.add(record.value["hotel_id"])
        else:
            assert record.value.get("hotel_id") in {None, *hotels}
            assert record.value.get("guest_mail") in {None, *guests}


def test_records_arrive_in_order_and_tell_of_times_that_are_not(records: list[Record]) -> None:
    arrivals = [record.timestamp_ms for record in records]
    assert arrivals == sorted(arrivals)
    for topic, column in (("bookings", "booked_at"), ("reviews", "written_at"), ("clicks", "clicked_at")):
        told = [(r.timestamp_ms, r.value[column]) for r in records if r.topic == topic]
        assert all(0 <= arrived - happened < ARRIVES_MS for arrived, happened in told)
    clicks = [value["clicked_at"] for value in of(records, "clicks")]
    assert clicks != sorted(clicks)


def test_reviews_come_later_and_some_twice(records: list[Record]) -> None:
    booked = {value["booking_id"]: value for value in of(records, "bookings")}
    reviews = of(records, "reviews")
    for review in reviews:
        booking = booked[review["booking_id"]]
        assert review["hotel_id"] == booking["hotel_id"]
        assert 0 < review["written_at"] - booking["booked_at"] < 16 * DAY_MS
    assert set(Counter(review["booking_id"] for review in reviews).values()) == {1, 2}


def test_some_click_and_do_not_book(records: list[Record]) -> None:
    booking = {value["guest_mail"] for value in of(records, "bookings")}
    clicking = {value["guest_mail"] for value in of(records, "clicks")}
    assert len(clicking - booking) == LIMIT // 100 * CHANGES_OF_A_HUNDRED[Change.VISITOR]


def test_values_are_what_their_schemas_say(records: list[Record]) -> None:
    scenario = Hotels(7)
    parsed = {topic: fastavro.parse_schema(dict(schema)) for topic, schema in scenario.schemas.items()}
    for record in records[:500]:
        body = scenario.encode(record, 3)
        assert body[:5] == b"\x00\x00\x00\x00\x03"
        read: Any = fastavro.schemaless_reader(io.BytesIO(body[5:]), parsed[record.topic], None)
        assert set(read) == set(record.value)
    with pytest.raises(InvalidRequest, match="-1"):
        Hotels(-1)
