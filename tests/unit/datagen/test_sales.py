"""The scenario `sales`: the same for the same seed, and as it is documented."""

import hashlib
import io
from collections import Counter
from decimal import Decimal
from typing import Any

import fastavro
import pytest

from headgate.datagen.sales import ARRIVES_MS, BUYING, FATES, LATE_MS, Fate, Sales
from headgate.datagen.sales_schemas import EVENT
from headgate.datagen.scenario import Record

LIMIT = 1_000


@pytest.fixture(scope="module")
def records() -> list[Record]:
    return list(Sales(seed=7).records(LIMIT))


@pytest.fixture(scope="module")
def events(records: list[Record]) -> dict[str, dict[str, Any]]:
    return {record.value["event_id"]: record.value for record in records}


def digest(seed: int, limit: int) -> str:
    scenario, found = Sales(seed), hashlib.sha256()
    for record in scenario.records(limit):
        found.update(repr((record.topic, record.key, record.timestamp_ms)).encode())
        found.update(scenario.encode(record, 1))
    return found.hexdigest()


def test_the_data_of_a_seed_is_the_same_in_every_version() -> None:
    """Who changes the scenario changes what users get for a seed: then this changes, knowingly."""
    assert digest(1, 200) == "2fff1201831b9e09e80e66ba14dedb2f37ec4f25f60b5b5b673d0d255dd49b35"
    assert digest(2, 200) != digest(1, 200)


def test_there_are_as_many_as_is_said(records: list[Record], events: dict[str, Any]) -> None:
    assert len(events) == LIMIT
    assert len(records) == LIMIT + LIMIT // 100 * (FATES[Fate.TWICE] + FATES[Fate.TWICE_LATE])
    steps = Counter(value["step"] for value in events.values())
    assert {step: steps[step] for step in BUYING} == {step: n * 10 for step, n in BUYING.items()}


def test_what_comes_again_is_the_same(records: list[Record], events: dict[str, Any]) -> None:
    assert all(record.value == events[record.value["event_id"]] for record in records)


def test_records_arrive_in_order_and_some_late(records: list[Record]) -> None:
    arrivals = [record.timestamp_ms for record in records]
    assert arrivals == sorted(arrivals)
    behind = [record.timestamp_ms - record.value["happened_at"] for record in records]
    assert all(0 <= ms < LATE_MS + ARRIVES_MS for ms in behind)
    first = {record.value["event_id"]: ms for record, ms in reversed(list(zip(records, behind, strict=True)))}
    assert sum(ms >= ARRIVES_MS for ms in first.values()) == LIMIT // 100 * FATES[Fate.LATE]


def test_an_order_is_of_its_product_and_what_is_viewed_has_none(events: dict[str, Any]) -> None:
    for value in events.values():
        order = value["order"]
        assert (order is None) == (value["step"] == "VIEWED")
        if order is not None:
            assert order["total"] == order["quantity"] * value["product"]["unit_price"]
            assert isinstance(order["total"], Decimal)


def test_a_customer_is_the_same_person_each_time(events: dict[str, Any]) -> None:
    people = {value["customer"]["customer_id"]: value["customer"] for value in events.values()}
    assert all(value["customer"] == people[value["customer"]["customer_id"]] for value in events.values())
    assert {person["contact"]["phone"] is None for person in people.values()} == {True, False}


def test_values_are_what_the_schema_says(records: list[Record]) -> None:
    scenario, schema = Sales(7), fastavro.parse_schema(EVENT)
    for record in records[:100]:
        body = io.BytesIO(scenario.encode(record, 1)[5:])
        read: Any = fastavro.schemaless_reader(body, schema, None)
        assert (read["event_id"], read["order"]) == (record.value["event_id"], record.value["order"])
        assert not body.read()
