"""A query's token: who asks, to the catalog alone, for reading alone."""

import pytest

from headgate.access.credentials import Credentials
from headgate.access.gate import Gate, Visit
from headgate.access.roles import ENGINE, LOCAL, Grant, Principal, Role
from headgate.access.tokens import Tokens
from headgate.errors import NotAuthorized
from tests.unit.access.conftest import Clock


def shown(gate: Gate, token: str, public: bool = False) -> Principal:
    return gate.caller(Visit(f"Bearer {token}", "127.0.0.1", public))


def test_it_says_who_asks_and_reads_alone(gate: Gate, credentials: Credentials) -> None:
    made, _ = credentials.create("notebook", [Grant.parse("writer:local:orders")])
    caller = shown(gate, gate.query_token(made.principal))
    assert (caller.name, caller.grants, caller.reads_only) == ("'notebook'", made.grants, True)
    other = Principal("'ada'", (Grant.parse("reader:local:*"),), "issuer ada")
    for principal in (LOCAL, other):
        caller = shown(gate, gate.query_token(principal))
        assert (caller.name, caller.grants, caller.id) == (principal.name, principal.grants, principal.id)
        assert caller.reads_only


def test_the_engine_asks_as_an_admin(gate: Gate) -> None:
    assert shown(gate, gate.query_token(ENGINE)).everywhere is Role.ADMIN


def test_it_opens_nothing_at_the_public_door_and_is_not_exchanged(
    gate: Gate, credentials: Credentials
) -> None:
    made, _ = credentials.create("notebook", [Grant(Role.WRITER)])
    for principal in (LOCAL, made.principal):
        token = gate.query_token(principal)
        with pytest.raises(NotAuthorized):
            shown(gate, token, public=True)
        with pytest.raises(NotAuthorized):
            gate.client_of(token)


def test_a_revoked_credential_asks_no_more(gate: Gate, credentials: Credentials) -> None:
    made, _ = credentials.create("notebook", [Grant(Role.READER)])
    token = gate.query_token(made.principal)
    credentials.revoke("notebook")
    with pytest.raises(NotAuthorized, match="revoked"):
        shown(gate, token)


def test_it_stays_the_same_for_its_caller_and_follows_other_grants(gate: Gate) -> None:
    few, more = (
        Principal("'ada'", grants, "ada") for grants in ((Grant(Role.READER, "a"),), (Grant(Role.READER),))
    )
    assert gate.query_token(few) == gate.query_token(few)
    assert gate.query_token(few) != gate.query_token(more)
    assert shown(gate, gate.query_token(few)).grants == few.grants


def test_a_token_of_a_client_is_no_query(gate: Gate, credentials: Credentials, tokens: Tokens) -> None:
    made, _ = credentials.create("notebook", [Grant(Role.WRITER)])
    assert not shown(gate, tokens.issue(made.client_id)).reads_only


def test_it_expires(gate: Gate, tokens: Tokens, clock: Clock) -> None:
    token = gate.query_token(LOCAL)
    clock.now += tokens.lifetime + 1
    with pytest.raises(NotAuthorized, match="expired"):
        shown(gate, token)
