"""Tells who a request comes from, by its Authorization header and the door it came through."""

import base64
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from headgate.access.credentials import Credential, Credentials
from headgate.access.limits import FailureLimit
from headgate.access.oidc import Issuer
from headgate.access.roles import ENGINE, LOCAL, Principal
from headgate.access.tokens import LONGEST_TOKEN, Tokens, not_a_token
from headgate.errors import NotAuthorized

# No token: PyIceberg, when it has none, sends the second.
NOTHING = frozenset({None, "Bearer None"})
# Marks requests that came through the public door, in their ASGI scope.
PUBLIC_DOOR = "headgate.public"


@dataclass(frozen=True)
class LocalKeys:
    """Keys in files of the data folder, for Headgate's own parts and for who may read that folder.

    They do not expire, since a driver must outlive hours in which the server is away; they open nothing at
    the public door.
    """

    engine: str = field(repr=False)
    operator: str = field(repr=False)


@dataclass(frozen=True)
class Visit:
    """What a request shows: its header, where it comes from, and whether it came through the public door."""

    authorization: str | None = field(repr=False)
    address: str
    public: bool = False

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
        )


class Gate:
    """`required`: a token is asked for on loopback too. What is shown is checked in any case."""

    def __init__(
        self,
        credentials: Credentials,
        tokens: Tokens,
        keys: LocalKeys,
        *,
        required: bool = False,
        issuer: Issuer | None = None,
        limit: FailureLimit | None = None,
    ) -> None:
        self.tokens = tokens
        self.issuer = issuer
        self._credentials = credentials
        self._keys = keys
        self._required = required
        self._limit = limit or FailureLimit()

    def caller(self, visit: Visit) -> Principal:
        """Who it is, or NotAuthorized."""
        if visit.authorization in NOTHING:
            if self._required or visit.public:
                raise NotAuthorized(
                    "A token is needed here.",
                    "Make a credential with `headgate credentials create NAME --role reader`.",
                )
            return LOCAL
        scheme, _, shown = (visit.authorization or "").strip().partition(" ")
        match scheme.lower():
            case "bearer":
                return self._bearer(shown.strip(), visit)
            case "basic":
                return self.client(*basic(shown), visit).principal
            case _:
                raise NotAuthorized("Authorization must be Bearer or Basic.")

    def client(self, client_id: str, secret: str, visit: Visit) -> Credential:
        """The live credential, or NotAuthorized; TooManyFailures when secrets are being tried."""
        self._limit.check(visit.address, client_id)
        found = self._credentials.verify(client_id, secret)
        if found is None:
            self._limit.failed(visit.address, client_id)
            raise NotAuthorized("The client id or its secret is wrong, or it was revoked.")
        return found

    def client_of(self, token: str, or_expired: bool = False) -> Credential:
        """The live credential that a token of ours was given to."""
        if len(token) > LONGEST_TOKEN:
            raise not_a_token()
        found = self._credentials.find(self.tokens.subject(token, or_expired))
        if found is None:
            raise NotAuthorized("The token's credential was revoked.")
        return found

    def query_token(self, caller: Principal) -> str | None:
        """By which the catalog knows the caller whom the query driver asks for."""
        return self.tokens.issue(caller.credential) if self._credentials.find(caller.credential) else None

    def _bearer(self, token: str, visit: Visit) -> Principal:
        if not visit.public:
            for key, principal in ((self._keys.engine, ENGINE), (self._keys.operator, LOCAL)):
                if hmac.compare_digest(key.encode(), token.encode(errors="surrogatepass")):
                    return principal
        if len(token) > LONGEST_TOKEN:
            raise not_a_token()
        if self.issuer is not None and claimed_issuer(token) == self.issuer.name:
            return self.issuer.principal(token)
        return self.client_of(token).principal


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
