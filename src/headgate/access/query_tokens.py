"""Tokens by which the query driver reads the catalog with the rights of whoever asks."""

import threading
import time
from dataclasses import replace

from headgate.access.credentials import Credentials
from headgate.access.roles import Grant, Principal, Role
from headgate.access.tokens import USE, Tokens
from headgate.errors import NotAuthorized

QUERY = "query"
# Of its life, after so much a token is replaced: a query that begins with it must come to its end.
FRESH = 0.5
MOST_REMEMBERED = 1000


class QueryTokens:
    """A token of a credential says whose it is, and its grants are looked up; that of anybody else (this
    machine's user, another issuer's) has the grants that they came with."""

    def __init__(self, tokens: Tokens, credentials: Credentials) -> None:
        self._tokens = tokens
        self._credentials = credentials
        self._lock = threading.Lock()
        self._issued: dict[Principal, tuple[str, float]] = {}

    def of(self, caller: Principal) -> str:
        now = time.monotonic()
        with self._lock:
            token, until = self._issued.get(caller, ("", 0.0))
            if now >= until:
                token = self._made(caller)
                self._issued.pop(caller, None)
                self._issued[caller] = token, now + self._tokens.lifetime * FRESH
            while len(self._issued) > MOST_REMEMBERED:
                del self._issued[next(iter(self._issued))]
        return token

    def principal(self, token: str) -> Principal | None:
        """Whose query it is; None for other tokens of ours."""
        claims = self._tokens.claims(token)
        if claims.get(USE) != QUERY:
            return None
        if "grants" in claims:
            grants = tuple(Grant.parse(text) for text in claims["grants"])
            return Principal(str(claims["name"]), grants, str(claims["sub"]), reads_only=True)
        credential = self._credentials.find(str(claims["sub"]))
        if credential is None:
            raise NotAuthorized("The token's credential was revoked.")
        return replace(credential.principal, reads_only=True)

    def _made(self, caller: Principal) -> str:
        claims: dict[str, object] = {USE: QUERY}
        if self._credentials.find(caller.credential) is None:
            grants = (replace(grant, role=min(grant.role, Role.ADMIN)) for grant in caller.grants)
            claims |= {"name": caller.name, "grants": [str(grant) for grant in grants]}
        return self._tokens.issue(caller.id, claims)
