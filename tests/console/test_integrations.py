"""Catalogs, credentials and settings, as an admin works with them; and tables that come by the wizard."""

import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from playwright.sync_api import Page, expect

from tests.console.conftest import Open
from tests.console.visit import PATIENCE_MS, Client, Visit
from tests.e2e.feed import Feed
from tests.support import glue as moto
from tests.support import unity as double
from tests.support.delta import read_delta_rs
from tests.support.services import wait_for
from tests.support.stack import Stack

BOTH, DELTA = "console.both", "console.delta"


@pytest.fixture(scope="module", autouse=True)
def catalogs_end(stack: Stack) -> Iterator[None]:
    yield
    for one in stack.json("catalog", "list"):
        stack.run("catalog", "remove", one["name"], "--force")


def state(page: Page) -> str:
    return page.locator(".page-title .badge").inner_text().strip()


def wait_for_state(one: Visit, wanted: str) -> None:
    expect(one.page.locator(".page-title .badge").first).to_have_text(wanted, timeout=PATIENCE_MS)


def launch(one: Visit, topic: str, tile: str) -> None:
    """Through the wizard, as far as what was launched is shown."""
    page = one.go("/tables/+enable")
    page.locator("label.topic-row", has_text=topic).click()
    page.get_by_role("button", name="Continue").click()
    page.locator("label.tile", has_text=tile).first.click()
    page.get_by_role("button", name="Skip to review").click()
    formats = {"Delta Lake": "delta", "Both": "iceberg,delta"}[tile]
    expect(page.locator("code", has_text=f"headgate table enable {topic}").first).to_contain_text(
        f"--formats {formats}"
    )
    page.get_by_role("button", name="Launch").click()


def test_tables_come_by_the_wizard_into_catalogs_that_were_added_by_forms(
    visit: Open, stack: Stack, glue: moto.Glue, unity: double.Unity
) -> None:
    one = visit("admin")
    page = one.go("/integrations", "Integrations")
    page.get_by_role("link", name="Add a catalog").first.click()
    page.get_by_label("Name", exact=True).fill("athena")
    page.get_by_label("Region").fill(moto.REGION)
    page.get_by_text("More options").click()
    page.get_by_label("Access key id").fill(moto.KEYS["access_key_id"])
    page.get_by_label("Secret of the access key").fill("glue")
    page.get_by_label("Endpoint").fill(glue.url)
    page.get_by_role("button", name="Add the catalog").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("athena")
    assert state(page) in ("Pending", "Connected")
    wait_for_state(one, "Connected")

    page = one.go("/integrations/catalogs/+new?kind=unity", "Add a catalog")
    page.get_by_label("Name", exact=True).fill("databricks")
    page.get_by_label("Workspace URL").fill(unity.url)
    page.get_by_role("textbox", name="Unity catalog").fill("main")
    page.get_by_label("Client id").fill(double.CLIENT_ID)
    page.get_by_label("Client secret").fill("unity")
    page.get_by_label("Schema").fill("kafka")
    page.get_by_role("button", name="Add the catalog").click()
    wait_for_state(one, "Pending")
    expect(page.get_by_text("first table").first).to_be_visible(timeout=PATIENCE_MS)

    feeds = {topic: Feed(stack.runtime, topic, partitions=2) for topic in (BOTH, DELTA)}
    for feed in feeds.values():
        feed.send(6)
    launch(one, DELTA, "Delta Lake")
    shown = page.locator(".panel .badge").first
    expect(shown).to_have_text(re.compile("Pending|Syncing|Running"))
    other = visit("admin")
    launch(other, BOTH, "Both")
    # Two browsers, and each sees the other's table come.
    for watcher in (one, other):
        for topic in (BOTH, DELTA):
            watcher.go("/tables", "Tables")
            row = watcher.page.get_by_role("row", name=re.compile(re.escape(topic)))
            expect(row.locator(".badge").first).to_have_text("Running", timeout=PATIENCE_MS)

    one.go("/integrations/catalogs/databricks", "databricks")
    wait_for_state(one, "Connected")
    for topic in (BOTH, DELTA):
        row = page.get_by_role("row", name=re.compile(re.escape(topic)))
        expect(row.locator(".badge").first).to_have_text("Synced", timeout=PATIENCE_MS)
    for feed in feeds.values():
        feed.send(4)
        stack.run("table", "sync", feed.topic, "--timeout", "120s")
    # A table of Delta alone is no table to readers of Iceberg.
    assert feeds[BOTH].check() == 10
    for topic in (BOTH, DELTA):
        location = str(unity.tables[f"main.kafka.{topic.replace('.', '_')}"]["storage_location"])
        rows = read_delta_rs("/" + location.removeprefix("file:").lstrip("/"))
        values = [sent.value for sent in feeds[topic].rows() if sent.value is not None]
        assert Counter((row["id"], row["text"], row["at"]) for row in rows) == Counter(
            (value["id"], value["text"], datetime.fromtimestamp(value["at"] / 1000, UTC)) for value in values
        )
    wait_for("Glue to have the table", lambda: glue.names("local") == ["console_both"])

    # Removed by its name alone; that it is gone is what the page learns by asking for it.
    one.expected = {404}
    one.go("/integrations/catalogs/athena")
    page.get_by_role("button", name="Remove").click()
    dialog = page.get_by_role("dialog")
    confirm = dialog.get_by_role("button", name="Remove")
    expect(confirm).to_be_disabled()
    dialog.get_by_role("textbox").fill("athena")
    confirm.click()
    expect(page.get_by_role("heading", name="Removed")).to_be_visible(timeout=PATIENCE_MS)
    assert glue.names("local") == []


