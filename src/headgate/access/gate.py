"""Tells who a request comes from, by its Authorization header and the door it came through."""

import base64
import hmac
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self

from headgate.access.credentials import Credential, Credentials
from headgate.access.limits import FailureLimit
from headgate.access.oidc import Issuer
from headgate.access.peers import PEER, Peer
from headgate.access.query_tokens import QueryTokens
from headgate.access.roles import ENGINE, LOCAL, Principal
from headgate.access.sessions import SIGN_OUT, Sessions
from headgate.access.tokens import LONGEST_TOKEN, Tokens, not_a_token
from headgate.errors import NotAllowed, NotAuthorized

# No token: PyIceberg, when it has none, sends the second.
NOTHING = frozenset({None, "Bearer None"})
# Marks requests that came through the public door, in their ASGI scope.
PUBLIC_DOOR = "headgate.public"
# The cookie of a browser's session; the port follows, as cookies go to all ports of a host.
SESSION_COOKIE = "headgate-session-"
# What the console's own requests carry, and no page of another origin can send.
CONSOLE_HEADER = "x-headgate-console"
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
# Where a request's ASGI scope says how its caller was let in.
ADMISSION = "headgate.admission"
MAKE_CREDENTIAL = "Make a credential with `headgate credentials create NAME --role reader`."
KEY_OR_CREDENTIAL = (
    "Use a credential that its user makes with `headgate credentials create NAME --role reader`; who may "
    "read the data folder signs a browser in with `headgate sign-in`."
)


@dataclass(frozen=True)
class LocalKeys:
    """Keys in files of the data folder, for Headgate's own parts and for who may read that folder.

    They do not expire, since a driver must outlive hours in which the server is away; they open nothing at
    the public door.
    """

    engine: str = field(repr=False)
    operator: str = field(repr=False)


# How a caller has shown who they are.
By = Literal["local", "link", "credential", "token"]


@dataclass(frozen=True)
class Admission:
    """Who a request comes from, and how that is known."""

    caller: Principal
    by: By
    # When the browser's session ends; None where there is none.
    expires_at: float | None = None


@dataclass(frozen=True)
class Visit:
    """What a request shows: its header or cookie, where it comes from, and whether by the public door."""

    authorization: str | None = field(repr=False)
    address: str
    public: bool = False
    # The other end of its connection; None where the server that took it knows of none.
    peer: Peer | None = field(default=None, repr=False, compare=False)
    session: str | None = field(default=None, repr=False)
    # Whether it changes nothing, or has what only a page of our own can send beside a cookie.
    is_ours: bool = True

    @classmethod
    def of(cls, scope: Mapping[str, Any]) -> Self:
        """From an ASGI scope."""
        shown = [value for name, value in scope["headers"] if name == b"authorization"]
        client = scope.get("client")
        return cls(
            # Two headers are no header that anybody would understand: together they open nothing.
            b", ".join(shown).decode("latin-1") if shown else None,
            "" if client is None else client[0],
            scope.get(PUBLIC_DOOR) is True,
            (scope.get("state") or {}).get(PEER),
            _session(scope),
            _is_ours(scope),
        )

    @property
    def uid(self) -> int | None:
        """The user of this machine whom the request is from; None when nobody can tell."""
        return None if self.public or self.peer is None else self.peer.uid()


