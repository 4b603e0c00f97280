"""Webhooks as a real server gets them: signed, and told apart from repeats."""

import hashlib
import hmac
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from headgate.errors import OutsideUnavailable
from headgate.export.webhook import post


class Receiver(HTTPServer):
    """Keeps what was posted, and answers `code`."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Posted)
        self.code = 204
        self.posted: list[tuple[dict[str, str], bytes]] = []


class _Posted(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        receiver: Any = self.server
        body = self.rfile.read(int(self.headers["Content-Length"]))
        receiver.posted.append(({key.lower(): value for key, value in self.headers.items()}, body))
        self.send_response(receiver.code)
        self.end_headers()

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_a_message_is_signed_with_its_time_and_its_body(receiver: Receiver) -> None:
    url = f"http://127.0.0.1:{receiver.server_port}/hook?for=sales"
    post(url, "key", "run1.written", {"export": "søndag", "rows": 3})
    ((headers, body),) = receiver.posted
    at, _, signed = headers["x-headgate-signature"].partition(",v1=")
    expected = hmac.new(b"key", f"{at.removeprefix('t=')}.".encode() + body, hashlib.sha256).hexdigest()
    assert signed == expected
    assert (json.loads(body), headers["x-headgate-delivery"]) == (
        {"export": "søndag", "rows": 3},
        "run1.written",
    )


def test_what_is_not_taken_is_an_error(receiver: Receiver) -> None:
    receiver.code = 500
    with pytest.raises(OutsideUnavailable, match="answered 500"):
        post(f"http://127.0.0.1:{receiver.server_port}/", "key", "run1.written", {})
    with pytest.raises(OutsideUnavailable, match="does not answer"):
        post("http://127.0.0.1:1/", "key", "run1.written", {})
