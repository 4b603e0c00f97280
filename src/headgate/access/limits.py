"""How often a secret may be wrong, and a token be asked for. Counted in this process.

By address, by address with client id, and by client. What is remembered does not grow with what strangers
send.
"""

import threading
import time
from collections.abc import Callable

from headgate.errors import TooManyFailures, TooManyRequests

WINDOW_SECONDS = 60.0
PER_CLIENT = 10
PER_ADDRESS = 100
TOKENS = 120
# Forgotten first when there are more.
MOST_REMEMBERED = 10_000

# Stands for a client id where a token was shown; none looks like it.
TOKEN = "\0token"  # noqa: S105
Key = tuple[str, str | None]


class Recent:
    """When something has last happened, by whom; within a window."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._times: dict[Key, list[float]] = {}

    def __len__(self) -> int:
        return len(self._times)

    def add(self, key: Key, most: int) -> None:
        with self._lock:
            # Taken out and put back: the dict's order is that of the last time.
            recent = self._recent(key)
            self._times.pop(key, None)
            self._times[key] = [*recent[-most:], self._clock()]
            while len(self._times) > MOST_REMEMBERED:
                del self._times[next(iter(self._times))]

    def wait(self, key: Key, most: int) -> int | None:
        """How many seconds it takes until it has happened less often than `most`; None if it has."""
        with self._lock:
            recent = self._recent(key)
        if len(recent) < most:
            return None
        return max(1, round(recent[-most] + WINDOW_SECONDS - self._clock()))

    def _recent(self, key: Key) -> list[float]:
        oldest = self._clock() - WINDOW_SECONDS
        return [at for at in self._times.get(key, ()) if at > oldest]


class FailureLimit:
    """Nobody tries secrets at speed. Somebody else's failures do not lock a client out at another address."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        *,
        per_client: int = PER_CLIENT,
        per_address: int = PER_ADDRESS,
        tokens: int = TOKENS,
    ) -> None:
        self._per_client = per_client
        self._per_address = per_address
        self._most_tokens = tokens
        self._failures = Recent(clock)
        self._tokens = Recent(clock)

    def check(self, address: str, client_id: str) -> None:
        """Raises while there were too many failures within the last minute."""
        self._check((address, client_id), self._per_client, "limits.failures")
        self._check((address, None), self._per_address, "limits.address_failures")

    def failed(self, address: str, client_id: str) -> None:
        for key in ((address, client_id), (address, None)):
            self._failures.add(key, self._per_address)

    def failed_token(self, address: str) -> None:
        """Raises when an address shows too many tokens that open nothing. Secrets are counted apart: who has
        shown an expired token too often may still ask for another."""
        self._check((address, TOKEN), self._per_address, "limits.address_failures")
        self._failures.add((address, TOKEN), self._per_address)

    def take_token(self, client_id: str) -> None:
        """Raises when the client was given as many as it may have in a minute."""
        wait = self._tokens.wait((client_id, None), self._most_tokens)
        if wait is not None:
            raise TooManyRequests(
                f"This client was given {self._most_tokens} tokens within a minute (limits.tokens).",
                f"Use a token until it expires; or try again in {wait} s.",
                wait,
            )
        self._tokens.add((client_id, None), self._most_tokens)

    def _check(self, key: Key, most: int, setting: str) -> None:
        wait = self._failures.wait(key, most)
        if wait is not None:
            raise TooManyFailures(
                f"Too many wrong secrets came from this address: {most} in a minute ({setting}).",
                f"Try again in {wait} s.",
                wait,
            )
