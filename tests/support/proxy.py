"""Something between an engine and the catalog: it holds requests back, loses replies, or delivers late."""

import http.client
import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

# Called with method, path and body. Before the request is passed on: may block. After: False loses the reply.
Before = Callable[[str, str, bytes], None]
After = Callable[[str, str, bytes], bool]
HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "host", "content-length"}
# Closed with this, a connection is reset: the client cannot know what became of its request.
RESET = struct.pack("ii", 1, 0)


@dataclass
class Late:
    """Requests whose clients were cut off, and which reach the target when `deliver` is called.

    `which` chooses them by their bodies; each is chosen once. The target's offer of idempotency keys is kept
    from its clients, as that of a catalog that has none.
    """

    target: str
    which: Callable[[bytes], bool] = lambda _: False
    held: list[tuple[str, bytes, Mapping[str, str]]] = field(default_factory=list)

    def takes(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> bool:
        if method != "POST" or not self.which(body):
            return False
        self.which = lambda _: False
        self.held.append((path, body, headers))
        return True

    def deliver(self) -> int:
        """What the target answers to the request that was held, and nobody hears."""
        path, body, headers = self.held.pop()
        status, _, _ = _forward(self.target, "POST", path, body, headers)
        return status

    @staticmethod
    def without_keys(content: bytes) -> bytes:
        try:
            found = json.loads(content)
        except ValueError:
            return content
        if not isinstance(found, dict) or "idempotency-key-lifetime" not in found:
            return content
        return json.dumps({k: v for k, v in found.items() if k != "idempotency-key-lifetime"}).encode()


def _forward(
    target: str, method: str, path: str, body: bytes, headers: Mapping[str, str]
) -> tuple[int, list[tuple[str, str]], bytes]:
    parts = urlsplit(target)
    upstream = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
    upstream.request(method, path, body or None, dict(headers))
    answer = upstream.getresponse()
    content = answer.read()
    upstream.close()
    return answer.status, answer.getheaders(), content


@contextmanager
def proxy(target: str, before: Before, after: After, late: Late | None = None) -> Iterator[str]:
    """The address that stands for `target` while the block lasts."""
    parts = urlsplit(target)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            before(self.command, self.path, body)
            headers = {k: v for k, v in self.headers.items() if k.lower() not in HOP_BY_HOP}
            if late is not None and late.takes(self.command, self.path, body, headers):
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                self.close_connection = True
                self.connection.close()
                return
            status, answered, content = _forward(target, self.command, self.path, body, headers)
            if late is not None:
                content = late.without_keys(content)
            if not after(self.command, self.path, body):
                self.close_connection = True
                self.connection.close()
                return
            self.send_response(status)
            for name, value in answered:
                if name.lower() not in HOP_BY_HOP:
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        do_GET = do_POST = do_DELETE = do_HEAD = handle_any  # noqa: N815

        def log_message(self, *_: object) -> None:
            """Tests read assertions, not access logs."""

        def finish(self) -> None:
            # The connection of a lost reply is closed already.
            if not self.connection._closed:
                super().finish()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}{parts.path}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def is_batch(method: str, body: bytes) -> bool:
    """A commit that carries rows of a batch."""
    return method == "POST" and b"headgate.batch-id" in body and b"added-records" in body
