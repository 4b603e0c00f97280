"""Something between an engine and the catalog: it can hold a request back, or lose its reply."""

import http.client
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

# Called with method, path and body. Before the request is passed on: may block. After: False loses the reply.
Before = Callable[[str, str, bytes], None]
After = Callable[[str, str, bytes], bool]
HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "host", "content-length"}


@contextmanager
def proxy(target: str, before: Before, after: After) -> Iterator[str]:
    """The address that stands for `target` while the block lasts."""
    parts = urlsplit(target)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            before(self.command, self.path, body)
            upstream = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
            headers = {k: v for k, v in self.headers.items() if k.lower() not in HOP_BY_HOP}
            upstream.request(self.command, self.path, body or None, headers)
            answer = upstream.getresponse()
            content = answer.read()
            upstream.close()
            if not after(self.command, self.path, body):
                self.close_connection = True
                self.connection.close()
                return
            self.send_response(answer.status)
            for name, value in answer.getheaders():
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
