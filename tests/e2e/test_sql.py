"""SQL as a user types it: payments once, orders paid in time, a column more, and who takes over."""

import hashlib
import hmac
import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from headgate.datagen import Orders, produce
from headgate.datagen.scenario import Record, Scenario, Schema
from tests.conftest import PEPPER
from tests.e2e.commands import refused
from tests.support.ledger import read_duckdb, read_pyiceberg
from tests.support.services import wait_for
from tests.support.stack import Stack

PREFIX = "shop."
HOUR_MS = 3_600_000
PARTITIONS = 4

PAID_ONCE = """
-- Whoever pays twice has paid once.
SET 'client.statement-name' = 'payments-once';
SET 'sql.tables.scan.idle-timeout' = '10 minutes';
SET 'sql.state-ttl' = '2 hours';

CREATE TABLE `shop.paid-once` (
  order_id BIGINT NOT NULL,
  amount DECIMAL(12, 2),
  method STRING,
  paid_at TIMESTAMP_LTZ(3),
  WATERMARK FOR paid_at AS paid_at - INTERVAL '5' SECOND
)
AS SELECT COALESCE(order_id, 0) AS order_id, amount, method, paid_at
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY order_id ORDER BY paid_at ASC) AS nth
  FROM `shop.payments`
)
WHERE nth = 1;

ALTER TABLE `shop.payments` MODIFY WATERMARK FOR paid_at AS paid_at;
-- A payment arrives up to nine seconds after it was made.
ALTER TABLE `shop.paid-once` MODIFY WATERMARK FOR paid_at AS paid_at - INTERVAL '9' SECOND;
ALTER TABLE `shop.orders` MODIFY WATERMARK FOR placed_at AS placed_at;
"""
IN_TIME = """
SET 'client.statement-name' = 'orders-in-time';
SET 'sql.tables.scan.idle-timeout' = '10 minutes';
CREATE TABLE `shop.in-time` (
  order_id BIGINT,
  amount DECIMAL(12, 2),
  customer STRING,
  paid_at TIMESTAMP_LTZ(3),
  WATERMARK FOR paid_at AS paid_at - INTERVAL '5' SECOND
) AS
SELECT p.order_id, p.amount, MASK_HASH(o.customer_id, 'pepper') AS customer, p.paid_at
FROM `shop.paid-once` p, `shop.orders` o
WHERE p.order_id = o.order_id
AND placed_at BETWEEN p.paid_at - INTERVAL '96' HOUR AND p.paid_at;
"""
ONE_COLUMN_MORE = """
ALTER TABLE `shop.in-time` ADD (paid_by STRING);

SET 'client.statement-name' = 'orders-in-time-2';
SET 'sql.tables.scan.idle-timeout' = '10 minutes';
SET 'sql.tables.initial-offset-from' = 'orders-in-time';
INSERT INTO `shop.in-time`
SELECT p.order_id, p.amount, MASK_HASH(o.customer_id, 'pepper') AS customer,
  CASE WHEN p.method = 'CARD' THEN 'plastic' ELSE 'other' END AS paid_by, -- not the last, as the table has it
  p.paid_at
FROM `shop.paid-once` p, `shop.orders` o
WHERE p.order_id = o.order_id
AND placed_at BETWEEN p.paid_at - INTERVAL '96' HOUR AND p.paid_at;
"""


class Some:
    """Some records of a scenario."""

    name = "orders"
    counted = "orders"

    def __init__(self, whole: Scenario, records: list[Record]) -> None:
        self._whole = whole
        self._records = records

    @property
    def schemas(self) -> Mapping[str, Schema]:
        return self._whole.schemas

    @property
    def key_schemas(self) -> Mapping[str, Schema]:
        return self._whole.key_schemas

    def later_schemas(self, renames: bool = True) -> Mapping[str, Schema]:
        return self._whole.later_schemas(renames)

    def records(self, limit: int | None = None) -> Iterator[Record]:
        return iter(self._records[:limit])

    def encode(self, record: Record, schema_id: int) -> bytes:
        return self._whole.encode(record, schema_id)


