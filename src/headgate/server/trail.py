"""The audit trail as requests leave it: what changes something, asks for rows, or is refused.

It stands before all that could refuse a request. Entries of the API are written before the answer leaves;
those of catalog and registry, which programs use at speed, a moment later and many at a time.
"""

import logging
import queue
import re
import threading
import time
from urllib.parse import quote, unquote

from sqlalchemy.exc import SQLAlchemyError
from starlette.concurrency import run_in_threadpool
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headgate.access import ENGINE, Principal
from headgate.access.gate import PUBLIC_DOOR
from headgate.access.sessions import SIGN_IN
from headgate.access.topics import RIGHTS
from headgate.export.links import PATH as FILES
from headgate.server.access import Access
from headgate.store.audit import REFUSED, Audit, AuditEntry

log = logging.getLogger(__name__)

API = "/api/v1/"
READING = frozenset({"GET", "HEAD", "OPTIONS"})
# Asked with POST, and nothing is changed by it. Held against the path as it was sent: a slash in a name is no
# end of it, and a table may be called metrics.
HARMLESS = re.compile(
    r"/api/v1/query/start|/iceberg/v1/namespaces/[^/]+/tables/[^/]+/metrics"
    r"|/registry/compatibility/.*|/registry/subjects/[^/]*"
)
# What a caller's rights do not reach, and what a limit does not let by.
TURNED_AWAY = frozenset({401, 403, 413, 429})
# Of things that paths name: the noun, and what it is called here.
NAMED = re.compile(
    r"/(?:iceberg/v1/namespaces/(?P<ns>[^/]+)(?:/(?P<kind>tables|views)/(?P<name>[^/]+))?"
    r"|registry/(?:subjects|config|mode)/(?P<subject>.+?)(?:/versions.*)?$"
    r"|api/v1/(?P<noun>credentials|storage|catalogs|exports)/(?P<thing>[^/]+))"
)
LONGEST = 500
FAILED = 500
# Strangers may knock as often as they like: so many are written down, by address and minute.
STRANGERS, MOST_ADDRESSES = 20, 10_000
PRUNE_SECONDS = 3600.0
IDLE_SECONDS = 1.0
MOST_WAITING = 10_000


class Trail:
    """The middleware; `keep` is for how many seconds entries are kept."""

    def __init__(self, app: ASGIApp, audit: Audit, keep: float) -> None:
        self._app = app
        self._writer = TrailWriter(audit, keep)
        self._strangers = Strangers()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        # Shared with whatever copies the scope below.
        scope.setdefault("state", {})

        answered = False

        async def note(message: Message) -> None:
            nonlocal answered
            if message["type"] == "http.response.start":
                answered = True
                await self._note(scope, message["status"])
            await send(message)

        try:
            await self._app(scope, receive, note)
        except Exception:
            if not answered:
                await self._note(scope, FAILED)
            raise

    async def _note(self, scope: Scope, status: int) -> None:
        access, caller = _caller(scope)
        if caller == ENGINE or not _is_noted(scope, status, access):
            return
        address = "" if scope.get("client") is None else str(scope["client"][0])
        if caller is None and not self._strangers.take(address):
            return
        entry = AuditEntry(
            "" if caller is None else caller.name,
            "" if caller is None else caller.credential,
            address,
            "public" if scope.get(PUBLIC_DOOR) is True else "loopback",
            f"{scope['method']} {_without_links(scope['path'])}"[:LONGEST].replace("\0", "\\0"),
            tuple(
                things_of(scope["path"]) if access is None else [*things_of(scope["path"]), *access.things]
            ),
            status,
        )
        if scope["path"].startswith(API) and caller is not None:
            await run_in_threadpool(self._writer.write, [entry])
        else:
            self._writer.put(entry)


def _caller(scope: Scope) -> tuple[Access | None, Principal | None]:
    """Who was let in: by the doorkeeper, or by the catalog, which asks itself."""
    access: Access | None = scope.get(RIGHTS)
    if access is not None:
        return access, access.caller
    caller: Principal | None = scope["state"].get("caller")
    return None, caller


def _is_noted(scope: Scope, status: int, access: Access | None) -> bool:
    if status in TURNED_AWAY or (access is not None and access.is_telling and status >= REFUSED):
        return True
    if access is not None and access.shows_records:
        return True
    if scope["path"] == SIGN_IN and "caller" in scope["state"]:
        return True
    raw: bytes | None = scope.get("raw_path")
    sent = quote(scope["path"]) if raw is None else raw.decode("latin-1").partition("?")[0]
    return is_change(scope["method"], sent)


def is_change(method: str, path: str) -> bool:
    """Whether a request asks for a change; `path` is as it was sent."""
    if method in READING:
        return False
    return method != "POST" or HARMLESS.fullmatch(path) is None


def _without_links(path: str) -> str:
    """A link to a file of an export is a secret, and stands in its path."""
    return f"{FILES}…" if path.startswith(FILES) else path


def things_of(path: str) -> list[str]:
    """What a path of the catalog or of the registry names, and what is no question of topics."""
    match = NAMED.match(path)
    if match is None:
        return []
    found = {name: unquote(text) for name, text in match.groupdict().items() if text is not None}
    if "ns" in found:
        levels = found["ns"].replace("\x1f", ".")
        if "name" not in found:
            return [f"namespace {levels}"]
        return [f"{found['kind'].removesuffix('s')} {levels}.{found['name']}"]
    if "subject" in found:
        return [f"subject {found['subject']}"]
    return [f"{found['noun'].removesuffix('s')} {found['thing']}"]


class Strangers:
    """How many refusals of an address are written down: the trail must not grow with what strangers send."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: dict[str, tuple[int, int]] = {}

    def take(self, address: str) -> bool:
        minute = int(time.monotonic() // 60)
        with self._lock:
            since, count = self._seen.pop(address, (minute, 0))
            count = count + 1 if since == minute else 1
            self._seen[address] = (minute, count)
            while len(self._seen) > MOST_ADDRESSES:
                del self._seen[next(iter(self._seen))]
        return count <= STRANGERS


class TrailWriter:
    """Writes entries at once, or in a thread that lives as long as there are some."""

    def __init__(self, audit: Audit, keep: float) -> None:
        self._audit = audit
        self._keep = keep
        self._waiting: queue.Queue[AuditEntry] = queue.Queue(MOST_WAITING)
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._pruned_at = float("-inf")

    def put(self, entry: AuditEntry) -> None:
        try:
            self._waiting.put_nowait(entry)
        except queue.Full:
            log.error("the audit trail is not taken: %s by %s is not in it", entry.action, entry.who or "?")
            return
        with self._lock:
            if self._thread is None:
                # No daemon: what waits when the server ends is written before it does.
                self._thread = threading.Thread(target=self._run, name="audit")
                self._thread.start()

    def _run(self) -> None:
        while True:
            try:
                entries = [self._waiting.get(timeout=IDLE_SECONDS)]
            except queue.Empty:
                with self._lock:
                    if self._waiting.empty():
                        self._thread = None
                        return
                continue
            while not self._waiting.empty():
                entries.append(self._waiting.get())
            self.write(entries)

    def write(self, entries: list[AuditEntry]) -> None:
        """What cannot be written is in the log: the requests were answered."""
        try:
            self._audit.add(entries)
            if time.monotonic() - self._pruned_at > PRUNE_SECONDS:
                self._pruned_at = time.monotonic()
                self._audit.forget(time.time() - self._keep)
        except SQLAlchemyError as error:
            for entry in entries:
                log.error("the audit trail is not taken: %s by %s: %s", entry.action, entry.who or "?", error)
