"""Settings as admins see them: with where each comes from, and without any secret."""

from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from headgate.access.credentials import Credentials
from headgate.access.roles import Grant, Role
from headgate.config import load_settings, secret_keys, setting_sources
from headgate.server.api.settings import settings_shown
from headgate.store import Store

FILE = """
ports: {server: 8081}
registry: {url: "https://ada:canary-1@registry.example"}
catalog:
  uri: https://lake.example
  properties: {credential: "canary-2"}
spark: {properties: {spark.hadoop.fs.s3a.secret.key: canary-3}}
limits: {reader: {rows: 7}}
secrets_file: {salt: /etc/salt}
tables: [{match: "shop.*"}]
"""
ENVIRONMENT = {
    "HEADGATE_PORTS__BROKER": "0",
    "HEADGATE_SECRETS__PHONE": "canary-4",
    "HEADGATE_STORE__URL": "postgresql://bob:canary-5@db.example/control?password=canary-6",
    "HEADGATE_LIMITS__READER__ROWS": "8",
    "HEADGATE_URL": "http://elsewhere.example",
}


@pytest.fixture
def shown(tmp_path: Path) -> dict[str, dict[str, Any]]:
    file = tmp_path / "headgate.yaml"
    file.write_text(FILE)
    settings = load_settings(file, ENVIRONMENT, tmp_path / "data")
    return {one["key"]: one for one in settings_shown(settings, setting_sources(file, ENVIRONMENT))}


@pytest.mark.parametrize(
    ("key", "value", "source"),
    [
        ("ports.server", 8081, "file"),
        ("ports.broker", 0, "environment"),
        ("ports.connect", 15002, "default"),
        ("limits.reader.rows", 8, "environment"),
        ("registry.url", "https://registry.example", "file"),
        ("store.url", "postgresql://db.example/control?…", "environment"),
        ("secrets_file", {"salt": "/etc/salt"}, "file"),
        ("catalog.locations", [], "default"),
    ],
)
def test_setting_has_its_value_and_its_source(
    shown: dict[str, dict[str, Any]], key: str, value: object, source: str
) -> None:
    assert (shown[key]["value"], shown[key]["source"], shown[key]["secret"]) == (value, source, False)


def test_secret_is_named_and_not_shown(shown: dict[str, dict[str, Any]]) -> None:
    for key, source in (
        ("secrets.phone", "environment"),
        ("catalog.properties.credential", "file"),
        ("spark.properties.spark.hadoop.fs.s3a.secret.key", "file"),
        ("kafka.security.password", "default"),
    ):
        assert (shown[key]["value"], shown[key]["source"], shown[key]["secret"]) == (None, source, True)
    assert "canary" not in str(shown)


def test_every_setting_is_there(shown: dict[str, dict[str, Any]], tmp_path: Path) -> None:
    assert {".".join(path) for path in secret_keys()} - {"secrets"} <= set(shown)
    assert shown["data"]["source"] == "command"
    assert shown["tables"]["value"][0]["match"] == "shop.*"
    assert len(shown) > 80


def test_settings_are_for_admins_of_everything(client: TestClient, store: Store) -> None:
    answer = client.get("/api/v1/settings")
    assert answer.status_code == 200
    assert "ports.server" in {one["key"] for one in answer.json()}
    made, key = Credentials(store.engine).create("narrow", [Grant(Role.ADMIN, "local")])
    assert client.get("/api/v1/settings", auth=(made.client_id, key)).status_code == 403
