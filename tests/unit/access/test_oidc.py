"""Tokens of another issuer, against keys that it really serves."""

import base64
import hashlib
import hmac
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, KeySet, RSAKey

from headgate import config
from headgate.access.credentials import Credentials
from headgate.access.gate import Gate, Visit
from headgate.access.limits import FailureLimit
from headgate.access.oidc import FRESH_SECONDS, PAUSE_SECONDS, Issuer
from headgate.access.roles import Grant, Role
from headgate.access.tokens import Tokens
from headgate.errors import ConfigError, IssuerUnavailable, NotAuthorized, TooManyFailures
from tests.unit.access.conftest import KEYS, Clock

NAME = "https://issuer.example"


class Published:
    """An issuer's keys behind HTTP; `status` other than 200 is an issuer in trouble."""

    def __init__(self) -> None:
        self.keys: list[RSAKey | ECKey] = [RSAKey.generate_key(2048, {"kid": "first"})]
        self.status = 200
        self.asked = 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked += 1
                self.send_response(outer.status)
                self.end_headers()
                self.wfile.write(json.dumps(KeySet(list(outer.keys)).as_dict(private=False)).encode())

            def log_message(self, *_: object) -> None:
                pass

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/keys"
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def segment(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


@pytest.fixture
def published() -> Iterator[Published]:
    published = Published()
    yield published
    published.close()


@pytest.fixture
def issuer(published: Published, clock: Clock) -> Issuer:
    grants = {"analysts": "reader:local:*", "platform": "admin"}
    settings = config.Oidc(issuer=NAME, jwks_url=published.url, audience="headgate", grants=grants)
    return Issuer(settings, clock)


def token(published: Published, clock: Clock, kid: str = "first", alg: str = "RS256", **changes: Any) -> str:
    claims = {
        "iss": NAME,
        "sub": "ada",
        "aud": ["other", "headgate"],
        "exp": int(clock.now) + 300,
        "groups": ["analysts", "sailors"],
        **changes,
    }
    key = next(key for key in published.keys if key.kid == kid)
    return jwt.encode({"alg": alg, "kid": kid}, claims, key, algorithms=[alg])


def test_a_token_opens_what_its_groups_are_granted(
    published: Published, issuer: Issuer, clock: Clock, credentials: Credentials, tokens: Tokens
) -> None:
    gate = Gate(credentials, tokens, KEYS, required=True, issuer=issuer)
    found = gate.caller(Visit(f"Bearer {token(published, clock)}", "10.0.0.1", True))
    assert (found.name, found.grants) == ("'ada'", (Grant(Role.READER, "local", "*"),))
    made, _ = credentials.create("ours", (Grant(Role.READER),))
    assert gate.caller(Visit(f"Bearer {tokens.issue(made.client_id)}", "10.0.0.1")).name == "'ours'"


@pytest.mark.parametrize(
    ("claims", "grants"),
    [
        ({"groups": "platform analysts"}, 2),
        ({"groups": ["sailors"]}, 0),
        ({"groups": None}, 0),
        ({"groups": {"analysts": True}}, 0),
        ({"groups": [["analysts"], 1]}, 0),
    ],
)
def test_what_a_claim_may_look_like(
    published: Published, issuer: Issuer, clock: Clock, claims: dict[str, Any], grants: int
) -> None:
    assert len(issuer.principal(token(published, clock, **claims)).grants) == grants


@pytest.mark.parametrize(
    "change",
    [
        {"iss": "https://other.example"},
        {"aud": "other"},
        {"aud": None},
        {"exp": 1_700_000_000},
        {"exp": None},
        {"exp": "soon"},
        {"exp": True},
        {"nbf": 1_900_000_000},
        {"sub": None},
    ],
)
def test_a_token_for_others_or_another_time_opens_nothing(
    published: Published, issuer: Issuer, clock: Clock, change: dict[str, Any]
) -> None:
    with pytest.raises(NotAuthorized):
        issuer.principal(token(published, clock, **change))


def test_a_public_key_is_no_shared_secret(published: Published, issuer: Issuer, clock: Clock) -> None:
    """The oldest trick: the published key, used as if it were the secret of an HMAC."""
    good = token(published, clock)
    head, body, signature = good.split(".")
    hmacs = []
    for header in ({"alg": "HS256", "kid": "first"}, {"alg": "HS256"}):
        signed = f"{segment(json.dumps(header).encode())}.{body}"
        made = hmac.digest(published.keys[0].as_pem(private=False), signed.encode(), hashlib.sha256)
        hmacs.append(f"{signed}.{segment(made)}")
    none = segment(b'{"alg":"none","kid":"first"}')
    nones = (f"{none}.{body}.", f"{none}.{body}.{signature}", f"{head}.{body}.", f"{head}.{body}")
    for forged in (*hmacs, *nones):
        with pytest.raises(NotAuthorized):
            issuer.principal(forged)


def test_new_keys_are_found_and_strangers_do_not_make_us_ask(
    published: Published, issuer: Issuer, clock: Clock
) -> None:
    issuer.principal(token(published, clock))
    published.keys.append(ECKey.generate_key("P-256", {"kid": "second"}))
    clock.now += PAUSE_SECONDS + 1
    assert issuer.principal(token(published, clock, "second", "ES256")).name == "'ada'"
    assert published.asked == 2
    published.keys.append(RSAKey.generate_key(2048, {"kid": "third"}))
    for _ in range(5):
        with pytest.raises(NotAuthorized):
            issuer.principal(token(published, clock, "third"))
    assert published.asked == 2


def test_a_key_that_is_withdrawn_opens_nothing_any_more(
    published: Published, issuer: Issuer, clock: Clock
) -> None:
    old = token(published, clock, exp=int(clock.now) + 10_000)
    issuer.principal(old)
    published.keys = [RSAKey.generate_key(2048, {"kid": "second"})]
    clock.now += FRESH_SECONDS + 1
    with pytest.raises(NotAuthorized):
        issuer.principal(old)


def test_an_issuer_that_is_away(published: Published, issuer: Issuer, clock: Clock) -> None:
    published.status = 500
    with pytest.raises(IssuerUnavailable):
        issuer.principal(token(published, clock))
    published.status = 200
    clock.now += PAUSE_SECONDS + 1
    issuer.principal(token(published, clock))
    published.status = 500
    clock.now += FRESH_SECONDS + 1
    issuer.principal(token(published, clock))


def test_a_grant_that_makes_no_sense_is_told_at_the_start(published: Published) -> None:
    settings = config.Oidc(issuer=NAME, jwks_url=published.url, audience="a", grants={"x": "owner"})
    with pytest.raises(ConfigError, match=r"auth\.oidc\.grants"):
        Issuer(settings)


def test_tokens_of_another_issuer_are_shown_in_vain_only_so_often(
    published: Published, issuer: Issuer, clock: Clock, credentials: Credentials, tokens: Tokens
) -> None:
    gate = Gate(credentials, tokens, KEYS, issuer=issuer, limit=FailureLimit(per_address=3))
    wrong = Visit(f"Bearer {token(published, clock, aud='others')}", "10.0.0.1", True)
    for _ in range(3):
        with pytest.raises(NotAuthorized):
            gate.caller(wrong)
    with pytest.raises(TooManyFailures):
        gate.caller(wrong)
    right = Visit(f"Bearer {token(published, clock)}", "10.0.0.1", True)
    assert gate.caller(right).credential.startswith(NAME)
