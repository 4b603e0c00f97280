"""The live stream: what it tells, to whom, and when it ends. Read as a server sends it, without a network."""

import asyncio
import base64
import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from starlette.types import ASGIApp, Message

from headgate.access.credentials import Credentials
from headgate.access.gate import Visit
from headgate.access.roles import LOCAL, Grant
from headgate.access.topics import all_rights
from headgate.config import load_settings
from headgate.embedded.runtime import Runtime
from headgate.embedded.secrets import secret
from headgate.errors import ServerUnavailable
from headgate.model import TableSpec, TableState
from headgate.server.app import create_app
from headgate.server.doors import PublicDoor
from headgate.server.live import Live
from headgate.server.live.streams import MOST_SAMPLES, Stream
from headgate.store import Statements, Store

SECONDS = 20.0
MOST = 5


@pytest.fixture
def app(tmp_path: Path) -> Iterator[FastAPI]:
    environment = {"HEADGATE_AUTH__REQUIRED": "true", "HEADGATE_LIMITS__STREAMS": str(MOST)}
    settings = load_settings(environment=environment, data=tmp_path / "data")
    store = Store.open(settings.store_url)
    for topic in ("shop.orders", "hr.salaries"):
        store.enable_table(TableSpec(topic))
        output = {"output": {"topic": topic}, "tables": {topic: {}}, "views": {}}
        Statements(store.engine).create(f"of-{topic}", "insert", "INSERT …", {"tables": output})
    app = create_app(Runtime.of(settings, server_port=8080, connect_port=1, broker_port=1), store)
    app.state.store, app.state.key = store, secret(settings.data, "operator")
    with (
        patch("headgate.server.live.hub.LOOK_SECONDS", 0.02),
        patch("headgate.server.live.hub.CHECK_SECONDS", 0.02),
    ):
        app.state.live.start()
        yield app
        app.state.live.stop()
    store.close()


@pytest.fixture
def store(app: FastAPI) -> Store:
    found: Store = app.state.store
    return found


@pytest.fixture
def live(app: FastAPI) -> Live:
    found: Live = app.state.live
    return found


@pytest.fixture
def operator(app: FastAPI) -> dict[str, str]:
    return {"authorization": f"Bearer {app.state.key}"}


def login(store: Store, name: str, *grants: str) -> dict[str, str]:
    made, key = Credentials(store.engine).create(name, [Grant.parse(text) for text in grants])
    shown = base64.b64encode(f"{made.client_id}:{key}".encode()).decode()
    return {"authorization": f"Basic {shown}"}


class Reader:
    """The client's end of one request."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.gone = asyncio.Event()
        self.ended = asyncio.Event()
        self._bytes: asyncio.Queue[bytes] = asyncio.Queue()
        self._text = ""
        self._begun = asyncio.Event()

    async def receive(self) -> Message:
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {name.decode(): value.decode() for name, value in message["headers"]}
            self._begun.set()
            return
        self._bytes.put_nowait(message.get("body", b""))
        if not message.get("more_body", False):
            self.ended.set()

    async def begun(self) -> int:
        async with asyncio.timeout(SECONDS):
            await self._begun.wait()
        return self.status

    async def text(self) -> str:
        """The next block: an event, or a comment."""
        async with asyncio.timeout(SECONDS):
            while "\n\n" not in self._text:
                self._text += (await self._bytes.get()).decode()
        block, _, self._text = self._text.partition("\n\n")
        return block

    async def event(self, name: str) -> dict[str, Any]:
        while True:
            block = await self.text()
            kind, _, data = block.partition("\ndata: ")
            if kind == f"event: {name}":
                content: dict[str, Any] = json.loads(data)
                return content

    async def until(self, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The first status that this holds of."""
        while True:
            if holds(found := await self.event("status")):
                return found

    async def is_ended(self) -> bool:
        async with asyncio.timeout(SECONDS):
            return await self.ended.wait()


@asynccontextmanager
async def reading(
    app: ASGIApp, headers: Mapping[str, str], path: str = "/api/v1/live"
) -> AsyncIterator[Reader]:
    reader = Reader()
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "server": ("127.0.0.1", 8080),
        "client": ("127.0.0.1", 5),
        "headers": [(k.encode(), v.encode()) for k, v in {"host": "127.0.0.1:8080", **headers}.items()],
    }
    task = asyncio.create_task(_answer(app, scope, reader))
    try:
        yield reader
    finally:
        reader.gone.set()
        async with asyncio.timeout(SECONDS):
            await task


async def _answer(app: ASGIApp, scope: dict[str, Any], reader: Reader) -> None:
    await app(scope, reader.receive, reader.send)


def topics(status: Mapping[str, Any]) -> set[str]:
    return {table["topic"] for table in status["tables"]}


def run(reads: Callable[[], Awaitable[None]]) -> None:
    async def once() -> None:
        async with asyncio.timeout(3 * SECONDS):
            await reads()

    asyncio.run(once())


