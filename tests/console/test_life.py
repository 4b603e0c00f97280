"""A table's life, as it is seen and steered in a browser."""

import json
import re
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from playwright.sync_api import expect

from tests.console.conftest import Open
from tests.console.visit import PATIENCE_MS, table_path
from tests.e2e.feed import SCHEMA, Feed
from tests.support.services import wait_for
from tests.support.stack import Stack

TOPIC = "console.life"


@pytest.fixture(scope="module")
def feed(stack: Stack) -> Feed:
    """A topic that became a table, with some small files."""
    feed = Feed(stack.runtime, TOPIC, partitions=1)
    stack.run(
        "table", "enable", TOPIC, "--freshness", "1s", "--on-error", "log", "--formats", "iceberg,delta"
    )
    for _ in range(3):
        feed.send(4)
        stack.run("table", "sync", TOPIC, "--timeout", "120s")
    return feed


def test_figures_follow_and_files_are_packed(visit: Open, stack: Stack, feed: Feed) -> None:
    one = visit("writer")
    page = one.go(table_path(TOPIC), TOPIC)
    materialized = page.locator(".stat", has_text="Records materialized").locator("dd")
    expect(materialized).to_have_text("12", timeout=PATIENCE_MS)
    for label in ("Data files", "Last compaction", "Storage used", "Lag", "Freshness"):
        expect(page.locator(".stat", has_text=label).first).to_be_visible()
    # Without anybody touching the page.
    feed.send(3)
    expect(materialized).to_have_text("15", timeout=PATIENCE_MS)

    page.get_by_role("tab", name="Maintenance").click()
    page.get_by_label("Every file, whatever its size").check()
    page.get_by_role("button", name="Compact").click()
    history = page.get_by_role("table", name="Maintenance history")
    expect(history.get_by_role("row").nth(1)).to_be_visible(timeout=PATIENCE_MS)
    assert feed.check() == 15


def test_a_schema_change_arrives(visit: Open, stack: Stack, feed: Feed) -> None:
    one = visit("reader")
    page = one.go(table_path(TOPIC, "schema"), TOPIC)
    expect(page.get_by_role("row", name=re.compile("^text"))).to_be_visible()
    stack.run("table", "alter", TOPIC, "--metadata", "timestamp,offset")
    expect(page.get_by_role("row", name=re.compile("_kafka_offset"))).to_be_visible(timeout=PATIENCE_MS)
    expect(page.locator(".schema-history li")).not_to_have_count(1)


def test_a_dead_letter_is_seen_and_replayed(visit: Open, stack: Stack, feed: Feed) -> None:
    evolved: dict[str, Any] = {
        **SCHEMA,
        "fields": [*SCHEMA["fields"], {"name": "n", "type": "int", "default": 0}],
    }
    with SchemaRegistryClient({"url": stack.runtime.registry}) as registry:
        before = registry.register_schema("console.before", Schema('"string"', "AVRO"))
        # A record of a schema that is registered only later: id 77, no text, the beginning, n = 1.
        value = b"\x00" + (before + 1).to_bytes(4, "big") + bytes((0x9A, 0x01, 0, 0, 2))
        feed.send_bytes(0, value)
        wait_for(
            "the record to be dead", lambda: stack.json("table", "show", TOPIC)["dead_letters_count"] == 1
        )
        one = visit("writer")
        page = one.go(table_path(TOPIC, "dead-letters"), TOPIC)
        row = page.get_by_role("table", name="Dead letters").get_by_role("row").nth(1)
        expect(row).to_be_visible(timeout=PATIENCE_MS)
        row.get_by_role("button").first.click()
        expect(page.get_by_role("dialog")).to_contain_text("9a 01")
        page.keyboard.press("Escape")
        assert registry.register_schema(feed.subject, Schema(json.dumps(evolved), "AVRO")) == before + 1
    page.get_by_role("button", name="Replay all").click()
    expect(page.get_by_text("1 record replayed").first).to_be_visible(timeout=PATIENCE_MS)
    wait_for(
        "no dead letter to be left", lambda: stack.json("table", "show", TOPIC)["dead_letters_count"] == 0
    )


def test_a_table_is_suspended_resumed_and_purged(visit: Open, stack: Stack, feed: Feed) -> None:
    one, watcher = visit("admin"), visit("reader")
    page = one.go(table_path(TOPIC), TOPIC)
    seen = (
        watcher.go("/tables", "Tables")
        .get_by_role("row", name=re.compile(re.escape(TOPIC)))
        .locator(".badge")
        .first
    )
    page.get_by_role("button", name="Suspend").click()
    page.get_by_role("dialog").get_by_role("button", name="Suspend").click()
    # Both browsers see it as it happens.
    expect(page.locator(".page-title .badge").first).to_have_text("Suspended", timeout=PATIENCE_MS)
    expect(seen).to_have_text("Suspended", timeout=PATIENCE_MS)
    page.get_by_role("button", name="Resume").first.click()
    expect(seen).to_have_text(re.compile("Running|Syncing"), timeout=PATIENCE_MS)
    expect(page.locator(".page-title .badge").first).to_have_text("Running", timeout=PATIENCE_MS)

    page.get_by_role("button", name="More actions").click()
    page.get_by_role("menuitem", name="Disable and purge").click()
    dialog = page.get_by_role("dialog")
    button = dialog.get_by_role("button", name="Delete the table and its files")
    expect(button).to_be_disabled()
    dialog.get_by_role("textbox").fill(TOPIC)
    button.click()
    expect(seen).to_have_count(0, timeout=PATIENCE_MS)
    wait_for(
        "the table to be gone", lambda: TOPIC not in [one["topic"] for one in stack.json("table", "list")]
    )