class Shop:
    """Orders and payments, and what is to come of them."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self._scenario = Orders(7)
        self.records = list(self._scenario.records(2_000))

    def send(self, records: list[Record]) -> None:
        runtime = self._stack.runtime
        produce(Some(self._scenario, records), runtime.kafka, runtime.registry, prefix=PREFIX)

    def in_time(self) -> dict[int, tuple[Decimal, str, str]]:
        """By order: amount, masked customer and method of those paid within 96 hours."""
        placed = {r.value["order_id"]: r.value for r in self.records if r.topic == "orders"}
        paid: dict[int, dict[str, Any]] = {}
        for record in self.records:
            if record.topic == "payments":
                known = paid.get(record.value["order_id"])
                if known is None or record.value["paid_at"] < known["paid_at"]:
                    paid[record.value["order_id"]] = record.value
        found = {}
        for order_id, payment in paid.items():
            order = placed[order_id]
            if 0 <= payment["paid_at"] // 1000 - order["placed_at"] <= 96 * HOUR_MS:
                masked = hmac.new(PEPPER.encode(), order["customer_id"].encode(), hashlib.sha256).hexdigest()
                found[order_id] = (payment["amount"], masked, payment["method"])
        return found


@pytest.fixture(scope="module")
def shop(stack: Stack) -> Shop:
    return Shop(stack)


def script(stack: Stack, folder: Path, text: str) -> str:
    file = folder / "script.sql"
    file.write_text(text)
    return stack.run("sql", "-f", str(file)).stdout


def rows_out(stack: Stack, name: str) -> int:
    found = stack.json("statement", "show", name)
    assert found["state"] in ("Running", "Pending"), found["reason"]
    return found["rows_out"] or 0


def test_orders_paid_in_time(stack: Stack, shop: Shop, tmp_path: Path) -> None:
    half = len(shop.records) * 6 // 10
    expected = shop.in_time()
    shop.send(shop.records[:half])
    assert "statement payments-once is created" in script(stack, tmp_path, PAID_ONCE)
    assert "statement orders-in-time is created" in script(stack, tmp_path, IN_TIME)
    stack.run("table", "enable", "shop.in-time")
    wait_for("orders in time", lambda: rows_out(stack, "orders-in-time") >= len(expected) // 10)

    stack.run("statement", "stop", "orders-in-time")
    before = rows_of(stack)
    script(stack, tmp_path, ONE_COLUMN_MORE)
    # The last of them too come out without a further record.
    shop.send(shop.records[half:])
    wait_for("the others", lambda: rows_out(stack, "orders-in-time-2") >= len(expected) - len(before))
    stack.run("table", "sync", "shop.in-time", "--timeout", "120s")
    for name in ("payments-once", "orders-in-time", "orders-in-time-2"):
        assert stack.json("statement", "show", name)["late_rows"] == 0
    check_paid_once(stack, shop)

    iceberg = stack.runtime.iceberg
    for read in (read_duckdb, read_pyiceberg):
        rows = list(read(iceberg, "local", "shop.in-time"))
        times = Counter(row["order_id"] for row in rows)
        assert set(times) == set(expected)
        assert set(times.values()) == {1}
        for row in rows:
            amount, customer, method = expected[row["order_id"]]
            assert (row["amount"], row["customer"]) == (amount, customer)
            new = "plastic" if method == "CARD" else "other"
            assert row["paid_by"] == (None if row["order_id"] in before else new)
    assert {None, "plastic", "other"} == {row["paid_by"] for row in rows}
    # The first one has not read what came later.
    told = stack.run("statement", "reset", "orders-in-time", "--from", "latest", "--yes").stdout
    assert "skips " in told
    assert "orders-in-time is reset" in told
    assert stack.json("statement", "show", "orders-in-time")["state"] == "Stopped"


def check_paid_once(stack: Stack, shop: Shop) -> None:
    """Each order that was ever paid, once."""
    paid = {record.value["order_id"] for record in shop.records if record.topic == "payments"}

    def written() -> Counter[int] | None:
        read = stack.run("topic", "consume", "shop.paid-once", "--json").stdout
        found = Counter(int(json.loads(line)["value"]["order_id"]) for line in read.splitlines())
        return found if paid <= found.keys() else None

    # Those that were not paid in time may come out after all that were.
    found = wait_for("every payment", written)
    assert set(found) == paid
    assert set(found.values()) == {1}


def rows_of(stack: Stack) -> set[int]:
    """The orders that are written already."""
    stack.run("table", "sync", "shop.in-time", "--timeout", "120s")
    return {row["order_id"] for row in read_duckdb(stack.runtime.iceberg, "local", "shop.in-time")}


def test_what_there_is(stack: Stack, shop: Shop) -> None:
    names = [row[0] for row in stack.json("sql", "-e", "SHOW TABLES LIKE 'shop.%'")[0]["rows"]]
    assert names == sorted(
        f"shop.{n}" for n in ("customers", "in-time", "orders", "paid-once", "payments", "products")
    )
    described = {row[0]: row for row in stack.json("sql", "-e", "DESCRIBE `shop.paid-once`")[0]["rows"]}
    assert described["order_id"][1:3] == ["BIGINT", "NOT NULL"]
    assert described["paid_at"][1:] == ["TIMESTAMP_LTZ", "NULL", "WATERMARK"]
    states = {row[0]: row[1] for row in stack.json("sql", "-e", "SHOW STATEMENTS")[0]["rows"]}
    assert (states["orders-in-time"], states["orders-in-time-2"]) == ("Stopped", "Running")
    plan = stack.run("sql", "-e", "EXPLAIN " + IN_TIME[IN_TIME.index("SELECT") :]).stdout
    assert "Join interval inner" in plan
    assert "4 days past them" in plan
    made = stack.run("sql", "-e", "SHOW CREATE TABLE `shop.in-time`").stdout
    assert "  `paid_by` STRING" in made


def test_hotels_are_tables_too(stack: Stack) -> None:
    written = stack.json("datagen", "hotels", "--limit", "20", "--prefix", "stay.")["topics"]
    assert written["stay.bookings"] >= 20
    names = [row[0] for row in stack.json("sql", "-e", "SHOW TABLES LIKE 'stay.%'")[0]["rows"]]
    assert names == sorted(written)
    described = {row[0]: row[1] for row in stack.json("sql", "-e", "DESCRIBE `stay.bookings`")[0]["rows"]}
    assert (described["check_in"], described["booked_at"]) == ("BIGINT", "TIMESTAMP_LTZ")


def test_the_key_is_nowhere_to_be_seen(stack: Stack, shop: Shop) -> None:
    shown = stack.run("statement", "show", "orders-in-time", "--json").stdout
    assert "pepper" in shown
    assert PEPPER not in shown
    for folder, _, names in os.walk(stack.data):
        for file in (Path(folder, name) for name in names):
            # State comes and goes while statements run.
            with suppress(FileNotFoundError):
                assert not file.is_file() or PEPPER.encode() not in file.read_bytes(), file


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SELECT * FROM `shop.orders`; SHOW TABLES", "comes last"),
        ("CREATE TABLE x (a INT); INSERT INTO x SELECT nothing FROM `shop.orders`", "nothing"),
        ("INSERT INTO `shop.in-time` (customer) SELECT MASK_HASH(note, 'salt') FROM `shop.orders`", "'salt'"),
        (
            "SET 'client.statement-name' = 'payments-once'; CREATE TABLE x AS SELECT note FROM `shop.orders`",
            "'payments-once'",
        ),
        (
            "SET 'sql.tables.initial-offset-from' = 'nobody'; CREATE TABLE x AS SELECT * FROM `shop.orders`",
            "'nobody'",
        ),
        ("SET 'sql.state-tll' = '1 d'", "sql.state-tll"),
        ("DROP TABLE `shop.paid-once`", "orders-in-time-2"),
        ("CREATE TABLE x (a INT) WITH ('kafka.retention' = '1')", "kafka.retention"),
        ("SELECT 1 FROM `shop.orders` MATCH_RECOGNIZE (PATTERN (A))", "MATCH_RECOGNIZE"),
    ],
)
def test_what_is_refused_changes_nothing(stack: Stack, shop: Shop, text: str, said: str) -> None:
    before = stack.json("topic", "list")
    assert said in refused(stack, "sql", "-e", text)
    assert stack.json("topic", "list") == before


def test_statements_end(stack: Stack, shop: Shop) -> None:
    for name in ("orders-in-time", "orders-in-time-2", "payments-once"):
        stack.run("sql", "-e", f"DROP STATEMENT '{name}'")
    wait_for("them to be gone", lambda: not stack.json("statement", "list"))
    stack.run("table", "disable", "shop.in-time", "--purge", "--yes")
    stack.run("sql", "-e", "DROP TABLE `shop.in-time`; DROP TABLE `shop.paid-once`")
    assert "shop.in-time" not in {topic["name"] for topic in stack.json("topic", "list")}
