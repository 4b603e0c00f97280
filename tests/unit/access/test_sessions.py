import os

import pytest

from headgate.access.credentials import Credentials
from headgate.access.gate import Gate, Visit
from headgate.access.roles import LOCAL, Grant, Role
from headgate.access.sessions import LINK_SECONDS, MOST_OF_ONE, MOST_SESSIONS, Sessions, link_token
from headgate.access.tokens import Tokens
from headgate.errors import NotAllowed, NotAuthorized
from tests.support.peers import PeerOf, own_peer
from tests.unit.access.conftest import KEYS, Clock


@pytest.fixture
def sessions(clock: Clock) -> Sessions:
    return Sessions(KEYS.operator, 600, clock)


def test_link_opens_one_session(sessions: Sessions, clock: Clock) -> None:
    token = link_token(KEYS.operator, clock.now)
    secret = sessions.open(token, 1000)
    assert sessions.is_open(secret, 1000)
    with pytest.raises(NotAuthorized, match="used already"):
        sessions.open(token, 1000)


def test_link_expires(sessions: Sessions, clock: Clock) -> None:
    token = link_token(KEYS.operator, clock.now)
    clock.now += LINK_SECONDS
    with pytest.raises(NotAuthorized, match="expired"):
        sessions.open(token, 1000)


def test_link_from_before_this_server_opens_nothing(clock: Clock) -> None:
    """It may have been used at the server before this one."""
    token = link_token(KEYS.operator, clock.now)
    clock.now += 1
    with pytest.raises(NotAuthorized, match="expired"):
        Sessions(KEYS.operator, 600, clock).open(token, 1000)


@pytest.mark.parametrize("token", ["", ".", "..", "x.1.y", "\udcff.é.1"])
def test_forged_link_opens_nothing(sessions: Sessions, token: str) -> None:
    with pytest.raises(NotAuthorized, match="not valid"):
        sessions.open(token, 1000)


def test_link_of_another_key_opens_nothing(sessions: Sessions, clock: Clock) -> None:
    with pytest.raises(NotAuthorized, match="not valid"):
        sessions.open(link_token("another key", clock.now), 1000)


def test_session_ends_by_itself_and_when_signed_out(sessions: Sessions, clock: Clock) -> None:
    first, second = (sessions.open(link_token(KEYS.operator, clock.now), 1000) for _ in range(2))
    sessions.close(first)
    assert (sessions.is_open(first, 1000), sessions.is_open(second, 1000)) == (False, True)
    clock.now += 600
    assert not sessions.is_open(second, 1000)


def test_cookie_that_another_user_shows_opens_nothing(sessions: Sessions, clock: Clock) -> None:
    secret = sessions.open(link_token(KEYS.operator, clock.now), 1000)
    assert not sessions.is_open(secret, 1001)
    assert not sessions.is_open(secret, None)


def test_oldest_session_makes_room(sessions: Sessions, clock: Clock) -> None:
    secrets = [sessions.open(link_token(KEYS.operator, clock.now), None) for _ in range(MOST_SESSIONS + 1)]
    assert (sessions.is_open(secrets[0], None), sessions.is_open(secrets[1], None)) == (False, True)


@pytest.fixture
def guarded(credentials: Credentials, tokens: Tokens, sessions: Sessions) -> Gate:
    return Gate(credentials, tokens, KEYS, required=True, sessions=sessions)


@pytest.mark.parametrize("public", [True, False])
def test_session_of_a_credential_is_its_principal_at_both_doors(
    guarded: Gate, credentials: Credentials, sessions: Sessions, clock: Clock, public: bool
) -> None:
    made, _ = credentials.create("ada", [Grant(Role.WRITER, "local")])
    secret = sessions.begin(made.client_id, None)
    admission = guarded.admit(Visit(None, "10.0.0.1", public, session=secret))
    assert (admission.caller, admission.by) == (made.principal, "credential")
    assert admission.expires_at == clock.now + 600
    credentials.revoke("ada")
    for _ in range(2):
        with pytest.raises(NotAuthorized):
            guarded.admit(Visit(None, "10.0.0.1", public, session=secret))


def test_browser_of_a_revoked_credential_is_not_taken_for_the_operator(
    credentials: Credentials, tokens: Tokens, sessions: Sessions
) -> None:
    """On loopback, where nothing is asked of the service's own user."""
    gate = Gate(credentials, tokens, KEYS, required=False, sessions=sessions)
    made, _ = credentials.create("ada", [Grant(Role.READER)])
    secret = sessions.begin(made.client_id, os.geteuid())
    here = Visit(None, "127.0.0.1", peer=PeerOf(os.geteuid()), session=secret)
    assert gate.admit(here).caller == made.principal
    credentials.revoke("ada")
    for _ in range(3):
        with pytest.raises(NotAuthorized, match="revoked"):
            gate.admit(here)
    sessions.close(secret)
    with pytest.raises(NotAuthorized, match="has ended"):
        gate.admit(here)
    assert gate.admit(Visit(None, "127.0.0.1", peer=PeerOf(os.geteuid()))).by == "local"


@pytest.mark.parametrize("by_link", [True, False])
def test_session_is_not_enough_for_what_another_page_may_have_sent(
    guarded: Gate, credentials: Credentials, sessions: Sessions, clock: Clock, by_link: bool
) -> None:
    made, _ = credentials.create("ada", [Grant(Role.ADMIN)])
    token = link_token(KEYS.operator, clock.now)
    secret = sessions.open(token, None) if by_link else sessions.begin(made.client_id, None)
    with pytest.raises(NotAllowed, match="x-headgate-console"):
        guarded.admit(Visit(None, "127.0.0.1", peer=PeerOf(None), session=secret, is_ours=False))


@pytest.mark.parametrize(
    ("method", "path", "headers", "is_ours"),
    [
        ("GET", "/api/v1/status", [], True),
        ("POST", "/sign-out", [], True),
        ("POST", "/api/v1/sql", [], False),
        ("DELETE", "/api/v1/session", [(b"cookie", b"x-headgate-console=1")], False),
        ("POST", "/api/v1/sql", [(b"x-headgate-console", b"1")], True),
    ],
)
def test_request_of_our_own_page_is_told_by_its_header(
    method: str, path: str, headers: list[tuple[bytes, bytes]], is_ours: bool
) -> None:
    assert Visit.of({"method": method, "path": path, "headers": headers}).is_ours is is_ours


def test_oldest_session_of_a_credential_makes_room(sessions: Sessions) -> None:
    other = sessions.begin("hg2", None)
    secrets = [sessions.begin("hg1", None) for _ in range(MOST_OF_ONE + 1)]
    assert [sessions.is_open(one, None) for one in (other, *secrets[:2])] == [True, False, True]


@pytest.mark.parametrize("required", [True, False])
def test_gate_takes_a_session_at_the_loopback_door_only(
    credentials: Credentials, tokens: Tokens, sessions: Sessions, clock: Clock, required: bool
) -> None:
    gate = Gate(credentials, tokens, KEYS, required=required, sessions=sessions)
    secret = sessions.open(link_token(KEYS.operator, clock.now), None)
    nobody = PeerOf(None)
    assert gate.caller(Visit(None, "127.0.0.1", peer=nobody, session=secret)) is LOCAL
    for refused in (
        Visit(None, "127.0.0.1", peer=nobody, session="x"),
        Visit(None, "127.0.0.1", True, peer=own_peer(), session=secret),
        Visit("Bearer x", "127.0.0.1", peer=nobody, session=secret),
    ):
        with pytest.raises(NotAuthorized):
            gate.caller(refused)
