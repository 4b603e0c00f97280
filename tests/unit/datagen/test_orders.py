"""The scenario `orders`: the same for the same seed, and as it is documented."""

import hashlib
import io
import subprocess
import sys
from collections import Counter, defaultdict
from decimal import Decimal
from typing import Any

import fastavro
import pytest

from headgate.datagen.orders import Orders, counts
from headgate.datagen.scenario import Record
from headgate.datagen.times import HOUR_MS, START_MS
from headgate.errors import InvalidRequest

LIMIT = 3_000


@pytest.fixture(scope="module")
def records() -> list[Record]:
    return list(Orders(seed=7).records(LIMIT))


def of(records: list[Record], topic: str) -> list[dict[str, Any]]:
    return [record.value for record in records if record.topic == topic]


def digest(seed: int, limit: int) -> str:
    """Of everything that reaches the broker."""
    scenario, found = Orders(seed), hashlib.sha256()
    for record in scenario.records(limit):
        found.update(repr((record.topic, record.key, record.timestamp_ms)).encode())
        found.update(scenario.encode(record, 1))
    return found.hexdigest()


def test_two_runs_are_the_same_to_the_byte() -> None:
    assert digest(7, 500) == digest(7, 500)


def test_a_run_in_another_process_is_the_same_to_the_byte() -> None:
    """Whatever a process has of its own, such as the order of its sets, does not matter."""
    program = (
        "import sys; from tests.unit.datagen.test_orders import digest; sys.stdout.write(digest(7, 500))"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": "123"})
    assert done.stdout == digest(7, 500)


def test_the_data_of_a_seed_is_the_same_in_every_version() -> None:
    """Who changes the scenario changes what users get for a seed: then this changes, knowingly."""
    assert digest(1, 200) == "6ef877f9f2d8c47aa3239fe9841670c713dbb47530c532720b32fe810853f263"


def test_seeds_differ_in_all_topics() -> None:
    first, second = (list(Orders(seed).records(100)) for seed in (1, 2))
    for topic in Orders().schemas:
        assert not {r.key for r in first if r.topic == topic} & {r.key for r in second if r.topic == topic}


def test_a_smaller_limit_begins_with_the_same_orders(records: list[Record]) -> None:
    fewer = of(list(Orders(seed=7).records(250)), "orders")
    assert fewer == of(records, "orders")[:250]


def test_without_a_limit_it_goes_on(records: list[Record]) -> None:
    endless = Orders(seed=7).records()
    begun = [next(endless) for _ in range(2_000)]
    assert begun == records[:2_000]


@pytest.mark.parametrize("limit", [0, 1, 37, 100, 1_000])
def test_counts_are_what_is_made(limit: int) -> None:
    made = Counter(record.topic for record in Orders(seed=7).records(limit))
    assert counts(limit, seed=7) == {topic: made[topic] for topic in Orders().schemas}


def test_counts_of_whole_hundreds_follow_the_formula() -> None:
    expected = {"products": 80, "customers": 150, "orders": 1_000, "payments": 1_020}
    assert counts(1_000, seed=1) == counts(1_000, seed=2) == expected


def test_orders_refer_to_customers_and_products_that_came_before(records: list[Record]) -> None:
    customers, products = {}, {}
    for record in records:
        value = record.value
        if record.topic == "customers":
            customers[value["customer_id"]] = value
        elif record.topic == "products":
            products[value["sku"]] = value
        elif record.topic == "orders":
            assert value["ship_to"] == customers[value["customer_id"]]["home"]
            for line in value["lines"]:
                assert line["unit_price"] == products[line["sku"]]["unit_price"]


def test_totals_are_exact(records: list[Record]) -> None:
    for order in of(records, "orders"):
        lines = sum((line["quantity"] * line["unit_price"] for line in order["lines"]), Decimal(0))
        assert order["total"] == lines - (order["voucher"] or 0)
        assert order["total"].as_tuple().exponent == -2
    totals = {order["order_id"]: order["total"] for order in of(records, "orders")}
    assert all(payment["amount"] == totals[payment["order_id"]] for payment in of(records, "payments"))


def test_payments_are_missing_late_and_doubled_as_documented(records: list[Record]) -> None:
    placed = {order["order_id"]: order["placed_at"] for order in of(records, "orders")}
    payments = defaultdict(list)
    for payment in of(records, "payments"):
        payments[payment["order_id"]].append(payment)
    hundreds = LIMIT // 100
    assert len(placed) - len(payments) == 3 * hundreds
    late = [i for i, found in payments.items() if found[0]["paid_at"] > (placed[i] + 96 * HOUR_MS) * 1000]
    assert len(late) == 2 * hundreds
    assert all(p["paid_at"] >= placed[i] * 1000 for i, found in payments.items() for p in found)

    doubled = [found for found in payments.values() if len(found) > 1]
    assert all(len(found) == 2 for found in doubled)
    assert all(first["payment_id"] == again["payment_id"] for first, again in doubled)
    order_of_times = Counter(
        (first["paid_at"] > again["paid_at"]) - (first["paid_at"] < again["paid_at"])
        for first, again in doubled
    )
    assert order_of_times == {0: 3 * hundreds, -1: hundreds, 1: hundreds}
    assert all(first == again for first, again in doubled if first["paid_at"] == again["paid_at"])


def test_keys_are_ids_as_text(records: list[Record]) -> None:
    ids = {"customers": "customer_id", "products": "sku", "orders": "order_id", "payments": "order_id"}
    for record in records:
        assert record.key == str(record.value[ids[record.topic]]).encode()


def test_the_clock_only_moves_forward(records: list[Record]) -> None:
    times = [record.timestamp_ms for record in records]
    assert times[0] == START_MS
    assert times == sorted(times)


def test_values_survive_encoding(records: list[Record]) -> None:
    scenario = Orders(seed=7)
    for record in records[:2_000]:
        encoded = io.BytesIO(scenario.encode(record, 9))
        assert encoded.read(5) == b"\0\0\0\0\x09"
        schema = fastavro.parse_schema(without_times(scenario.schemas[record.topic]))
        assert fastavro.schemaless_reader(encoded, schema, None) == record.value
        assert encoded.read() == b""


def without_times(schema: Any) -> Any:
    """The schema with times as the integers that the scenario's values have."""
    if isinstance(schema, list):
        return [without_times(branch) for branch in schema]
    if isinstance(schema, dict):
        if schema.get("logicalType", "decimal") != "decimal":
            return schema["type"]
        return {key: without_times(part) for key, part in schema.items()}
    return schema


def test_every_branch_of_every_union_is_used(records: list[Record]) -> None:
    for topic, schema in Orders().schemas.items():
        for field in schema["fields"]:
            if isinstance(field["type"], list):
                found = {value[field["name"]] is None for value in of(records, topic)}
                assert found == {True, False}, f"{topic}.{field['name']}"


def test_no_value_is_changed_after_it_was_handed_out() -> None:
    kept, seen = [], []
    for record in Orders(seed=3).records(1_000):
        kept.append(record.value)
        seen.append(repr(record.value))
    assert [repr(value) for value in kept] == seen


@pytest.mark.parametrize("seed", [-1, 9_000_000_001])
def test_seeds_out_of_range_are_refused(seed: int) -> None:
    with pytest.raises(InvalidRequest, match="seed"):
        Orders(seed)


def test_a_negative_limit_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="-1"):
        Orders().records(-1)
