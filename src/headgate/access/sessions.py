"""Browsers that were signed in, by a link that works once or by a credential, and the cookie they got for it.

Who may read the operator's key of the data folder makes a link without asking the server: it is signed with
that key. The server keeps what links were used and which sessions are open in memory only, so a restart of
the server ends them all. A session knows whose it is and not what they may: that is looked up at each
request.
"""

import hashlib
import hmac
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from headgate.errors import NotAuthorized

LINK_SECONDS = 900.0
TOKEN_BYTES = 32
MOST_SESSIONS = 1000
# Of one credential: whoever signs in again and again closes their own sessions, not those of others.
MOST_OF_ONE = 50
SIGN_IN = "/sign-in"
SIGN_OUT = "/sign-out"


def link_token(operator_key: str, now: float | None = None) -> str:
    """What opens one session within the next quarter of an hour."""
    body = f"{secrets.token_urlsafe(TOKEN_BYTES)}.{_milliseconds(time.time() if now is None else now)}"
    return f"{body}.{_signature(operator_key, body)}"


@dataclass(frozen=True)
class Session:
    """Of one browser."""

    expires: float
    # Who signed in, where that is known: cookies go to every port of a host, those of other users too.
    uid: int | None
    # The client id that it was signed in with; None by a link.
    credential: str | None = None


class Sessions:
    """Sessions of one server process, by the hash of their secret; `lifetime` in seconds."""

    def __init__(self, operator_key: str, lifetime: float, clock: Callable[[], float] = time.time) -> None:
        self.lifetime = int(lifetime)
        self._key = operator_key
        self._clock = clock
        self._began = _milliseconds(clock()) / 1000
        self._lock = threading.Lock()
        self._used: dict[str, float] = {}
        self._sessions: dict[str, Session] = {}

    def open(self, token: str, uid: int | None) -> str:
        """The secret of a new session, for a link's token; NotAuthorized if that was used or is no token."""
        body, _, signature = token.rpartition(".")
        if not hmac.compare_digest(_signature(self._key, body), _plain(signature)):
            raise _no_link("is not valid")
        now, issued = self._clock(), int(body.rpartition(".")[2]) / 1000
        # Which links were used before this server began is not known.
        if issued < self._began or issued + LINK_SECONDS <= now:
            raise _no_link("has expired")
        with self._lock:
            self._used = {used: expires for used, expires in self._used.items() if expires > now}
            if body in self._used:
                raise _no_link("was used already")
            self._used[body] = issued + LINK_SECONDS
            return self._add(Session(now + self.lifetime, uid))

    def begin(self, credential: str, uid: int | None) -> str:
        """The secret of a new session of who has shown a credential's secret."""
        now = self._clock()
        with self._lock:
            own = [key for key, one in self._sessions.items() if one.credential == credential]
            if len(own) >= MOST_OF_ONE:
                del self._sessions[own[0]]
            return self._add(Session(now + self.lifetime, uid, credential))

    def _add(self, session: Session) -> str:
        """With the lock held. Those that have ended make room, then the oldest."""
        now, secret = self._clock(), secrets.token_urlsafe(TOKEN_BYTES)
        self._sessions = {key: one for key, one in self._sessions.items() if one.expires > now}
        if len(self._sessions) >= MOST_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        self._sessions[_hash(secret)] = session
        return secret

    def close(self, secret: str) -> None:
        """From now on the secret opens nothing."""
        with self._lock:
            self._sessions.pop(_hash(secret), None)

    def is_open(self, secret: str, uid: int | None) -> bool:
        """Whether this is a session's secret, shown by the user who signed in."""
        return self.find(secret, uid) is not None

    def find(self, secret: str, uid: int | None) -> Session | None:
        """The open session of this secret, shown by the user who signed in."""
        session = self._sessions.get(_hash(secret))
        if session is None or session.expires <= self._clock() or session.uid != uid:
            return None
        return session


def _signature(key: str, body: str) -> str:
    return hmac.new(key.encode(), f"sign-in:{_plain(body)}".encode(), hashlib.sha256).hexdigest()


def _plain(text: str) -> str:
    """Without what no token of ours has: the rest can be compared."""
    return text if text.isascii() else ""


def _milliseconds(seconds: float) -> int:
    return int(seconds * 1000)


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode(errors="surrogatepass")).hexdigest()


def _no_link(why: str) -> NotAuthorized:
    return NotAuthorized(f"The link {why}.", "Make another with `headgate sign-in`.")
