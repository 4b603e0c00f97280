import base64
import hashlib
import hmac
import json
import os
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from joserfc import jwt
from joserfc.jwk import OctKey
from sqlalchemy import text

from headgate.access.credentials import Credentials
from headgate.access.gate import Gate, Visit
from headgate.access.limits import PER_CLIENT, FailureLimit
from headgate.access.roles import ENGINE, LOCAL, Grant, Role
from headgate.access.sessions import Sessions
from headgate.access.tokens import LONGEST_TOKEN, Tokens
from headgate.errors import NotAuthorized, TooManyFailures
from headgate.store import Store
from tests.support.peers import PeerOf, own_peer
from tests.unit.access.conftest import KEYS, Clock

READER = (Grant(Role.READER),)


def bearer(token: str, public: bool = False) -> Visit:
    return Visit(f"Bearer {token}", "10.0.0.1", public)


def basic(client_id: str, secret: str) -> Visit:
    shown = base64.b64encode(f"{client_id}:{secret}".encode()).decode()
    return Visit(f"Basic {shown}", "10.0.0.1", True)


def segment(document: Any) -> str:
    raw = document if isinstance(document, bytes) else json.dumps(document).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def parts_of(token: str) -> tuple[dict[str, Any], dict[str, Any], str]:
    header, claims, signature = token.split(".")
    opened = [json.loads(base64.urlsafe_b64decode(part + "==")) for part in (header, claims)]
    return opened[0], opened[1], signature


@pytest.fixture
def client_id(credentials: Credentials) -> str:
    return credentials.create("notebook", READER)[0].client_id


def test_no_token_is_nobody_where_one_is_asked_for(
    gate: Gate, credentials: Credentials, tokens: Tokens
) -> None:
    with pytest.raises(NotAuthorized, match="credentials create"):
        gate.caller(Visit(None, "127.0.0.1"))
    with pytest.raises(NotAuthorized):
        gate.caller(Visit(None, "127.0.0.1", peer=own_peer()))


@pytest.mark.parametrize("nothing", [None, "Bearer None"])
def test_own_user_needs_nothing_on_loopback_and_others_a_credential(
    credentials: Credentials, tokens: Tokens, nothing: str | None
) -> None:
    gate = Gate(credentials, tokens, KEYS, required=False)
    assert gate.caller(Visit(nothing, "127.0.0.1", peer=own_peer())) is LOCAL
    for peer in (None, PeerOf(None), PeerOf(os.geteuid() + 1)):
        with pytest.raises(NotAuthorized) as refused:
            gate.caller(Visit(nothing, "127.0.0.1", peer=peer))
        assert "credentials create" in refused.value.remedy
        by_key = Visit(f"Bearer {KEYS.operator}", "127.0.0.1", peer=peer)
        assert gate.caller(by_key) is LOCAL
    with pytest.raises(NotAuthorized):
        gate.caller(Visit(nothing, "10.0.0.1", public=True, peer=own_peer()))


def test_browser_of_no_open_session_is_not_taken_for_the_local_user(
    credentials: Credentials, tokens: Tokens, client_id: str, clock: Clock
) -> None:
    """A server that starts again knows no session, and whoever was signed in as less must not be more."""
    gate = Gate(credentials, tokens, KEYS, sessions=Sessions(KEYS.operator, 600, clock))
    assert gate.sessions is not None
    own = own_peer()

    def visit(session: str | None, public: bool = False) -> Visit:
        return Visit(None, "127.0.0.1", public, own, session)

    assert gate.caller(visit(None)) is LOCAL
    of_another = gate.sessions.begin(client_id, os.geteuid() + 1)
    for unknown in ("of-the-server-before", "", of_another):
        assert gate.is_of_ended_session(visit(unknown))
        for public in (False, True):
            with pytest.raises(NotAuthorized, match="session has ended"):
                gate.caller(visit(unknown, public))
    known = gate.sessions.begin(client_id, os.geteuid())
    assert gate.caller(visit(known)).name == "'notebook'"
    assert not gate.is_of_ended_session(visit(known))
    assert not gate.is_of_ended_session(visit(None))
    clock.now += 600
    with pytest.raises(NotAuthorized, match="session has ended"):
        gate.caller(visit(known))
    assert gate.caller(Visit(f"Bearer {KEYS.operator}", "127.0.0.1", session=known)) is LOCAL


def test_a_token_is_its_clients(gate: Gate, tokens: Tokens, client_id: str) -> None:
    found = gate.caller(bearer(tokens.issue(client_id), public=True))
    assert (found.name, found.grants) == ("'notebook'", READER)


def test_a_token_expires(gate: Gate, tokens: Tokens, clock: Clock, client_id: str) -> None:
    token = tokens.issue(client_id)
    clock.now += 599
    gate.caller(bearer(token))
    clock.now += 1
    with pytest.raises(NotAuthorized, match="expired"):
        gate.caller(bearer(token))
    assert gate.client_of(token, or_expired=True).client_id == client_id


def test_a_revoked_client_is_out_at_once(
    gate: Gate, credentials: Credentials, tokens: Tokens, client_id: str
) -> None:
    token = tokens.issue(client_id)
    gate.caller(bearer(token))
    credentials.revoke("notebook")
    with pytest.raises(NotAuthorized, match="revoked"):
        gate.caller(bearer(token))


