import sqlite3
import stat

import pytest

from headgate.access.credentials import Credentials
from headgate.access.roles import Grant, Role
from headgate.config import Settings
from headgate.errors import AlreadyExists, InvalidRequest, NotFound

READER = (Grant(Role.READER, "local", "*"),)


def test_a_secret_opens_until_it_is_revoked(credentials: Credentials) -> None:
    made, secret = credentials.create("notebook", READER)
    assert len(secret) >= 43
    assert credentials.verify(made.client_id, secret) == made
    assert credentials.verify(made.client_id, secret + "x") is None
    assert credentials.verify(made.client_id, "") is None
    assert credentials.verify("hg00", secret) is None
    revoked = credentials.revoke("notebook")
    assert revoked.revoked_at is not None
    assert credentials.verify(made.client_id, secret) is None
    assert credentials.find(made.client_id) is None


def test_only_the_hash_is_kept(credentials: Credentials, settings: Settings) -> None:
    made, secret = credentials.create("notebook", READER)
    dump = "\n".join(sqlite3.connect(settings.data / "control.db").iterdump())
    assert made.client_id in dump
    assert secret not in dump
    for file in settings.data.glob("control.db*"):
        assert secret.encode() not in file.read_bytes()
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_name_is_free_again_once_it_is_revoked(credentials: Credentials) -> None:
    first, _ = credentials.create("notebook", READER)
    with pytest.raises(AlreadyExists, match="notebook"):
        credentials.create("notebook", READER)
    credentials.revoke(first.client_id)
    second, _ = credentials.create("notebook", READER)
    assert [found.client_id for found in credentials.list()] == [second.client_id, first.client_id]
    assert [found.revoked_at is None for found in credentials.list()] == [True, False]
    with pytest.raises(NotFound):
        credentials.revoke(first.client_id)


@pytest.mark.parametrize("name", ["", " ", "a b", "-a", "a\n", "x" * 101, "é"])
def test_names_that_cannot_be_typed_are_refused(credentials: Credentials, name: str) -> None:
    with pytest.raises(InvalidRequest):
        credentials.create(name, READER)
    assert credentials.list() == []


def test_a_credential_without_grants_is_refused(credentials: Credentials) -> None:
    with pytest.raises(InvalidRequest, match="open nothing"):
        credentials.create("notebook", [])


def test_other_grants_hold_at_once_and_the_secret_stays(credentials: Credentials) -> None:
    made, secret = credentials.create("notebook", READER)
    changed = credentials.change("notebook", [Grant(Role.WRITER), *READER])
    assert changed.grants == tuple(sorted([Grant(Role.WRITER), *READER]))
    assert credentials.verify(made.client_id, secret) == changed
    credentials.revoke("notebook")
    with pytest.raises(NotFound, match="no live credential 'notebook'"):
        credentials.change("notebook", READER)
