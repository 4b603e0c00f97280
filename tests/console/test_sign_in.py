"""Who signs in with a credential sees what its role may, and does nothing that it forbids."""

import pytest
from playwright.sync_api import expect

from headgate.access.credentials import Credentials
from headgate.access.roles import Grant
from tests.console.conftest import Open
from tests.console.visit import PATIENCE_MS, Client, table_path
from tests.e2e.feed import Feed
from tests.support.stack import Stack

TOPIC = "console.roles"
EVERYBODYS = ["Overview", "Topics", "Tables", "Statements", "Activity"]
ADMINS = ["Overview", "Topics", "Tables", "Statements", "Integrations", "Exports", "Activity", "Settings"]


@pytest.fixture(scope="module")
def table(stack: Stack) -> str:
    feed = Feed(stack.runtime, TOPIC, partitions=1)
    feed.send(5)
    stack.run("table", "enable", TOPIC, "--freshness", "1s", "--on-error", "log")
    stack.run("table", "sync", TOPIC, "--timeout", "120s")
    return TOPIC


@pytest.mark.parametrize(
    ("role", "sections", "buttons"),
    [
        ("reader", EVERYBODYS, []),
        ("writer", EVERYBODYS, ["Sync now", "Suspend"]),
        ("admin", ADMINS, ["Sync now", "Suspend"]),
    ],
)
def test_a_role_hides_what_it_forbids_and_the_server_refuses_it(
    visit: Open, table: str, role: str, sections: list[str], buttons: list[str]
) -> None:
    one = visit(role)
    page = one.go(table_path(table), table)
    assert [text for text in one.sections() if text in ADMINS] == sections
    one.see(page.get_by_text("Records materialized"))
    for name in ("Sync now", "Suspend"):
        expect(page.get_by_role("button", name=name)).to_have_count(1 if name in buttons else 0)
    if buttons:
        page.get_by_role("button", name="More actions").click()
        expect(page.get_by_role("menuitem", name="Disable and purge")).to_have_count(int(role == "admin"))
    # What is hidden is refused as well, to the page's own session.
    one.expected = {403}
    asked = """async ([method, path]) => (await fetch(path, {
        method, headers: {"X-Headgate-Console": "1", "Content-Type": "application/json"},
        body: method === "GET" ? undefined : "{}",
    })).status"""
    assert page.evaluate(asked, ["GET", "/api/v1/credentials"]) == (200 if role == "admin" else 403)
    may_sync = 403 if role == "reader" else 200
    assert page.evaluate(asked, ["POST", f"/api/v1/tables/{table}/sync"]) in (may_sync, may_sync + 2)
    if role != "admin":
        one.go("/integrations", "Integrations")
        expect(page.get_by_role("heading", name="For admins")).to_be_visible()


# Where the button is that a reader has not, and what it asks for.
WRITERS = [
    ("/topics", "Create a topic", "POST", "/topics", {"name": "console.refused"}),
    (f"/topics/{TOPIC}", "Produce", "POST", f"/topics/{TOPIC}/messages", {"value": {"id": 1}}),
    (table_path(TOPIC, "maintenance"), "Compact", "POST", f"/tables/{TOPIC}/compact", {}),
    (table_path(TOPIC, "dead-letters"), "Replay all", "POST", f"/tables/{TOPIC}/replay", {}),
    (table_path(TOPIC), "Suspend", "POST", f"/tables/{TOPIC}/suspend", {}),
    (f"/tables/+enable?topic={TOPIC}.dlq", "Continue", "POST", "/tables", {"topic": f"{TOPIC}.dlq"}),
]
# What only admins may, as it is asked for.
ADMINS_REQUESTS = [
    ("DELETE", f"/tables/{TOPIC}?purge=true", None),
    ("POST", "/credentials", {"name": "refused", "role": "admin"}),
    ("POST", "/catalogs", {"name": "refused", "kind": "rest", "options": {"uri": "http://127.0.0.1:1"}}),
    ("POST", "/storage", {"name": "refused", "location": "s3://refused/tables"}),
    ("GET", "/audit", None),
    ("GET", "/settings", None),
]
ASK = """async ([method, path, body]) => (await fetch("/api/v1" + path, {
    method, headers: {"X-Headgate-Console": "1", "Content-Type": "application/json"},
    body: body === null ? undefined : JSON.stringify(body),
})).status"""


@pytest.mark.parametrize("role", ["reader", "writer", "admin"])
def test_each_button_is_where_its_role_is_and_its_request_is_refused_elsewhere(
    visit: Open, table: str, role: str
) -> None:
    one = visit(role)
    one.expected = {403}
    for path, button, method, asked, body in WRITERS:
        page = one.go(path)
        expect(page.locator(".loading")).to_have_count(0, timeout=PATIENCE_MS)
        shown = page.get_by_role("button", name=button, exact=True)
        expect(shown).to_have_count(0 if role == "reader" else 1)
        if role == "reader":
            assert page.evaluate(ASK, [method, asked, body]) == 403, asked
    if role != "admin":
        for method, asked, body in ADMINS_REQUESTS:
            assert one.page.evaluate(ASK, [method, asked, body]) == 403, asked


def test_a_wrong_secret_opens_nothing_and_says_so(visit: Open, clients: dict[str, Client]) -> None:
    one = visit()
    one.expected = {401}
    page = one.go("/sign-in")
    page.get_by_label("Client id").fill(clients["admin"].client_id)
    page.get_by_label("Client secret").fill("not the secret")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_be_visible()
    assert [cookie for cookie in page.context.cookies() if "session" in cookie.get("name", "")] == []


def test_a_session_is_nobody_elses_and_ends_with_its_credential(visit: Open, stack: Stack) -> None:
    credentials = Credentials(stack.store.engine)
    made, secret = credentials.create("browser-leaving", [Grant.parse("reader")])
    one = visit()
    one.sign_in(Client(made.client_id, secret))
    (cookie,) = page_cookies = one.page.context.cookies()
    assert (cookie.get("httpOnly"), cookie.get("sameSite")) == (True, "Strict"), page_cookies
    assert one.page.evaluate("document.cookie") == ""
    one.expected = {401}
    credentials.revoke("browser-leaving")
    for _ in range(2):
        one.go("/topics")
        expect(one.page.get_by_label("Client secret")).to_be_visible(timeout=PATIENCE_MS)
