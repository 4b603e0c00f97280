"""The catalog commands against a real server; the test says what the engine would."""

import json
import threading
import time
from collections.abc import Iterator

import pytest

from headgate.errors import AlreadyExists, ConfigError, InvalidRequest, NotFound
from headgate.store import Integrations, IntegrationState, PublicationState
from tests.integration.server.conftest import Served
from tests.integration.server.test_commands import headgate

GLUE = ("catalog", "add", "glue", "athena", "--region", "eu-west-1")


@pytest.fixture
def integrations(served: Served) -> Iterator[Integrations]:
    integrations = Integrations(served.store.engine)
    yield integrations
    for one in integrations.all():
        integrations.forget(one.name)


def test_add_list_show(served: Served, integrations: Integrations) -> None:
    added = headgate(served, *GLUE, "--table-name", "a.b=ab")
    assert added.exit_code == 0, added.output
    assert added.stdout == "athena is added: Pending, waiting for the engine\n"
    integrations.report("athena", IntegrationState.CONNECTED, "")
    integrations.claim("athena", "a.b", "ab")
    integrations.tell("athena", "a.b", PublicationState.SYNCED, "", {"metadata_location": "file:/m"})
    integrations.tell("athena", "c", PublicationState.NOT_APPLICABLE, "the catalog takes iceberg tables")

    listed = headgate(served, "catalog", "list").stdout.splitlines()
    assert listed[-1].split() == ["athena", "glue", "iceberg", "Connected", "1", "of", "1", "–"]
    text = headgate(served, "catalog", "show", "athena").stdout
    assert "place" in text
    assert ["a.b", "ab", "Synced", "–"] in [line.split() for line in text.splitlines()]

    found = json.loads(headgate(served, "catalog", "show", "athena", "--json").stdout)
    assert (found["kind"], found["format"], found["place"]) == ("glue", "iceberg", "local")
    assert found["options"] == {"region": "eu-west-1", "names": {"a.b": "ab"}}
    assert [(one["topic"], one["name"], one["state"]) for one in found["tables"]] == [
        ("a.b", "ab", "Synced"),
        ("c", None, "Not applicable"),
    ]
    assert [event["kind"] for event in found["events"]] == ["Connected", "added"]
    assert json.loads(headgate(served, "catalog", "list", "--json").stdout)[0]["name"] == "athena"


def test_what_is_refused_changes_nothing(served: Served, integrations: Integrations) -> None:
    headgate(served, *GLUE)
    before = integrations.all()
    rest = ("catalog", "add", "rest", "r", "--uri", "https://x")
    for error, arguments in [
        (AlreadyExists, GLUE),
        (InvalidRequest, ("catalog", "add", "glue", "a/b")),
        (InvalidRequest, ("catalog", "add", "glue", "g", "--format", "delta")),
        (InvalidRequest, ("catalog", "add", "unity", "u")),
        (InvalidRequest, (*rest, "--table-name", "x")),
        (ConfigError, (*rest, "--client-id", "c", "--secret", "nobody-knows")),
        (NotFound, ("catalog", "show", "r")),
        (NotFound, ("catalog", "retry", "r")),
        (NotFound, ("catalog", "remove", "r")),
        (NotFound, ("catalog", "policy", "r")),
        (InvalidRequest, ("catalog", "policy", "athena")),
    ]:
        assert isinstance(headgate(served, *arguments).exception, error), arguments
    assert integrations.all() == before


def test_a_policy(served: Served, integrations: Integrations) -> None:
    headgate(served, *GLUE)
    found = json.loads(headgate(served, "catalog", "policy", "athena", "--account", "123456789012").stdout)
    assert found["Statement"][0]["Resource"][1] == "arn:aws:glue:eu-west-1:123456789012:database/local"


def test_remove_waits_for_the_engine(served: Served, integrations: Integrations) -> None:
    headgate(served, *GLUE)

    def engine() -> None:
        deadline = time.monotonic() + 30
        while integrations.get("athena").desired != "removed" and time.monotonic() < deadline:
            time.sleep(0.05)
        integrations.forget("athena")

    thread = threading.Thread(target=engine)
    thread.start()
    done = headgate(served, "catalog", "remove", "athena")
    thread.join()
    assert (done.exit_code, done.stdout) == (0, "athena is removed\n")
    assert integrations.all() == []


def test_remove_by_force_waits_for_nobody(served: Served, integrations: Integrations) -> None:
    headgate(served, *GLUE)
    done = headgate(served, "catalog", "remove", "athena", "--force")
    assert (done.exit_code, done.stdout) == (0, "athena is removed\n")
    assert integrations.all() == []


def test_retry_is_seen_by_the_engine(served: Served, integrations: Integrations) -> None:
    headgate(served, *GLUE)
    before = integrations.get("athena").stamp
    assert headgate(served, "catalog", "retry", "athena").exit_code == 0
    assert integrations.get("athena").stamp != before
