"""What waits for event time comes out without a further record: when somebody asks, or after a silence."""

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

Ends = Mapping[str, Mapping[int, int]]
Submit = Callable[[Callable[[], Any]], "Future[Any]"]
# How often it is asked whether all of a topic is read whose records the broker dates.
ASK_SECONDS = 1.0


class Closable(Protocol):
    """A query of a statement, as it is closed."""

    def ends(self) -> Ends: ...
    def has_read(self, ends: Ends) -> bool: ...
    def silent_seconds(self) -> float | None: ...
    def due(self) -> int | None: ...
    def close(self) -> int | None: ...
    def has_passed(self, watermark_ms: int) -> bool: ...
    def to_date(self) -> Callable[[], None] | None: ...


@dataclass(frozen=True)
class Closed:
    """A statement has written all that it had read. `watermark_ms`: rows before that are late from then on;
    None if nothing waited for event time. `request`: who asked; None after a silence."""

    request: str | None
    watermark_ms: int | None

    @property
    def text(self) -> str:
        if self.watermark_ms is None:
            return "all that was read is written; nothing waits for event time"
        moment = datetime.fromtimestamp(self.watermark_ms / 1000, UTC).isoformat(timespec="milliseconds")
        return f"all that was read is written; rows before {moment} are late from now on"


class Closing:
    """One closing: each step has read what was there when its turn came, then event time passes that.

    A later step reads what those before it write, so they are closed in order. Nothing of it is kept: after a
    restart it begins again, and what was closed stays so.
    """

    def __init__(
        self, steps: Sequence[Closable], submit: Submit, request: str | None, silence: float = 0
    ) -> None:
        """`silence`: for how many seconds no record must have come to a step."""
        self._waiting = list(steps)
        self._submit = submit
        self._request = request
        self._silence = silence
        self._ends: Future[Any] | None = None
        self._due: int | None = None
        self._is_closed = False
        self._watermark_ms: int | None = None

    def advance(self) -> Closed | None:
        """What can be done now, without waiting; the outcome once all is done."""
        while self._waiting:
            if not self._has_closed(self._waiting[0]):
                return None
            del self._waiting[0]
            self._ends, self._is_closed = None, False
        return Closed(self._request, self._watermark_ms)

    def _has_closed(self, step: Closable) -> bool:
        if self._ends is None:
            self._ends = self._submit(step.ends)
        if not self._ends.done():
            return False
        if (error := self._ends.exception()) is not None:
            self._ends = None
            raise error
        if not step.has_read(self._ends.result()):
            return False
        if not self._is_closed:
            silent = step.silent_seconds()
            if silent is not None and silent < self._silence:
                return False
            self._due, self._is_closed = step.close(), True
            if self._due is not None:
                self._watermark_ms = max(self._due, self._watermark_ms or 0)
        return self._due is None or step.has_passed(self._due)


class Closer:
    """Begins closings of one running statement: on request, and after silences of `silence` seconds.

    And it has the wall clock looked at where that tells event time.
    """

    def __init__(self, submit: Submit, silence: float | None) -> None:
        self._submit = submit
        self._silence = silence
        self._closing: Closing | None = None
        self._request: str | None = None
        self._dating: Future[Any] | None = None
        self._asked_at = -ASK_SECONDS

    @property
    def is_closing(self) -> bool:
        """Whether a closing is under way."""
        return self._closing is not None

    def look(self, steps: Sequence[Closable], request: str | None) -> Closed | None:
        """`request`: one that was not carried out yet."""
        self._date(steps)
        if request is not None and request != self._request:
            self._closing, self._request = Closing(steps, self._submit, request), request
        if self._closing is None and self._silence is not None and _is_due(steps, self._silence):
            self._closing = Closing(steps, self._submit, None, self._silence)
        closed = None if self._closing is None else self._closing.advance()
        if closed is not None:
            self._closing = self._request = None
        return closed

    def _date(self, steps: Sequence[Closable]) -> None:
        if self._dating is not None:
            if not self._dating.done():
                return
            asked, self._dating = self._dating, None
            asked.result()
        if time.monotonic() - self._asked_at < ASK_SECONDS:
            return
        for step in steps:
            if (ask := step.to_date()) is not None:
                self._dating, self._asked_at = self._submit(ask), time.monotonic()
                return


def _is_due(steps: Sequence[Closable], silence: float) -> bool:
    """Whether something waits, and no record has come for so long."""
    if any((silent := step.silent_seconds()) is not None and silent < silence for step in steps):
        return False
    return any((due := step.due()) is not None and not step.has_passed(due) for step in steps)
