"""What `headgate up` prints when it is ready."""

import re
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from headgate.cli.up import Screen
from headgate.config import load_settings
from headgate.embedded.runtime import Runtime
from headgate.server.app import create_app
from headgate.store import Store

LINK = re.compile(r"http://127\.0\.0\.1:8080(/sign-in\?token=\S+)")


@pytest.mark.parametrize(
    ("required", "tells_users", "is_terminal", "is_printed"),
    [
        (False, True, True, False),
        (True, True, True, True),
        (False, False, True, True),
        (True, False, False, False),
    ],
    ids=["a system that tells users", "everybody is asked", "a system that does not", "no terminal"],
)
def test_a_link_signs_a_browser_in_where_one_is_needed(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    required: bool,
    tells_users: bool,
    is_terminal: bool,
    is_printed: bool,
) -> None:
    asked = {"HEADGATE_AUTH__REQUIRED": "true" if required else "false"}
    settings = load_settings(environment=asked, data=tmp_path)
    runtime = Runtime.of(settings, server_port=8080, connect_port=1, broker_port=1)
    store = Store.open(settings.store_url)
    app = create_app(runtime, store)
    monkeypatch.setattr("headgate.access.peers.tells_users", lambda: tells_users)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal)
    with ExitStack() as starting:
        Screen(starting).ready(runtime)
    told = capsys.readouterr()
    link = LINK.search((told.out + told.err).replace("\n", ""))
    assert ("READY" in told.out, link is not None) == (True, is_printed)
    if link is not None:
        with TestClient(app, base_url="http://127.0.0.1:8080") as browser:
            assert browser.get("/api/v1/status").status_code == 401
            assert browser.get(link[1], follow_redirects=False).status_code == 303
            assert browser.get("/api/v1/status").status_code == 200
    store.close()
