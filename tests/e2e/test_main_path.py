"""The main path: records are made, the topic becomes a table, and every engine reads the same rows."""

import json
from collections import Counter
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from headgate.datagen.orders import Orders, counts
from headgate.datagen.orders_schemas import SCHEMAS
from scripts.readers import duckdb_on
from tests.e2e.commands import headgate, on
from tests.e2e.commands import shown as table_shown
from tests.support.ledger import Ledger, canonical, to_native, without_metadata
from tests.support.stack import Stack

PREFIX = "main."
SEED, ORDERS = 11, 200
TOPICS = [f"{PREFIX}{name}" for name in SCHEMAS]
PAYMENTS = f"{PREFIX}payments"
PAID = counts(ORDERS, SEED)["payments"]


@pytest.fixture(scope="module")
def ledger(stack: Stack) -> Ledger:
    """All four topics as tables, caught up; the same seed says what is in them."""
    arguments = ("--limit", str(ORDERS), "--seed", str(SEED), "--prefix", PREFIX)
    written = stack.json("datagen", "orders", *arguments)
    made = {f"{PREFIX}{name}": count for name, count in counts(ORDERS, SEED).items()}
    assert written["topics"] == made
    assert written["records"] == sum(made.values())
    for topic in TOPICS:
        said = stack.run("table", "enable", topic).stdout
        assert said == f"{topic} is enabled: Pending, waiting for the engine\n"
    for topic in TOPICS:
        assert stack.run("table", "sync", topic).stdout == f"{topic} is caught up, {made[topic]} rows\n"
    ledger = Ledger(SCHEMAS)
    for record in Orders(SEED).records(ORDERS):
        # The ledger counts rows; where they lie in the topic is not part of a row.
        ledger(f"{PREFIX}{record.topic}", 0, 0, record.value)
    return ledger


@pytest.mark.parametrize("topic", TOPICS)
def test_duckdb_and_pyiceberg_read_what_was_made(stack: Stack, ledger: Ledger, topic: str) -> None:
    assert ledger.count(topic) == counts(ORDERS, SEED)[topic.removeprefix(PREFIX)]
    ledger.check(topic, stack.runtime.iceberg)


def test_query_gives_the_same_rows_to_the_digit(stack: Stack, ledger: Ledger) -> None:
    done = on(stack, "query", f"SELECT * FROM `{PAYMENTS}`", "--output", "json")
    assert done.returncode == 0, done.stderr
    found = Counter(canonical(payment(row)) for row in json.loads(done.stdout)["rows"])
    made = (record.value for record in Orders(SEED).records(ORDERS) if record.topic == "payments")
    assert found == Counter(canonical(to_native(value, SCHEMAS["payments"])) for value in made)


def payment(row: dict[str, Any]) -> dict[str, Any]:
    """A payment as JSON has it, with the types that JSON has not."""
    row = without_metadata(row)
    return row | {"amount": Decimal(row["amount"]), "paid_at": datetime.fromisoformat(row["paid_at"])}


def test_spark_and_duckdb_agree_on_an_aggregate(stack: Stack, ledger: Ledger) -> None:
    columns = "method, count(*) AS payments, CAST(sum(amount) AS VARCHAR(40)) AS paid"
    grouped = f"SELECT {columns} FROM {{}} GROUP BY method ORDER BY method"
    done = on(stack, "query", grouped.format(f"local.`{PAYMENTS}`"), "--output", "json")
    assert done.returncode == 0, done.stderr
    with duckdb_on(stack.runtime.iceberg) as duckdb:
        expected = duckdb.execute(grouped.format(f'lake.local."{PAYMENTS}"')).fetchall()
    assert len(expected) == 4
    assert [tuple(row.values()) for row in json.loads(done.stdout)["rows"]] == expected


