"""How often a secret may be wrong. Counted in this process, by address and by address with client id."""

import threading
import time
from collections.abc import Callable

from headgate.errors import TooManyFailures

WINDOW_SECONDS = 60.0
PER_CLIENT = 10
PER_ADDRESS = 100
# Forgotten first when there are more: what is remembered must not grow with what strangers send.
MOST_REMEMBERED = 10_000


class FailureLimit:
    """Nobody tries secrets at speed. Somebody else's failures do not lock a client out at another address."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._failures: dict[tuple[str, str | None], list[float]] = {}

    def check(self, address: str, client_id: str) -> None:
        """Raises while there were too many failures within the last minute."""
        for key, most in (((address, client_id), PER_CLIENT), ((address, None), PER_ADDRESS)):
            with self._lock:
                recent = self._recent(key)
            if len(recent) >= most:
                wait = max(1, round(recent[-most] + WINDOW_SECONDS - self._clock()))
                raise TooManyFailures(
                    "Too many wrong secrets came from this address.", f"Try again in {wait} s.", wait
                )

    def failed(self, address: str, client_id: str) -> None:
        with self._lock:
            for key in ((address, client_id), (address, None)):
                # Taken out and put back: the dict's order is that of the last failure.
                recent = self._recent(key)
                self._failures.pop(key, None)
                self._failures[key] = [*recent[-PER_ADDRESS:], self._clock()]
            while len(self._failures) > MOST_REMEMBERED:
                del self._failures[next(iter(self._failures))]

    def _recent(self, key: tuple[str, str | None]) -> list[float]:
        oldest = self._clock() - WINDOW_SECONDS
        return [at for at in self._failures.get(key, ()) if at > oldest]
