"""One reader's stream of events: of a state the newest whole one, never a queue of them."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from headgate.access.gate import Visit
from headgate.access.topics import TopicRights

HEARTBEAT_SECONDS = 15.0
# How soon a browser comes back when the server has ended a stream.
RETRY = b"retry: 2000\n\n"
HEARTBEAT = b": still here\n\n"
# Of a reader that is slow; more of them are a hole in its charts.
MOST_SAMPLES = 12


class Stream:
    """Is given events from any thread, and read in the event loop that it was made in."""

    def __init__(self, visit: Visit, rights: TopicRights) -> None:
        self.visit = visit
        self.rights = rights
        # The version of the state that its reader was told last; for who tells it.
        self.told = 0
        self._loop = asyncio.get_running_loop()
        self._news = asyncio.Event()
        self._waiting: bytes | None = None
        self._samples: deque[bytes] = deque(maxlen=MOST_SAMPLES)
        self._has_ended = False

    def put_status(self, event: bytes) -> None:
        self._call(self._take_status, event)

    def put_sample(self, event: bytes) -> None:
        self._call(self._take_sample, event)

    def end(self) -> None:
        self._call(self._take_end)

    def _call(self, take: Callable[..., None], *arguments: bytes) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(take, *arguments)

    def _take_status(self, event: bytes) -> None:
        self._waiting = event
        self._news.set()

    def _take_sample(self, event: bytes) -> None:
        self._samples.append(event)
        self._news.set()

    def _take_end(self) -> None:
        self._has_ended = True
        self._news.set()

    async def events(self) -> AsyncIterator[bytes]:
        """Until it is ended; the server sends no faster than the reader reads."""
        yield RETRY
        while not self._has_ended:
            try:
                async with asyncio.timeout(HEARTBEAT_SECONDS):
                    await self._news.wait()
            except TimeoutError:
                yield HEARTBEAT
                continue
            self._news.clear()
            if self._waiting is not None:
                event, self._waiting = self._waiting, None
                yield event
            while self._samples:
                yield self._samples.popleft()


class EventStream(StreamingResponse):
    """The answer that a stream is sent by; `close` is called when its reader is gone, or it has ended."""

    media_type = "text/event-stream"

    def __init__(self, stream: Stream, close: Callable[[Stream], None]) -> None:
        # A proxy that gathers an answer would hold events back.
        super().__init__(stream.events(), headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        self._stream = stream
        self._close = close

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._close(self._stream)
