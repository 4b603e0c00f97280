"""`headgate table alter` on the server's application: what it warns of."""

from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from typer.testing import CliRunner

from headgate.cli import table as commands
from headgate.cli.client import Client
from headgate.model import TableFormat, TableSpec
from headgate.store import Store


@pytest.mark.parametrize(
    ("spec", "kind", "is_warned"),
    [
        (TableSpec("orders"), "glue", True),
        (TableSpec("orders", format_version=2), "glue", False),
        (TableSpec("orders", formats=(TableFormat.DELTA,)), "glue", False),
        (TableSpec("orders"), "rest", False),
    ],
)
def test_version_3_is_warned_of_before_glue_has_the_table(
    client: TestClient,
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
    spec: TableSpec,
    kind: str,
    is_warned: bool,
) -> None:
    options = {"glue": {"region": "eu-west-1"}, "rest": {"uri": "http://127.0.0.1:9/iceberg"}}[kind]
    added = client.post("/api/v1/catalogs", json={"name": "outside", "kind": kind, "options": options})
    assert added.status_code == 201, added.text
    store.enable_table(spec)

    def connected(_: Path | None) -> Client:
        found = Client("http://127.0.0.1:8080/api/v1")
        monkeypatch.setattr(found, "_http", client)
        monkeypatch.setattr(found, "close", lambda: None)
        return found

    monkeypatch.setattr(commands, "connect", connected)
    done = CliRunner().invoke(commands.app, ["alter", "orders", "--freshness", "5s"])
    assert done.exit_code == 0, done.output
    said, *warnings = done.output.splitlines()
    assert said == "orders is altered: freshness"
    assert [("format version 3 and in outside" in one) for one in warnings] == [True] * is_warned
