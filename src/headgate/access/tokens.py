"""Tokens of our own: JSON Web Tokens, signed with a key of the control state, for an hour.

A token says who it was given to and nothing of what they may do: that is looked up at each request, so a
revocation holds at once. Keys are replaced as they age; an old one is kept while tokens of its are about.
"""

import secrets
import time
from collections.abc import Callable, Mapping
from typing import Any

import sqlalchemy as sa
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import OctKey
from sqlalchemy import Engine

from headgate.errors import NotAuthorized
from headgate.store.database import reading

ISSUER = "headgate"
# The claim of a token that is for one thing only, and opens nothing else.
USE = "use"
# Ours alone: a token that names another algorithm, or none, is not ours.
ALGORITHM = "HS256"
KEY_BYTES = 32
LONGEST_TOKEN = 16_384

_keys = sa.Table(
    "signing_keys",
    sa.MetaData(),
    sa.Column("id", sa.String, primary_key=True),
    sa.Column("secret", sa.String),
    sa.Column("created_at", sa.Float),
)


class Tokens:
    """`lifetime` and `key_lifetime` in seconds. Several servers on one control state share the keys."""

    def __init__(
        self, engine: Engine, lifetime: float, key_lifetime: float, clock: Callable[[], float] = time.time
    ) -> None:
        self.lifetime = int(lifetime)
        self._engine = engine
        self._key_lifetime = key_lifetime
        self._clock = clock

    def issue(self, client_id: str, more: Mapping[str, Any] | None = None) -> str:
        """`more`: claims beside those of every token."""
        key_id, key = self._signing_key()
        now = int(self._clock())
        header = {"alg": ALGORITHM, "kid": key_id}
        claims = {
            "iss": ISSUER,
            "sub": client_id,
            "iat": now,
            "exp": now + self.lifetime,
            "jti": secrets.token_hex(8),
            **(more or {}),
        }
        return jwt.encode(header, claims, key, algorithms=[ALGORITHM])

    def subject(self, token: str, or_expired: bool = False) -> str:
        """Whose token it is. One that is not signed by us, or has expired, is nobody's; so is one that is for
        a single use."""
        claims = self.claims(token, or_expired)
        if USE in claims:
            raise not_a_token()
        return str(claims["sub"])

    def claims(self, token: str, or_expired: bool = False) -> Mapping[str, Any]:
        """What one of our tokens says, `sub` first of all."""
        try:
            found = jwt.decode(token, self._key_of, algorithms=[ALGORITHM])
        except (JoseError, ValueError) as error:
            raise not_a_token() from error
        subject, expires = found.claims.get("sub"), found.claims.get("exp")
        if found.claims.get("iss") != ISSUER or not isinstance(subject, str) or type(expires) is not int:
            raise not_a_token()
        if expires <= self._clock() and not or_expired:
            raise NotAuthorized("The token has expired.", "Ask for another.")
        claims: Mapping[str, Any] = found.claims
        return claims

    def _key_of(self, token: Any) -> OctKey:
        key_id = token.headers().get("kid")
        found = sa.select(_keys.c.secret).where(_keys.c.id == str(key_id))
        with reading(self._engine) as connection:
            secret = connection.scalar(found)
        if secret is None:
            raise not_a_token()
        return OctKey.import_key(secret)

    def _signing_key(self) -> tuple[str, OctKey]:
        """The newest, unless it is too old: then another. Two servers that both make one do no harm."""
        newest = sa.select(_keys).order_by(_keys.c.created_at.desc()).limit(1)
        with reading(self._engine) as connection:
            row = connection.execute(newest).one_or_none()
        now = self._clock()
        if row is not None and row.created_at > now - self._key_lifetime:
            return row.id, OctKey.import_key(row.secret)
        key_id, secret = secrets.token_hex(8), secrets.token_urlsafe(KEY_BYTES)
        # No token of theirs is valid any more.
        dead = _keys.c.created_at <= now - self._key_lifetime - self.lifetime
        with self._engine.begin() as connection:
            connection.execute(sa.delete(_keys).where(dead))
            connection.execute(sa.insert(_keys).values(id=key_id, secret=secret, created_at=now))
        return key_id, OctKey.import_key(secret)


def not_a_token() -> NotAuthorized:
    return NotAuthorized("The token is not valid.", "Ask for another, with a client id and secret.")