def test_keys_are_replaced_and_old_tokens_live_on(
    gate: Gate, tokens: Tokens, store: Store, clock: Clock, client_id: str
) -> None:
    first = tokens.issue(client_id)
    clock.now += 3500
    old = tokens.issue(client_id)
    assert parts_of(old)[0]["kid"] == parts_of(first)[0]["kid"]
    clock.now += 200
    new = tokens.issue(client_id)
    assert parts_of(new)[0]["kid"] != parts_of(old)[0]["kid"]
    gate.caller(bearer(old))
    gate.caller(bearer(new))
    clock.now += 3700
    tokens.issue(client_id)
    with store.engine.connect() as connection:
        kept = {row.id for row in connection.execute(text("select id from signing_keys"))}
    assert parts_of(old)[0]["kid"] not in kept
    with pytest.raises(NotAuthorized):
        gate.client_of(old, or_expired=True)


def test_two_servers_share_the_keys(gate: Gate, store: Store, clock: Clock, client_id: str) -> None:
    other = Tokens(store.engine, lifetime=600, key_lifetime=3600, clock=clock)
    gate.caller(bearer(other.issue(client_id)))


def test_forged_tokens_open_nothing(
    gate: Gate, tokens: Tokens, client_id: str, credentials: Credentials
) -> None:
    other, _ = credentials.create("admin", (Grant(Role.ADMIN),))
    header, claims, signature = parts_of(tokens.issue(client_id))
    raised = {**claims, "sub": other.client_id}
    own_key = OctKey.import_key("k" * 43)
    signed_by_none = f"{segment({'alg': 'none', 'kid': header['kid']})}.{segment(raised)}"
    by_an_empty_key = hmac.digest(b"", f"{segment(header)}.{segment(raised)}".encode(), hashlib.sha256)
    forged = [
        f"{segment(header)}.{segment(raised)}.{signature}",
        f"{signed_by_none}.",
        f"{signed_by_none}.{signature}",
        f"{segment({**header, 'alg': 'NONE'})}.{segment(raised)}.",
        f"{segment(header)}.{segment(raised)}.",
        f"{segment(header)}.{segment(raised)}",
        f"{segment(header)}.{segment(raised)}.{segment(by_an_empty_key)}",
        jwt.encode({"alg": "HS256", "kid": header["kid"]}, raised, own_key),
        jwt.encode({"alg": "HS256"}, raised, own_key),
        jwt.encode({"alg": "HS256", "kid": "' or 1=1 --"}, raised, own_key),
        jwt.encode({"alg": "HS512", "kid": header["kid"]}, raised, own_key, algorithms=["HS512"]),
        f"{segment([])}.{segment(raised)}.{signature}",
        f"{segment(header)}.{segment([raised])}.{signature}",
        f"{segment({**header, 'crit': ['exp']})}.{segment(claims)}.{signature}",
    ]
    for token in forged:
        for public in (True, False):
            with pytest.raises(NotAuthorized):
                gate.caller(bearer(token, public))


def test_a_right_signature_on_wrong_claims_opens_nothing(gate: Gate, tokens: Tokens, client_id: str) -> None:
    key_id, key = tokens._signing_key()
    _, claims, _ = parts_of(tokens.issue(client_id))
    for change in ({"iss": "other"}, {"exp": None}, {"exp": "9999999999"}, {"exp": True}, {"sub": ["a"]}):
        with pytest.raises(NotAuthorized):
            gate.caller(bearer(jwt.encode({"alg": "HS256", "kid": key_id}, {**claims, **change}, key)))


@given(st.one_of(st.text(max_size=60), st.lists(st.binary(max_size=30), min_size=3, max_size=3)))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150, deadline=None)
def test_whatever_is_shown_is_answered(gate: Gate, shown: str | list[bytes]) -> None:
    token = shown if isinstance(shown, str) else ".".join(segment(part) for part in shown)
    for header in (f"Bearer {token}", f"Basic {token}", token):
        with pytest.raises((NotAuthorized, TooManyFailures)):
            gate.caller(Visit(header, "10.0.0.1"))


def test_a_token_without_end_is_not_looked_at(gate: Gate) -> None:
    with pytest.raises(NotAuthorized):
        gate.caller(bearer("a" * (LONGEST_TOKEN + 1)))


def test_local_keys_open_nothing_at_the_public_door(gate: Gate) -> None:
    assert gate.caller(bearer(KEYS.engine)) is ENGINE
    assert gate.caller(bearer(KEYS.operator)) is LOCAL
    for key in (KEYS.engine, KEYS.operator):
        with pytest.raises(NotAuthorized):
            gate.caller(bearer(key, public=True))


def test_a_secret_may_be_shown_itself_and_be_wrong_only_so_often(
    gate: Gate, credentials: Credentials
) -> None:
    made, secret = credentials.create("notebook", READER)
    assert gate.caller(basic(made.client_id, secret)).name == "'notebook'"
    for _ in range(PER_CLIENT):
        with pytest.raises(NotAuthorized):
            gate.caller(basic(made.client_id, "wrong"))
    with pytest.raises(TooManyFailures):
        gate.caller(basic(made.client_id, secret))


def test_tokens_are_shown_in_vain_only_so_often_wherever_they_are_shown(
    credentials: Credentials, tokens: Tokens, client_id: str
) -> None:
    limit = FailureLimit(per_address=3)
    gate = Gate(credentials, tokens, KEYS, limit=limit)
    for _ in range(3):
        with pytest.raises(NotAuthorized):
            gate.exchanged("not.a.token", bearer(""), or_expired=False)
    with pytest.raises(TooManyFailures):
        gate.exchanged("not.a.token", bearer(""), or_expired=False)
    with pytest.raises(TooManyFailures):
        gate.caller(bearer("not.a.token", public=True))
    assert gate.exchanged(tokens.issue(client_id), bearer(""), or_expired=False).client_id == client_id


def test_nothing_that_is_printed_has_a_key() -> None:
    assert "of-the-tests" not in repr(KEYS)
    assert "hush" not in repr(Visit("Bearer hush", "10.0.0.1"))