class Gate:
    """`required`: a token is asked for on loopback too, of the server's own user as well.

    What is shown is checked in any case. `sessions` are those of browsers that were signed in.
    """

    def __init__(
        self,
        credentials: Credentials,
        tokens: Tokens,
        keys: LocalKeys,
        *,
        required: bool = False,
        issuer: Issuer | None = None,
        limit: FailureLimit | None = None,
        sessions: Sessions | None = None,
    ) -> None:
        self.tokens = tokens
        self.issuer = issuer
        self.sessions = sessions
        self._credentials = credentials
        self._keys = keys
        self._required = required
        self._limit = limit or FailureLimit()
        self._query_tokens = QueryTokens(tokens, credentials)

    def caller(self, visit: Visit) -> Principal:
        """Who it is, or NotAuthorized."""
        return self.admit(visit).caller

    def admit(self, visit: Visit) -> Admission:
        """Who it is and how that is known, or NotAuthorized."""
        if visit.authorization in NOTHING:
            return self._signed_in(visit) or Admission(self._local(visit), "local")
        scheme, _, shown = (visit.authorization or "").strip().partition(" ")
        match scheme.lower():
            case "bearer":
                caller = self._bearer(shown.strip(), visit)
                return Admission(caller, "local" if caller is LOCAL else "token")
            case "basic":
                return Admission(self.client(*basic(shown), visit).principal, "credential")
            case _:
                raise NotAuthorized("Authorization must be Bearer or Basic.")

    def is_of_ended_session(self, visit: Visit) -> bool:
        """Whether its cookie is of no session that is open."""
        if self.sessions is None or visit.session is None:
            return False
        return self.sessions.find(visit.session, visit.uid) is None

    def _signed_in(self, visit: Visit) -> Admission | None:
        """Whose browser it is, if it was signed in; NotAuthorized where its session has ended, and NotAllowed
        where another page may have sent this."""
        if self.sessions is None or visit.session is None:
            return None
        session = self.sessions.find(visit.session, visit.uid)
        if session is None:
            # Not the local user, who may more than whoever was signed in before the server started again.
            raise NotAuthorized("The browser's session has ended.", "Sign in again.")
        # Links are for the machine itself: what they open is no question of credentials.
        if session.credential is None and visit.public:
            return None
        if not visit.is_ours:
            raise NotAllowed(
                f"A browser's session changes something only with the header {CONSOLE_HEADER}.",
                "Use the console; programs show a credential.",
            )
        if session.credential is None:
            return Admission(LOCAL, "link", session.expires)
        found = self._credentials.find(session.credential)
        if found is None:
            # The session stays, and stays refused: without one, a browser of this machine is its operator's.
            raise NotAuthorized("The credential was revoked.", "Sign in with another.")
        return Admission(found.principal, "credential", session.expires)

    def _local(self, visit: Visit) -> Principal:
        """Who shows nothing: this process's own user on loopback."""
        if visit.public:
            raise NotAuthorized("A token is needed here.", MAKE_CREDENTIAL)
        if self._required:
            raise NotAuthorized("A token is needed here.", MAKE_CREDENTIAL)
        if visit.uid is None:
            raise NotAuthorized(
                "A token is needed here: this system does not tell which user's connection this is.",
                KEY_OR_CREDENTIAL,
            )
        if visit.uid != os.geteuid():
            raise NotAuthorized(
                f"A token is needed here: this Headgate is of the user {os.geteuid()}, and the request of "
                f"the user {visit.uid}.",
                KEY_OR_CREDENTIAL,
            )
        return LOCAL

    def client(self, client_id: str, secret: str, visit: Visit) -> Credential:
        """The live credential, or NotAuthorized; TooManyFailures when secrets are being tried."""
        self._limit.check(visit.address, client_id)
        found = self._credentials.verify(client_id, secret)
        if found is None:
            self._limit.failed(visit.address, client_id)
            raise NotAuthorized("The client id or its secret is wrong, or it was revoked.")
        return found

    def check_stands(self, caller: Principal) -> None:
        """For who is being answered: raises NotAuthorized when their credential was revoked meanwhile."""
        if self._credentials.is_revoked(caller.credential):
            raise NotAuthorized("The credential was revoked.")

    def issue(self, client: Credential) -> str:
        """A token, unless the client was given too many."""
        self._limit.take_token(client.client_id)
        return self.tokens.issue(client.client_id)

    def client_of(self, token: str, or_expired: bool = False) -> Credential:
        """The live credential that a token of ours was given to."""
        if len(token) > LONGEST_TOKEN:
            raise not_a_token()
        found = self._credentials.find(self.tokens.subject(token, or_expired))
        if found is None:
            raise NotAuthorized("The token's credential was revoked.")
        return found

    def exchanged(self, token: str, visit: Visit, *, or_expired: bool) -> Credential:
        """The same, for a token that is shown to get another."""
        try:
            return self.client_of(token, or_expired)
        except NotAuthorized:
            self._limit.failed_token(visit.address)
            raise

    def query_token(self, caller: Principal) -> str:
        """By which the catalog knows whose query it is. It reads, writes nothing, and opens nothing but the
        catalog on this machine; the same for some time, since the query driver keeps a session for each."""
        return self._query_tokens.of(caller)

    def _bearer(self, token: str, visit: Visit) -> Principal:
        if not visit.public:
            for key, principal in ((self._keys.engine, ENGINE), (self._keys.operator, LOCAL)):
                if hmac.compare_digest(key.encode(), token.encode(errors="surrogatepass")):
                    return principal
        if len(token) > LONGEST_TOKEN:
            raise not_a_token()
        try:
            if self.issuer is not None and claimed_issuer(token) == self.issuer.name:
                return self.issuer.principal(token)
            if not visit.public and (reader := self._query_tokens.principal(token)) is not None:
                return reader
            return self.client_of(token).principal
        except NotAuthorized:
            self._limit.failed_token(visit.address)
            raise


def session_cookie(scope: Mapping[str, Any]) -> str:
    """The name of the cookie at this server's port."""
    server = scope.get("server")
    return f"{SESSION_COOKIE}{server[1] if server else 0}"


def _is_ours(scope: Mapping[str, Any]) -> bool:
    if scope.get("method", "GET") in SAFE_METHODS or scope["path"] == SIGN_OUT:
        return True
    return any(name == CONSOLE_HEADER.encode() for name, _ in scope["headers"])


def _session(scope: Mapping[str, Any]) -> str | None:
    shown = [value.decode("latin-1") for name, value in scope["headers"] if name == b"cookie"]
    if not shown:
        return None
    pairs = (pair.strip().partition("=") for line in shown for pair in line.split(";"))
    return next((value for name, _, value in pairs if name == session_cookie(scope)), None)


def basic(shown: str) -> tuple[str, str]:
    """Client id and secret of a Basic header."""
    try:
        text = base64.b64decode(shown.strip(), validate=True).decode()
    except ValueError as error:
        raise NotAuthorized("The Basic authorization is malformed.") from error
    client_id, colon, secret = text.partition(":")
    if not colon:
        raise NotAuthorized("The Basic authorization is malformed.")
    return client_id, secret


def claimed_issuer(token: str) -> str | None:
    """Who a token says that it is from, not checked: it only tells who is to check it."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        claims: Any = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (ValueError, RecursionError):
        return None
    issuer = claims.get("iss") if isinstance(claims, dict) else None
    return issuer if isinstance(issuer, str) else None
