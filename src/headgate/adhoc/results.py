"""Rows on their way from a query to who reads them: a few pieces wait, then the query does. No Spark here."""

import json
import queue
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headgate.errors import HeadgateError, LimitReached

if TYPE_CHECKING:
    from headgate.statements.asking import Caller

# A piece is what is written at once; so many of them wait.
PIECE_BYTES, PIECES = 64 * 1024, 16
INSERT, UPSERT, DELETE, END, ERROR = "insert", "upsert", "delete", "end", "error"
# How long a wait lasts until it is looked whether there is still anything to wait for.
LOOK_SECONDS = 0.2
LAST_SECONDS = 600.0


class Closed(Exception):
    """Nobody reads any more, or as many rows were given as were wanted."""


class Results:
    """One writer and one reader, each in a thread of its own."""

    media_type = "application/x-ndjson"

    def __init__(
        self, limit: int | None = None, key: Sequence[str] = (), caller: "Caller | None" = None
    ) -> None:
        """`key`: of rows that change, by which columns. Of these so many different ones are the limit.
        `caller`: who gets no more than they may."""
        self._caller = caller
        self._given = 0
        self._pieces: queue.Queue[bytes | None] = queue.Queue(PIECES)
        self._waiting: list[bytes] = []
        self._size = 0
        self._limit = limit
        self._key = key
        self._there: set[str] = set()
        self._changes = False
        self._closed = threading.Event()
        self._cancelled = threading.Event()
        self._finished = threading.Event()
        self._began = time.monotonic()
        self.rows = 0

    # -- for the query

    def row(self, op: str, row: Mapping[str, Any]) -> None:
        """Waits while too much is unread. Raises Closed when no more is wanted."""
        if self.is_full or self._finished.is_set() or not self.is_wanted:
            raise Closed
        line = _line({"op": op, "row": row})
        self._check_limits(1, len(line))
        self._wait(line)
        self._count(1, len(line))
        if self._limit is not None and op != INSERT:
            self._changes = True
            told = json.dumps([row[name] for name in self._key])
            (self._there.discard if op == DELETE else self._there.add)(told)

    def charge(self, rows: int, size: int) -> None:
        """Counts what is to be given. Raises LimitReached where that is more than the caller may have."""
        self._check_limits(rows, size)
        self._count(rows, size)

    def _check_limits(self, rows: int, size: int) -> None:
        caller = self._caller
        if caller is None:
            return
        given = (("rows", self.rows + rows, caller.rows), ("bytes", self._given + size, caller.bytes))
        for name, count, most in given:
            if most and count > most:
                raise LimitReached(
                    f"The query gives more than {most} {name}, the limit for {caller.name}.",
                    f"Ask for less, or raise {caller.limits}.{name}.",
                )

    def _count(self, rows: int, size: int) -> None:
        self.rows += rows
        self._given += size

    def flush(self) -> None:
        """What is there is to be seen now."""
        if self._waiting:
            piece = b"".join(self._waiting)
            self._waiting.clear()
            self._size = 0
            self._put(piece)

    @property
    def size(self) -> int:
        """How many bytes the rows took on the way."""
        return self._given

    @property
    def seconds(self) -> float:
        return round(time.monotonic() - self._began, 3)

    @property
    def is_full(self) -> bool:
        given = len(self._there) if self._changes else self.rows
        return self._limit is not None and given >= self._limit

    @property
    def is_wanted(self) -> bool:
        """Whether anybody wants more."""
        return not (self._closed.is_set() or self._cancelled.is_set())

    def finish(self) -> None:
        """The query gives no more: a batch of it that waits for its reader does so in vain."""
        self._finished.set()

    def end(self, state: str, **more: Any) -> None:
        """The last line, if anybody is there to read it."""
        self._last({"op": END, "state": state, "rows": self.rows, "seconds": self.seconds, **more})

    def fail(self, error: Exception) -> None:
        known = isinstance(error, HeadgateError)
        message = error.message if isinstance(error, HeadgateError) else _first_line(error)
        remedy = error.remedy if isinstance(error, HeadgateError) else ""
        kind = type(error).__name__ if known else "TerminalError"
        self._last({"op": ERROR, "error": kind, "message": message, "remedy": remedy})

    # -- for the reader

    def pieces(self) -> Iterator[bytes | None]:
        """Whole lines, until the last one; None now and then while there are none."""
        while True:
            try:
                piece = self._pieces.get(timeout=LOOK_SECONDS)
            except queue.Empty:
                if self._closed.is_set():
                    return
                yield None
                continue
            if piece is None:
                return
            yield piece

    def close(self) -> None:
        """Nobody reads any more."""
        self._closed.set()

    # -- for others

    def cancel(self) -> None:
        """No more rows; who reads is told the end."""
        self._cancelled.set()

    def _wait(self, line: bytes) -> None:
        self._waiting.append(line)
        self._size += len(line)
        if self._size >= PIECE_BYTES:
            self.flush()

    def _last(self, content: Mapping[str, Any]) -> None:
        """Who has gone does not wait for it; who does not read is not waited for any longer than so."""
        last = self._last_piece(content)
        self._waiting.clear()
        self._size = 0
        deadline = time.monotonic() + LAST_SECONDS
        for piece in (last, None):
            while not self._closed.is_set() and time.monotonic() < deadline:
                try:
                    self._pieces.put(piece, timeout=LOOK_SECONDS)
                except queue.Full:
                    continue
                break

    def _last_piece(self, content: Mapping[str, Any]) -> bytes:
        return b"".join([*self._waiting, _line(content)])

    def _put(self, piece: bytes) -> None:
        while self.is_wanted and not self._finished.is_set():
            try:
                self._pieces.put(piece, timeout=LOOK_SECONDS)
            except queue.Full:
                continue
            return
        raise Closed


def _line(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _first_line(error: Exception) -> str:
    said = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    return f"{type(error).__name__}: {said}"