def test_stream_tells_how_all_stands_and_then_what_has_changed(
    app: FastAPI, store: Store, operator: dict[str, str]
) -> None:
    async def reads() -> None:
        async with reading(app, operator) as reader:
            assert await reader.begun() == 200
            assert reader.headers["content-type"].startswith("text/event-stream")
            assert reader.headers["cache-control"] == "no-store"
            assert await reader.text() == "retry: 2000"
            first = await reader.event("status")
            assert topics(first) == {"shop.orders", "hr.salaries"}
            assert {one["name"] for one in first["statements"]} == {"of-shop.orders", "of-hr.salaries"}
            assert {"version", "cluster", "addresses", "processes", "catalogs", "exports"} <= set(first)
            store.suspend("shop.orders", "3 records cannot be read.", {})
            changed = await reader.event("status")
            assert [one["name"] for one in changed["attention"] if one["kind"] == "table"] == ["shop.orders"]
            store.remove_table("hr.salaries")
            assert topics(await reader.event("status")) == {"shop.orders"}

    run(reads)


def test_stream_says_nothing_where_nothing_has_changed(
    app: FastAPI, store: Store, operator: dict[str, str]
) -> None:
    """A process that says that it lives is nothing new; neither is a sample a new state."""
    with patch("headgate.server.live.hub.SAMPLE_SECONDS", 0.05):

        async def reads() -> None:
            async with reading(app, operator) as reader:
                await reader.event("status")
                blocks = []
                for _ in range(6):
                    store.beat("engine", "one", 1, "stopped")
                    blocks.append((await reader.text()).partition("\n")[0])
                # One for the process, which was not there before.
                assert blocks.count("event: status") <= 1
                assert "event: sample" in blocks

        run(reads)


def test_stream_shows_what_its_reader_sees(app: FastAPI, store: Store, operator: dict[str, str]) -> None:
    narrow = login(store, "ada", "reader:local:shop.*")
    with patch("headgate.server.live.hub.SAMPLE_SECONDS", 0.05):

        async def reads() -> None:
            async with reading(app, operator) as admin, reading(PublicDoor(app), narrow) as reader:
                seen = await reader.event("status")
                sample = await reader.event("sample")
                assert (topics(seen), seen["exports"], seen["catalogs"]) == ({"shop.orders"}, [], [])
                assert [one["pid"] for one in seen["processes"]] == [None] * len(seen["processes"])
                assert "hr." not in json.dumps([seen, sample])
                assert set(sample["tables"]) == {"shop.orders"}
                assert set(sample["statements"]) == {"of-shop.orders"}
                assert topics(await admin.event("status")) == {"shop.orders", "hr.salaries"}

        run(reads)


def test_revoked_credential_ends_its_streams_alone(
    app: FastAPI, store: Store, operator: dict[str, str], live: Live
) -> None:
    ada, bob = login(store, "ada", "reader"), login(store, "bob", "reader")

    async def reads() -> None:
        async with reading(app, ada) as first, reading(app, ada) as second, reading(app, bob) as other:
            for reader in (first, second, other):
                await reader.event("status")
            Credentials(store.engine).revoke("ada")
            assert await first.is_ended()
            assert await second.is_ended()
            store.report("shop.orders", TableState.RUNNING, "", {"rows": 7})
            seen = await other.event("status")
            assert {one["topic"]: one["rows"] for one in seen["tables"]}["shop.orders"] == 7
        assert not live._streams

    run(reads)


def test_stream_of_a_session_ends_when_its_browser_signs_out(app: FastAPI, store: Store) -> None:
    made, _ = Credentials(store.engine).create("ada", [Grant.parse("reader")])
    sessions = app.state.live._gate.sessions
    key = sessions.begin(made.client_id, None)

    async def reads() -> None:
        async with reading(app, {"cookie": f"headgate-session-8080={key}"}) as reader:
            await reader.event("status")
            sessions.close(key)
            assert await reader.is_ended()

    run(reads)


def test_one_client_has_so_many_streams(app: FastAPI, store: Store, operator: dict[str, str]) -> None:
    ada = login(store, "ada", "reader")

    async def reads() -> None:
        async with AsyncExitStack() as opened:
            for _ in range(MOST):
                reader = await opened.enter_async_context(reading(app, ada))
                assert await reader.begun() == 200
            async with reading(app, ada) as refused:
                assert await refused.begun() == 429
                said = json.loads(await refused._bytes.get())
                assert (said["error"], "limits.streams" in said["message"]) == ("TooManyRequests", True)
                assert refused.headers["retry-after"] == "5"
            async with reading(app, operator) as other:
                assert await other.begun() == 200
            reader.gone.set()
            await asyncio.sleep(0.1)
            async with reading(app, ada) as again:
                assert await again.begun() == 200

    run(reads)