def test_status_tells_where_things_are_and_how_they_stand(stack: Stack, ledger: Ledger) -> None:
    found = stack.json("status")
    assert list(found["addresses"]) == ["kafka", "registry", "iceberg", "api", "console"]
    assert found["addresses"] == stack.runtime.addresses
    assert found["cluster"] == "local"
    assert found["warehouse"] == (stack.data / "warehouse").as_uri()
    assert found["statements"] == []
    states = {process["name"]: process["state"] for process in found["processes"]}
    assert {name: states[name] for name in ("broker", "server", "engine")} == {
        "broker": "ready",
        "server": "ready",
        "engine": "ready",
    }
    tables = {table["topic"]: table for table in found["tables"]}
    for topic in TOPICS:
        table = tables[topic]
        rows = ledger.count(topic)
        assert (table["state"], table["reason"], table["lag"], table["rows"]) == ("Running", "", 0, rows)
        assert table["freshness"] == 0
        assert set(table["position"]) == {"cluster", "topic", "offsets", "epochs"}
        assert sum(table["position"]["offsets"].values()) == rows

    text = stack.run("status").stdout
    for name, address in found["addresses"].items():
        assert any(line.split() == [name, address] for line in text.splitlines())
    assert any(line.split()[:3] == [PAYMENTS, "Running", str(PAID)] for line in text.splitlines())


def test_up_printed_the_addresses_that_status_tells(stack: Stack) -> None:
    ready = stack.said.index("READY")
    printed = dict(line.split() for line in stack.said[ready + 1 :])
    assert printed == stack.json("status")["addresses"]


def test_list_and_show_tell_the_same(stack: Stack, ledger: Ledger) -> None:
    listed = {table["topic"]: table for table in stack.json("table", "list")}
    assert set(TOPICS) <= set(listed)
    shown = stack.json("table", "show", PAYMENTS)
    for key in ("topic", "state", "reason", "position", "lag", "rows"):
        assert shown[key] == listed[PAYMENTS][key]
    assert shown["spec"] == {
        "topic": PAYMENTS,
        "formats": ["iceberg"],
        "mode": "auto",
        "start": {"kind": "earliest"},
        "freshness_seconds": 10.0,
        "flush_bytes": 250 * 1024 * 1024,
        "on_error": "suspend",
        "value_format": "auto",
        "key_format": "none",
        "value_columns": None,
        "key_columns": None,
        "metadata": ["timestamp"],
        "partition": None,
        "event_time": None,
        "watermark": None,
        "record_types": "single",
        "tombstones": "bad",
        "renames": {},
        "dead_letters": None,
        "key": None,
        "deletes": None,
        "readers": [],
        "format_version": 3,
        "envelope": "auto",
        "rewrite": False,
        "storage": None,
        "personal": [],
    }
    assert (shown["desired"], shown["from"]) == ("enabled", "earliest")
    detail = shown["detail"]
    assert table_shown(stack, PAYMENTS)["spec"] == shown["spec"], "the API says what the command prints"
    assert detail["rows"] == PAID
    assert Path(unquote(urlsplit(detail["location"]).path)).is_dir()
    assert [event["kind"] for event in shown["events"]][-1] == "enabled"

    text = stack.run("table", "show", PAYMENTS).stdout.splitlines()
    assert text[0] == PAYMENTS
    assert ["state", "Running"] in [line.split() for line in text]
    listing = stack.run("table", "list").stdout.splitlines()
    assert listing[0].split() == ["TOPIC", "STATE", "ROWS", "LAG", "FRESHNESS", "REASON"]
    assert any(line.split()[:4] == [PAYMENTS, "Running", str(PAID), "0"] for line in listing)


def test_a_running_headgate_is_found_in_each_of_the_documented_ways(stack: Stack, ledger: Ledger) -> None:
    listed = [table["topic"] for table in stack.json("table", "list")]
    data, url = str(stack.data), stack.runtime.console
    for done in (
        headgate("--data", data, "table", "list", "--json"),
        headgate("table", "list", "--json", HEADGATE_DATA=data),
        headgate("table", "list", "--json", HEADGATE_URL=url),
        headgate("table", "list", "--json", "--data", data, HEADGATE_URL="http://127.0.0.1:1"),
    ):
        assert [table["topic"] for table in json.loads(done.stdout)] == listed, done.stderr
