"""What the driver of Spark Connect is told, and what it is not."""

import stat
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from headgate.access.credentials import Credentials
from headgate.config import load_settings
from headgate.embedded import notebooks
from headgate.embedded.runtime import Runtime
from headgate.embedded.secrets import ENGINE_KEY, OPERATOR_KEY, secret
from headgate.errors import NotFound
from headgate.store import Store

ENABLED = {"HEADGATE_CONNECT__ENABLED": "true", "HEADGATE_SECRETS__PEPPER": "a pepper of ours"}


@pytest.fixture
def runtime(tmp_path: Path) -> Runtime:
    settings = load_settings(environment=ENABLED, data=tmp_path)
    return Runtime.of(settings, server_port=1, connect_port=1502, broker_port=2)


@pytest.fixture
def store(runtime: Runtime) -> Iterator[Store]:
    with closing(Store.open(runtime.settings.store_url)) as store:
        yield store


def test_it_is_off_unless_asked_for(tmp_path: Path) -> None:
    settings = load_settings(environment={}, data=tmp_path)
    runtime = Runtime.of(settings, server_port=1, connect_port=0, broker_port=2)
    assert runtime.spark_connect is None
    assert "spark_connect" not in runtime.addresses
    with pytest.raises(NotFound, match="never started"):
        notebooks.token_of(tmp_path)


def test_it_is_told_what_it_needs_in_files_of_its_owner(runtime: Runtime, store: Store) -> None:
    assert runtime.addresses["spark_connect"] == "sc://localhost:1502"
    keys = [secret(runtime.data, name) for name in (ENGINE_KEY, OPERATOR_KEY)]
    (folder,) = map(Path, notebooks.prepare(runtime, store))
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    files = {file.name: file for file in folder.iterdir()}
    assert set(files) == {"settings.json", "token"}
    assert {stat.S_IMODE(file.stat().st_mode) for file in files.values()} == {0o600}
    told = notebooks.Told.read(folder)
    assert (told.port, told.namespace, told.iceberg) == (1502, "local", runtime.iceberg)
    written = "".join(file.read_text() for file in files.values())
    assert not [word for word in (*keys, "a pepper of ours") if word in written]
    token = notebooks.token_of(runtime.data)
    notebooks.prepare(runtime, store)
    assert notebooks.token_of(runtime.data) == token, "notebooks go on knowing it"


def test_its_credential_is_another_at_each_start(runtime: Runtime, store: Store) -> None:
    lent = []
    for _ in range(2):
        (folder,) = map(Path, notebooks.prepare(runtime, store))
        client_id, _, its_secret = str(notebooks.Told.read(folder).credential).partition(":")
        lent.append((client_id, its_secret))
    credentials = Credentials(store.engine)
    assert credentials.verify(*lent[0]) is None
    live = credentials.verify(*lent[1])
    assert live is not None
    assert [str(grant) for grant in live.grants] == ["writer:*:*"]
    notebooks.revoke(store)
    assert credentials.verify(*lent[1]) is None


def test_a_catalog_of_yours_is_told_nothing_of_ours(runtime: Runtime, store: Store) -> None:
    catalog = runtime.settings.catalog.model_copy(
        update={"uri": "http://there", "properties": {"token": "t"}}
    )
    theirs = replace(runtime, settings=runtime.settings.model_copy(update={"catalog": catalog}))
    (folder,) = map(Path, notebooks.prepare(theirs, store))
    told = notebooks.Told.read(folder)
    assert (told.credential, dict(told.properties)) == (None, {"token": "t"})


def test_its_environment_has_no_settings(runtime: Runtime) -> None:
    given = {
        "PATH": "/bin",
        "HOME": "/home/ada",
        "AWS_SECRET_ACCESS_KEY": "no",
        "HEADGATE_SECRETS__PEPPER": "no",
    }
    assert notebooks.environment(runtime.data, given) == {
        "PATH": "/bin",
        "HOME": str(runtime.data / "connect"),
    }