def test_streams_take_no_threads(app: FastAPI, operator: dict[str, str]) -> None:
    async def reads() -> None:
        async with AsyncExitStack() as opened:
            readers = [await opened.enter_async_context(reading(app, operator)) for _ in range(MOST)]
            for reader in readers:
                await reader.event("status")
            names = [one.name for one in threading.enumerate()]
            assert names.count("live") == 1
            # Those of the pool serve requests, however many streams there are.
            await asyncio.sleep(0.1)
            assert not [one for one in names if "stream" in one]

    run(reads)


def test_end_of_the_server_ends_streams_and_refuses_others(
    app: FastAPI, operator: dict[str, str], live: Live
) -> None:
    async def reads() -> None:
        async with reading(app, operator) as reader:
            await reader.event("status")
            live.end()
            assert await reader.is_ended()
            async with reading(app, operator) as late:
                assert await late.begun() == 503

    run(reads)


def test_state_that_cannot_be_read_is_tried_again(
    app: FastAPI, store: Store, operator: dict[str, str], live: Live, caplog: pytest.LogCaptureFixture
) -> None:
    async def reads() -> None:
        async with reading(app, operator) as reader:
            await reader.event("status")
            read = live._reader.read
            failures = iter(range(3))

            def failing() -> Any:
                if next(failures, None) is not None:
                    raise OSError("the disk is away")
                return read()

            with patch.object(live._reader, "read", failing):
                store.report("shop.orders", TableState.RUNNING, "", {"rows": 7})
                await reader.event("status")
        assert caplog.text.count("the disk is away") == 1

    run(reads)


def test_slow_reader_gets_the_newest_state_and_few_samples() -> None:
    async def reads() -> None:
        stream = Stream(Visit(None, ""), all_rights())
        events = stream.events()
        assert await anext(events) == b"retry: 2000\n\n"
        for number in range(100):
            stream.put_status(b"status %d" % number)
            stream.put_sample(b"sample %d" % number)
        await asyncio.sleep(0)
        got = [await anext(events) for _ in range(1 + MOST_SAMPLES)]
        assert got[0] == b"status 99"
        assert got[1:] == [b"sample %d" % number for number in range(100 - MOST_SAMPLES, 100)]

    run(reads)


def test_ended_stream_says_nothing_more() -> None:
    async def reads() -> None:
        stream = Stream(Visit(None, ""), all_rights())
        events = stream.events()
        await anext(events)
        stream.put_status(b"status")
        stream.end()
        await asyncio.sleep(0)
        assert [event async for event in events] == []

    run(reads)


def test_quiet_stream_says_that_it_is_still_there() -> None:
    async def reads() -> None:
        stream = Stream(Visit(None, ""), all_rights())
        events = stream.events()
        await anext(events)
        with patch("headgate.server.live.streams.HEARTBEAT_SECONDS", 0.01):
            assert await anext(events) == b": still here\n\n"
            assert await anext(events) == b": still here\n\n"

    run(reads)


def test_stream_can_be_told_after_its_loop_has_ended(live: Live) -> None:
    async def opens() -> Stream:
        return live.open(Visit(None, ""), all_rights())

    stream = asyncio.run(opens())
    stream.put_status(b"late")
    stream.end()
    live.close(stream)
    assert stream.rights.caller == LOCAL


def test_it_can_be_started_again(live: Live, app: FastAPI) -> None:
    """As each door has the lifespan of the application."""
    live.start()
    live.stop()
    live.end()
    with pytest.raises(ServerUnavailable):
        live.open(Visit(None, ""), all_rights())
    live.stop()
    live.start()

    async def opens() -> None:
        live.close(live.open(Visit(None, ""), all_rights()))

    asyncio.run(opens())


def test_samples_are_of_what_one_sees(app: FastAPI, store: Store, operator: dict[str, str]) -> None:
    narrow = login(store, "ada", "reader:local:shop.*")

    with TestClient(app, base_url="http://127.0.0.1:8080") as client:
        store.report("shop.orders", TableState.RUNNING, "", {"lag": 3})
        store.report("hr.salaries", TableState.RUNNING, "", {"lag": 40})
        live: Live = app.state.live
        # Its own thread would put what it read before the reports over what is read here.
        live.stop()
        live._look()
        live._sample([])
        (*_, whole) = client.get("/api/v1/samples", headers=operator).json()
        assert (whole["total"]["lag"], whole["tables"]) == (43, {})
        (*_, seen) = client.get("/api/v1/samples?minutes=5", headers=narrow).json()
        assert seen["total"]["lag"] == 3
        (*_, one) = client.get("/api/v1/samples?table=shop.orders", headers=narrow).json()
        assert (set(one["tables"]), one["total"]["lag"]) == ({"shop.orders"}, 3)
        (*_, one) = client.get("/api/v1/samples?statement=of-shop.orders", headers=narrow).json()
        assert set(one["statements"]) == {"of-shop.orders"}
        live.start()
        for path in ("table=hr.salaries", "statement=of-hr.salaries"):
            assert client.get(f"/api/v1/samples?{path}", headers=narrow).status_code == 404
        assert client.get("/api/v1/samples?table=a&statement=b", headers=operator).status_code == 400
