"""Every page, by its address: its policy is kept, everybody can use it, and names are text."""

import json
from collections.abc import Iterator
from urllib.parse import quote

import httpx
import pytest
from confluent_kafka import Producer
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from playwright.sync_api import expect

from headgate.kafka.topics import Topics
from tests.console.conftest import Open
from tests.console.visit import PATIENCE_MS, table_path
from tests.e2e.feed import Feed
from tests.support.stack import Stack

TOPIC = "console.pages"
EXPORT = "console-pages"
RTL = "\u202egnp.exe"
SCRIPT = "<script>window.taken = 1</script><img src=x onerror='window.taken = 1'>"
LONG = "x" * 10_000
NAMES = "console.names"
HOSTILE = [SCRIPT, RTL, LONG, "=cmd|' /C calc'!A0", "\u200b\u2066{{7*7}}${7*7}"]


@pytest.fixture(scope="module")
def shown(stack: Stack) -> Iterator[None]:
    """One thing of each kind, with names and values that would be more than names where they are not text."""
    feed = Feed(stack.runtime, TOPIC, partitions=1)
    feed.send_texts(HOSTILE)
    producer = Producer({"bootstrap.servers": stack.runtime.kafka})
    header: list[tuple[str, str | bytes | None]] = [(SCRIPT[:200], SCRIPT.encode())]
    producer.produce(TOPIC, b"no row " + SCRIPT.encode(), key=RTL.encode(), headers=header, partition=0)
    assert producer.flush(30) == 0
    names = {
        "type": "object",
        "title": SCRIPT,
        "description": LONG,
        "properties": {name: {"type": "string", "description": SCRIPT} for name in HOSTILE},
    }
    with SchemaRegistryClient({"url": stack.runtime.registry}) as registry:
        made = registry.register_schema(f"{NAMES}-value", Schema(json.dumps(names), "JSON"))
    value = json.dumps(dict.fromkeys(HOSTILE, SCRIPT)).encode()
    Topics(stack.runtime.kafka).create(NAMES, 1)
    producer.produce(NAMES, b"\x00" + made.to_bytes(4, "big") + value)
    assert producer.flush(30) == 0
    stack.run("table", "enable", TOPIC, "--freshness", "1s", "--on-error", "log")
    stack.run("table", "sync", TOPIC, "--timeout", "120s")
    stack.run(
        "export", "create", EXPORT, "--sql", f"SELECT '{RTL}' AS `<b>` FROM `{TOPIC}`", "--period", "day"
    )
    stack.run(
        "sql",
        "-e",
        "SET 'client.statement-name' = 'console-copy';"
        f"CREATE TABLE `console.copy` AS SELECT id FROM `{TOPIC}`;",
    )
    with httpx.Client(base_url=stack.runtime.console, trust_env=False) as api:
        name = "browser <b>&amp;"
        credential = api.post(
            "/api/v1/credentials", json={"name": name, "role": "reader", "table": SCRIPT[:60]}
        )
        assert credential.status_code in (201, 400), credential.text
        options = {"uri": "http://127.0.0.1:1/iceberg"}
        assert api.post(
            "/api/v1/catalogs", json={"name": "nobody", "kind": "rest", "options": options}
        ).is_success
    yield
    stack.run("catalog", "remove", "nobody", "--force")
    stack.run("statement", "delete", "console-copy")
    stack.run("export", "remove", EXPORT)


TABLE_TABS = (
    "overview",
    "schema",
    "snapshots",
    "files",
    "maintenance",
    "dead-letters",
    "catalogs",
    "settings",
    "read",
)
PAGES = [
    "/",
    "/topics",
    f"/topics/{TOPIC}",
    f"/topics/{TOPIC}?tab=messages",
    f"/topics/{TOPIC}?tab=messages&from=live",
    f"/topics/{NAMES}?tab=messages",
    f"/topics/{NAMES}?tab=schema",
    f"/topics/{TOPIC}?tab=schema",
    f"/topics/{TOPIC}?tab=partitions",
    f"/topics/{TOPIC}?tab=configuration",
    "/tables",
    *(table_path(TOPIC, tab) for tab in TABLE_TABS),
    f"/tables/+enable?topic={TOPIC}.dlq",
    *(f"/tables/+enable?topic={TOPIC}.dlq&step={step}" for step in ("rows", "behaviour", "review")),
    "/statements",
    "/statements/console-copy",
    "/integrations",
    "/integrations?tab=storage",
    "/integrations?tab=credentials",
    "/integrations/catalogs/nobody",
    "/integrations/catalogs/nobody?tab=details",
    "/integrations/catalogs/nobody?tab=events",
    "/integrations/catalogs/+new",
    "/integrations/storage/+new",
    "/integrations/credentials/+new",
    "/exports",
    f"/exports/{EXPORT}",
    f"/exports/{EXPORT}?tab=definition",
    "/activity",
    "/activity?tab=audit",
    "/settings?from=said",
    "/tables/none/nowhere-" + quote(SCRIPT, safe=""),
    "/nowhere",
    "/sign-in",
]


# What reaches over the window's edge, and is no part of a box that scrolls.
_WIDEST = """
[...document.querySelectorAll("main *")]
  .filter((one) => one.getBoundingClientRect().right > 390)
  .filter((one) => {
    for (let box = one.parentElement; box; box = box.parentElement)
      if (getComputedStyle(box).overflowX !== "visible" && box.getBoundingClientRect().right <= 390)
        return false;
    return true;
  })
  .map((one) => one.outerHTML.slice(0, 160)).slice(0, 6)
"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_serious_on_any_page(visit: Open, shown: None, theme: str) -> None:
    one = visit("admin", theme=theme)
    one.expected = {404}
    found: dict[str, object] = {}
    for path in PAGES:
        page = one.go(path)
        expect(page.locator(".loading")).to_have_count(0, timeout=PATIENCE_MS)
        if findings := one.findings():
            found[path] = findings
        one.check()
    assert found == {}, json.dumps(found, indent=1)


def test_a_phone_shows_every_page_in_its_width(visit: Open, shown: None) -> None:
    one = visit("admin", width=390)
    one.expected = {404}
    wide: dict[str, object] = {}
    for path in PAGES:
        page = one.go(path)
        expect(page.locator(".loading")).to_have_count(0, timeout=PATIENCE_MS)
        if page.evaluate("document.documentElement.scrollWidth") > 390:
            wide[path] = page.evaluate(_WIDEST)
    assert wide == {}, json.dumps(wide, indent=1)


def test_hostile_names_and_values_are_text(visit: Open, shown: None) -> None:
    one = visit("admin")
    one.expected = {404}
    page = one.page
    for path in (
        f"/topics/{TOPIC}?tab=messages",
        "/integrations?tab=credentials",
        "/activity",
        *PAGES[-3:-1],
    ):
        one.go(path)
        expect(page.locator(".loading")).to_have_count(0, timeout=PATIENCE_MS)
        assert page.evaluate("window.taken") is None, path
        assert page.locator("main script, main img, main b:text-is('&amp;')").count() == 0, path
    one.go(f"/topics/{TOPIC}?tab=messages")
    expect(page.get_by_text("<script>window.taken").first).to_be_visible(timeout=PATIENCE_MS)
    # What turns the direction of text is shown as what it is, and what is long is clipped.
    expect(page.get_by_text("⟨202e⟩").first).to_be_visible()
    assert (
        page.evaluate(
            "Math.max(...[...document.querySelectorAll('main bdi')].map((e) => e.innerText.length))"
        )
        < 2000
    )