def test_a_credential_is_created_used_and_revoked(visit: Open, stack: Stack) -> None:
    one = visit("admin")
    page = one.go("/integrations/credentials/+new", "Create a credential")
    page.get_by_label("Name", exact=True).fill("analyst")
    page.get_by_label("Topics and tables").fill("console.*")
    expect(page.locator(".code-block code").first).to_contain_text(
        "headgate credentials create analyst --role reader --table 'console.*'"
    )
    page.get_by_role("button", name="Create", exact=True).click()
    expect(page.get_by_text("Copy the secret now")).to_be_visible()
    client_id, secret = (text.strip() for text in page.locator(".secret-value code").all_inner_texts())
    page.get_by_role("button", name="Copy").nth(1).click()
    assert page.evaluate("navigator.clipboard.readText()") == secret
    page.get_by_role("link", name="I have copied it").click()
    expect(page.get_by_role("row", name=re.compile("analyst"))).to_contain_text("reader of console.*")
    # Neither on its page nor anywhere else.
    one.go(f"/integrations/credentials/{client_id}", "analyst")
    expect(page.get_by_text("shown once")).to_be_visible()
    assert secret not in page.content()

    used = visit()
    used.sign_in(Client(client_id, secret))
    used.go("/topics", "Topics")
    assert "Integrations" not in used.sections()

    page.get_by_role("button", name="Revoke").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("textbox").fill("analyst")
    dialog.get_by_role("button", name="Revoke").click()
    wait_for_state(one, "Revoked")
    used.expected = {401}
    used.go("/tables")
    expect(used.page.get_by_label("Client secret")).to_be_visible()
    one.go("/activity?tab=audit&about=analyst", "Activity")
    expect(page.get_by_role("row", name=re.compile("DELETE .api.v1.credentials"))).to_be_visible()


def test_policies_come_before_a_location_is_tried(visit: Open) -> None:
    one = visit("admin")
    page = one.go("/integrations/storage/+new", "Add a storage location")
    page.get_by_label("Name", exact=True).fill("archive")
    page.get_by_label("Location", exact=True).fill("s3://archive/tables")
    page.get_by_label("IAM role").fill("arn:aws:iam::123456789012:role/lake")
    external = page.get_by_label("External id").input_value()
    trust = page.locator(".code-block", has_text="Trust policy")
    expect(trust).to_contain_text(external)
    trust.get_by_role("button", name=re.compile("^Copy")).click()
    assert '"sts:ExternalId"' in page.evaluate("navigator.clipboard.readText()")
    assert external.startswith("headgate-")


def test_settings_say_where_they_come_from_and_no_secret(visit: Open) -> None:
    one = visit("admin")
    page = one.go("/settings?from=said", "Settings")
    row = page.get_by_role("row", name=re.compile("publication.interval"))
    expect(row).to_contain_text("environment")
    for secret in (moto.SECRET, double.SECRET):
        assert secret not in page.content()
