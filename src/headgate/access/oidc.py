"""Tokens of another issuer, checked with the keys that it publishes; what they open is configured."""

import logging
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import httpx
from joserfc import jwt
from joserfc.errors import InvalidKeyIdError, JoseError
from joserfc.jwk import KeySet

from headgate import config
from headgate.access.roles import Grant, Principal
from headgate.access.tokens import not_a_token
from headgate.errors import ConfigError, HeadgateError, IssuerUnavailable, NotAuthorized

log = logging.getLogger(__name__)

# Public keys only: with a shared secret, whoever checks tokens could make them.
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
LEEWAY_SECONDS = 30
FRESH_SECONDS = 600.0
# A token that names a key we do not know makes us look, but not more often than this.
PAUSE_SECONDS = 10.0
TIMEOUT_SECONDS = 5.0


class Issuer:
    """An OIDC issuer as configured. Its keys are fetched when first needed, and again as they age."""

    def __init__(self, settings: config.Oidc, clock: Callable[[], float] = time.time) -> None:
        if settings.issuer is None or settings.jwks_url is None:
            raise ConfigError("auth.oidc names no issuer.", "Set auth.oidc.issuer and auth.oidc.jwks_url.")
        self.name = settings.issuer
        self.token_url = settings.token_url
        self._settings = settings
        self._jwks_url = settings.jwks_url
        self._grants = {value: _grant(value, text) for value, text in settings.grants.items()}
        self._clock = clock
        self._lock = threading.Lock()
        self._keys: KeySet | None = None
        self._fetched_at = float("-inf")
        self._tried_at = float("-inf")
        # True checks against the system's certificates.
        self._verify = _context(settings) if settings.ca_file else True

    def principal(self, token: str) -> Principal:
        try:
            claims = self._decode(token).claims
        except (JoseError, ValueError) as error:
            raise not_a_token() from error
        self._check(claims)
        held = set(_values(claims, self._settings.claim))
        grants = tuple(grant for value, grant in self._grants.items() if value in held)
        return Principal(f"'{claims['sub']}'", grants, f"{self.name} {claims['sub']}")

    def _decode(self, token: str) -> jwt.Token:
        try:
            return jwt.decode(token, self._known_keys(), algorithms=ALGORITHMS)
        except InvalidKeyIdError:
            return jwt.decode(token, self._known_keys(anew=True), algorithms=ALGORITHMS)

    def _check(self, claims: Mapping[str, Any]) -> None:
        now, audience = self._clock(), claims.get("aud")
        named = audience if isinstance(audience, list) else [audience]
        begins, expires = claims.get("nbf", 0), claims.get("exp")
        well_formed = isinstance(claims.get("sub"), str) and _is_number(expires) and _is_number(begins)
        if claims.get("iss") != self.name or self._settings.audience not in named or not well_formed:
            raise not_a_token()
        if float(claims["exp"]) <= now - LEEWAY_SECONDS:
            raise NotAuthorized("The token has expired.", "Ask its issuer for another.")
        if float(begins) > now + LEEWAY_SECONDS:
            raise NotAuthorized("The token is not valid yet.")

    def _known_keys(self, anew: bool = False) -> KeySet:
        """Fetched if they are old or `anew`; those of before if the issuer does not answer."""
        with self._lock:
            now = self._clock()
            stale = anew or now - self._fetched_at > FRESH_SECONDS
            if stale and now - self._tried_at > PAUSE_SECONDS:
                self._tried_at = now
                self._fetch(now)
            if self._keys is None:
                raise IssuerUnavailable(
                    f"The keys of the issuer {self.name} cannot be had from {self._jwks_url}.",
                    "Try again in a moment.",
                )
            return self._keys

    def _fetch(self, now: float) -> None:
        try:
            answer = httpx.get(self._jwks_url, timeout=TIMEOUT_SECONDS, verify=self._verify)
            answer.raise_for_status()
            self._keys = KeySet.import_key_set(answer.json())
            self._fetched_at = now
        except (httpx.HTTPError, JoseError, ValueError, KeyError, TypeError) as error:
            log.warning("the keys of %s cannot be had: %s: %s", self.name, type(error).__name__, error)


def _values(claims: Mapping[str, Any], path: str) -> Iterator[str]:
    """What a claim holds: a list, or words. `realm_access.roles` is a claim inside another."""
    found: Any = claims
    for part in [path] if path in claims else path.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    items = found.split() if isinstance(found, str) else found if isinstance(found, list) else []
    yield from (item for item in items if isinstance(item, str))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _grant(value: str, text: str) -> Grant:
    try:
        return Grant.parse(text)
    except HeadgateError as error:
        raise ConfigError(f"auth.oidc.grants['{value}']: {error}") from error


def _context(settings: config.Oidc) -> ssl.SSLContext:
    text = config.read_text(settings.ca_file, "auth.oidc.ca_file")
    try:
        return ssl.create_default_context(cadata=text)
    except ssl.SSLError as error:
        raise ConfigError(
            f"{settings.ca_file}, which auth.oidc.ca_file names, has no certificates."
        ) from error
