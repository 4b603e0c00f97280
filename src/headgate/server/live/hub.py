"""Looks at the control state for all streams together, and tells each what its reader sees of it.

One thread, whatever the number of streams, as the server has an event loop for each of its doors: it takes a
sample every ten seconds, and looks every second while somebody listens. Whatever several readers see alike is
put into words once.
"""

import json
import logging
import threading
import time
from collections.abc import Hashable
from typing import Any

from headgate.access import Gate
from headgate.access.gate import Visit
from headgate.access.topics import TopicRights
from headgate.embedded.runtime import Runtime
from headgate.errors import HeadgateError, NotAllowed, NotAuthorized, ServerUnavailable, TooManyRequests
from headgate.server.live.samples import SAMPLE_SECONDS, Sample, Sampler
from headgate.server.live.streams import Stream
from headgate.server.standings import Standings, StandingsReader, seen_by
from headgate.server.status import status_of

LOOK_SECONDS = 1.0
# How soon a stream ends whose reader has been signed out, or whose credential was revoked.
CHECK_SECONDS = 2.0
log = logging.getLogger(__name__)


class Live:
    """Of one server process. It works between `start` and `stop`, of which there may be several pairs."""

    def __init__(self, runtime: Runtime, reader: StandingsReader, gate: Gate, most_streams: int) -> None:
        self._runtime = runtime
        self._reader = reader
        self._gate = gate
        self._most = most_streams
        self._sampler = Sampler()
        self._lock = threading.Lock()
        self._streams: set[Stream] = set()
        self._wake = threading.Event()
        self._starts = 0
        self._is_ending = False
        self._thread: threading.Thread | None = None
        self._standings: Standings | None = None
        # Counts what was new; 0 before anything is known.
        self._version = 0
        self._words: dict[Hashable, bytes] = {}
        self._logged = ""

    # -- for the server

    def start(self) -> None:
        with self._lock:
            self._starts += 1
            if self._thread is not None:
                return
            self._is_ending = False
            self._thread = threading.Thread(target=self._run, name="live", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Ends all streams and the thread, when it was stopped as often as it was started."""
        with self._lock:
            self._starts -= 1
            if self._starts > 0:
                return
        self.end()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def end(self) -> None:
        """Ends all streams, and lets nobody open others: the server waits for the answers that it gives."""
        with self._lock:
            self._is_ending = True
            streams = list(self._streams)
        for stream in streams:
            stream.end()
        self._wake.set()

    # -- for routes

    def open(self, visit: Visit, rights: TopicRights) -> Stream:
        """A stream of its own, in the event loop that this is called in; it must be closed."""
        caller = rights.caller
        with self._lock:
            if self._is_ending or self._thread is None:
                raise ServerUnavailable("The server is about to end.", "Try again in a moment.")
            if sum(one.rights.caller.id == caller.id for one in self._streams) >= self._most:
                raise TooManyRequests(
                    f"{caller.name} has {self._most} live streams open (limits.streams).",
                    "Close some of them: each open page of the console is one.",
                    wait=5,
                )
            stream = Stream(visit, rights)
            self._streams.add(stream)
        self._wake.set()
        return stream

    def close(self, stream: Stream) -> None:
        with self._lock:
            self._streams.discard(stream)

    def samples(self, seconds: float) -> list[Sample]:
        """Of the last so many seconds, oldest first."""
        return self._sampler.since(time.time() - seconds)

    # -- the thread

    def _run(self) -> None:
        sample_at = look_at = check_at = time.monotonic()
        while not self._is_ending:
            now = time.monotonic()
            streams = self._open_streams()
            try:
                if streams and now >= check_at:
                    check_at = now + CHECK_SECONDS
                    self._check(streams)
                if now >= sample_at:
                    sample_at = now + SAMPLE_SECONDS
                    self._look()
                    self._sample(streams)
                if streams and now >= look_at:
                    look_at = now + LOOK_SECONDS
                    self._look()
                self._tell(streams)
                self._logged = ""
            except Exception as error:  # noqa: BLE001 - whatever it is, it is tried again
                self._note(error)
            due = min(sample_at, look_at) if streams else sample_at
            self._wake.wait(max(0.0, due - time.monotonic()))
            self._wake.clear()

    def _open_streams(self) -> list[Stream]:
        with self._lock:
            return list(self._streams)

    def _note(self, error: Exception) -> None:
        """Into the log, once as long as it is the same."""
        said = f"{type(error).__name__}: {error}"
        if said != self._logged:
            log.warning("streams stand still: %s", said)
        self._logged = said

    def _check(self, streams: list[Stream]) -> None:
        """Each reader is asked who they are as with any request: what has changed meanwhile holds."""
        for stream in streams:
            try:
                caller = self._gate.caller(stream.visit)
            except (NotAuthorized, NotAllowed):
                stream.end()
                self.close(stream)
            except HeadgateError as error:
                # Whoever tries secrets at the same address does not end it.
                log.debug("a stream goes on: %s", error)
            else:
                if caller != stream.rights.caller:
                    stream.rights = TopicRights(caller, stream.rights.cluster)
                    stream.told = 0

    def _look(self) -> None:
        standings = self._reader.read()
        if standings != self._standings:
            self._version += 1
            self._words = {}
        self._standings = standings

    def _sample(self, streams: list[Stream]) -> None:
        assert self._standings is not None
        sample = self._sampler.take(self._standings, time.time())
        # They say how long ago things were: whoever comes next is told anew, others are not.
        self._words = {}
        words: dict[Hashable, bytes] = {}
        for stream in streams:
            key = _view(stream.rights)
            if key not in words:
                words[key] = _event("sample", sample_seen(sample, self._standings, stream.rights))
            stream.put_sample(words[key])

    def _tell(self, streams: list[Stream]) -> None:
        if self._standings is None:
            return
        for stream in streams:
            if stream.told == self._version:
                continue
            key = _view(stream.rights)
            if key not in self._words:
                seen = status_of(self._runtime, self._standings, stream.rights)
                self._words[key] = _event("status", seen)
            stream.told = self._version
            stream.put_status(self._words[key])


def sample_seen(sample: Sample, standings: Standings, rights: TopicRights) -> dict[str, Any]:
    """What one caller sees of a sample."""
    names = {one.name for one in seen_by(standings, rights).statements}
    return sample.shown(rights.sees, names.__contains__)


def _view(rights: TopicRights) -> Hashable:
    """The same for callers who see the same."""
    return rights.caller.grants, rights.caller.is_admin


def _event(name: str, content: dict[str, Any]) -> bytes:
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return f"event: {name}\ndata: {text}\n\n".encode()
