"""Keys for clients: of the place's role, for an hour, limited to one table and to what the client may do."""

import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from headgate.errors import StorageUnavailable
from headgate.storage.aws import assume
from headgate.storage.place import Place
from headgate.storage.policy import session_policy

# Keys are given out again while they have this long to live: each client gets a good part of an hour, and STS
# is not asked for each look at a table. Iceberg's client asks anew five minutes before the end.
LEAST_SECONDS = 30 * 60
MOST_KEPT = 1000
_NOT_IN_NAMES = re.compile(r"[^\w+=,.@-]")


@dataclass(frozen=True)
class Keys:
    """As Iceberg's clients are told them."""

    prefix: str
    config: Mapping[str, str]
    expires_at: float

    def __repr__(self) -> str:
        return f"Keys({self.prefix!r}, expires_at={self.expires_at})"


Assume = Callable[[Place, str, str], Mapping[str, Any]]


class Vendor:
    """For many threads."""

    def __init__(self, ask: Assume = assume, clock: Callable[[], float] = time.time) -> None:
        self._ask = ask
        self._clock = clock
        self._kept: dict[tuple[Place, tuple[str, ...], bool, str], Keys] = {}
        self._lock = threading.Lock()

    def keys(self, place: Place, locations: tuple[str, ...], writes: bool, who: str) -> Keys:
        """For all of a table's locations, the first of which is its own. Their use is logged under `who`."""
        wanted = (place, locations, writes, who)
        with self._lock:
            kept = self._kept.get(wanted)
        if kept is not None and kept.expires_at - self._clock() > LEAST_SECONDS:
            return kept
        found = self._assumed(place, locations, writes, who)
        with self._lock:
            if len(self._kept) >= MOST_KEPT:
                self._kept.clear()
            self._kept[wanted] = found
        return found

    def _assumed(self, place: Place, locations: tuple[str, ...], writes: bool, who: str) -> Keys:
        name = ("headgate-" + _NOT_IN_NAMES.sub("-", who))[:64]
        try:
            given = self._ask(place, name, session_policy(place, locations, writes))
        except (BotoCoreError, ClientError) as error:
            raise StorageUnavailable(
                f"STS gives no keys of {place.role_arn} for {locations[0]}: {error}.",
                "See `headgate storage policy` for what the role must trust and be allowed.",
            ) from error
        expires_at = given["Expiration"].timestamp()
        return Keys(
            locations[0],
            {
                "s3.access-key-id": str(given["AccessKeyId"]),
                "s3.secret-access-key": str(given["SecretAccessKey"]),
                "s3.session-token": str(given["SessionToken"]),
                "s3.session-token-expires-at-ms": str(int(expires_at * 1000)),
            },
            expires_at,
        )
