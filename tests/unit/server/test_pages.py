"""The console's page and files: for everybody, with what browsers are told that they may do."""

import gzip
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from headgate.access.peers import PEER
from headgate.embedded.runtime import Runtime
from headgate.server.app import create_app
from headgate.server.doors import PublicDoor
from headgate.server.pages import BUILT, NONCE, SECTIONS, is_open, pages_router
from headgate.store import Store
from tests.support.peers import PeerOf

SCRIPT = "console.log('here');\n" * 200
PAGE = f'<!doctype html><meta name="csp-nonce" content="{NONCE}"><title>Headgate</title>'
DEEP = ["/", "/topics", "/topics/shop.orders", "/tables/shop.orders/files", "/settings/", "/sql"]


@pytest.fixture
def built(tmp_path: Path) -> Path:
    folder = tmp_path / "console"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text(PAGE)
    (folder / "favicon.svg").write_text("<svg/>")
    (folder / "assets" / "main-1a2b.js").write_text(SCRIPT)
    (tmp_path / "secret.txt").write_text("secret")
    (folder / "assets" / "way-out.txt").symlink_to(tmp_path / "secret.txt")
    return folder


@pytest.fixture
def browser(built: Path) -> Iterator[TestClient]:
    app = FastAPI()
    app.include_router(pages_router(built))
    with TestClient(app) as browser:
        yield browser


@pytest.mark.parametrize("path", DEEP)
def test_every_address_of_the_console_is_its_page(browser: TestClient, path: str) -> None:
    answer = browser.get(path)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "<title>Headgate</title>" in answer.text
    assert answer.headers["cache-control"] == "no-store"
    assert browser.head(path).status_code == 200


def test_policy_of_a_page_allows_its_own_files_and_one_nonce(browser: TestClient) -> None:
    answers = [browser.get("/") for _ in range(2)]
    nonces = []
    for answer in answers:
        nonces += re.findall(r'name="csp-nonce" content="([^"]{24,})"', answer.text)
        policy = dict(part.split(" ", 1) for part in answer.headers["content-security-policy"].split("; "))
        assert policy == {
            "default-src": "'none'",
            "script-src": "'self'",
            "style-src": f"'self' 'nonce-{nonces[-1]}'",
            "img-src": "'self' data:",
            "font-src": "'self'",
            "connect-src": "'self'",
            "base-uri": "'none'",
            "form-action": "'none'",
            "frame-ancestors": "'none'",
        }
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cross-origin-opener-policy"] == "same-origin"
    assert len(set(nonces)) == 2
    assert NONCE not in answers[0].text


def test_asset_is_kept_by_browsers_and_sent_compressed(browser: TestClient) -> None:
    answer = browser.get("/assets/main-1a2b.js", headers={"Accept-Encoding": "br, gzip"})
    assert answer.text == SCRIPT
    assert answer.headers["content-type"] == "text/javascript; charset=utf-8"
    assert answer.headers["content-encoding"] == "gzip"
    assert int(answer.headers["content-length"]) == len(gzip.compress(SCRIPT.encode()))
    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert "nonce" not in answer.headers["content-security-policy"]
    for refused in ("identity", "gzip;q=0"):
        plain = browser.get("/assets/main-1a2b.js", headers={"Accept-Encoding": refused})
        assert ("content-encoding" in plain.headers, plain.text) == (False, SCRIPT)
    icon = browser.get("/favicon.svg")
    assert (icon.headers["content-type"], icon.text) == ("image/svg+xml", "<svg/>")


def test_asset_that_is_built_again_is_sent_as_it_is_now(browser: TestClient, built: Path) -> None:
    assert browser.get("/assets/main-1a2b.js").text == SCRIPT
    (built / "assets" / "main-1a2b.js").write_text(SCRIPT * 2)
    assert browser.get("/assets/main-1a2b.js").text == SCRIPT * 2


def test_link_to_a_file_that_is_none_is_no_page(browser: TestClient) -> None:
    assert browser.get("/exports/files/none").status_code == 404
    assert browser.get("/exports/daily").status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        "/assets/none.js",
        "/assets/",
        "/assets/..%2findex.html",
        "/assets/%2e%2e/%2e%2e/secret.txt",
        "/assets/way-out.txt",
        "/assets//etc/passwd",
        f"/assets/{'x' * 5000}",
        "/favicon.ico",
    ],
)
def test_what_is_no_file_of_the_console_is_not_found(browser: TestClient, path: str) -> None:
    answer = browser.get(path)
    assert (answer.status_code, answer.headers["cache-control"]) == (404, "no-store")


def test_page_says_how_the_console_is_built_where_it_is_not(tmp_path: Path) -> None:
    app = FastAPI()
    app.include_router(pages_router(tmp_path))
    answer = TestClient(app).get("/topics/orders")
    assert answer.status_code == 200
    assert "make console" in answer.text
    (nonce,) = re.findall(r'<style nonce="([^"]+)">', answer.text)
    assert f"'nonce-{nonce}'" in answer.headers["content-security-policy"]


def test_page_is_for_everybody_at_both_doors(runtime: Runtime, store: Store) -> None:
    """It has no data."""
    app = create_app(runtime, store)
    with TestClient(app, base_url="http://127.0.0.1:8080") as stranger:
        stranger.app_state[PEER] = PeerOf(12_345)
        assert [stranger.get(path).status_code for path in DEEP] == [200] * len(DEEP)
        assert stranger.get("/assets/none.js").status_code == 404
        assert stranger.get("/favicon.ico").status_code == (200 if (BUILT / "favicon.ico").exists() else 404)
    with TestClient(PublicDoor(app), base_url="https://lake.example") as public:
        assert public.get("/tables/orders").status_code == 200
        assert public.get("/api/v1/status").status_code == 401


def test_nothing_else_is_open() -> None:
    closed = [
        "/exports/files/x",
        "//",
        "//api/v1/status",
        "/api/v1/status",
        "/metrics",
        "/nowhere",
        "/topicsx",
        "/asset",
        "",
        "*",
    ]
    assert not [path for path in closed if is_open("GET", path)]
    assert not [method for method in ("POST", "PUT", "DELETE", "OPTIONS") if is_open(method, "/topics")]


def test_no_address_of_the_console_is_one_of_the_api(runtime: Runtime, store: Store) -> None:
    """What is open to everybody must not cover a route that is not."""
    app = create_app(runtime, store)
    described = app.openapi()["paths"]
    assert len(described) > 40
    assert not [path for path in described if path[1:].partition("/")[0] in SECTIONS]


@pytest.mark.parametrize(
    ("headers", "asks"),
    [({}, True), ({"X-Headgate-Console": "1"}, False), ({"Accept": "text/event-stream"}, False)],
)
def test_no_browser_asks_for_a_password_where_the_console_does(
    runtime: Runtime, store: Store, headers: dict[str, str], asks: bool
) -> None:
    with TestClient(PublicDoor(create_app(runtime, store)), base_url="https://lake.example") as public:
        answer = public.get("/api/v1/status", headers=headers)
    assert (answer.status_code, "www-authenticate" in answer.headers) == (401, asks)
