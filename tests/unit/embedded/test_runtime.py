"""What run.json holds, and how it is read again."""

import json
from pathlib import Path
from typing import Any

import pytest

from headgate.config import Settings, load_settings
from headgate.embedded.process import Identity
from headgate.embedded.run_file import RUN_FILE, read_run, supervisor_of
from headgate.embedded.runtime import Runtime, without_password
from headgate.errors import NotRunning


def runtime_of(settings: Settings, **options: Any) -> Runtime:
    settings.data.mkdir(parents=True, exist_ok=True)
    return Runtime.of(settings, server_port=1080, connect_port=1502, broker_port=1092, **options)


def test_addresses_of_the_embedded_parts(settings: Settings) -> None:
    assert runtime_of(settings).addresses == {
        "kafka": "127.0.0.1:1092",
        "registry": "http://127.0.0.1:1080/registry",
        "iceberg": "http://127.0.0.1:1080/iceberg",
        "api": "http://127.0.0.1:1080/api/v1",
        "console": "http://127.0.0.1:1080/",
    }


def test_what_was_written_is_what_is_loaded(settings: Settings, tmp_path: Path) -> None:
    config = tmp_path / "headgate.yaml"
    config.write_text("cluster: {name: mine}")
    settings = load_settings(config, {}, settings.data)
    runtime = runtime_of(settings, config=config, supervisor=Identity.own())

    runtime.write()

    assert Runtime.load(settings.data, environment={}) == runtime
    assert read_run(settings.data)["cluster"] == "mine"


def test_a_url_replaces_the_embedded_part_and_its_password_is_not_written(tmp_path: Path) -> None:
    environment = {
        "HEADGATE_KAFKA__BOOTSTRAP": "kafka.example:9092",
        "HEADGATE_REGISTRY__URL": "https://me:hush@registry.example/sr",
        "HEADGATE_CATALOG__URI": "https://me:hush@catalog.example/api",
        "HEADGATE_CATALOG__PROPERTIES": '{"credential": "hush"}',
        "HEADGATE_STORE__URL": "postgresql://me:hush@db.example/headgate",
    }
    properties = {"credential": "hush"}
    settings = load_settings(
        environment={k: v for k, v in environment.items() if "PROPERTIES" not in k}, data=tmp_path
    )
    catalog = settings.catalog.model_copy(update={"properties": properties, "warehouse": "sales"})
    settings = settings.model_copy(update={"catalog": catalog})

    runtime = runtime_of(settings)
    runtime.write()

    assert runtime.kafka == "kafka.example:9092"
    assert runtime.registry == "https://me:hush@registry.example/sr"
    assert runtime.warehouse == "sales"
    assert "hush" not in (tmp_path / RUN_FILE).read_text()
    assert (tmp_path / RUN_FILE).stat().st_mode & 0o777 == 0o600
    assert runtime.addresses["registry"] == "https://registry.example/sr"


def test_without_a_run_nothing_runs(tmp_path: Path) -> None:
    with pytest.raises(NotRunning, match=str(tmp_path)):
        Runtime.load(tmp_path)


def test_a_run_whose_supervisor_is_gone_is_not_running(settings: Settings) -> None:
    own = Identity.own()
    runtime_of(settings, supervisor=own).write()
    assert supervisor_of(settings.data) == own

    # The same pid, but of a process that started at another time.
    runtime_of(settings, supervisor=Identity(own.pid, "long ago")).write()
    with pytest.raises(NotRunning):
        supervisor_of(settings.data)


def test_writing_again_leaves_one_whole_file(settings: Settings) -> None:
    for _ in range(2):
        runtime_of(settings).write()

    assert [file.name for file in settings.data.iterdir()] == [RUN_FILE]
    assert json.loads((settings.data / RUN_FILE).read_text())["ports"] == {"server": 1080, "connect": 1502}


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://me:pass@host:80/x?y=1", "https://host:80/x?y=1"),
        ("http://host/", "http://host/"),
        ("file:///data/warehouse", "file:///data/warehouse"),
        ("s3://bucket/path", "s3://bucket/path"),
    ],
)
def test_passwords_are_taken_out(url: str, shown: str) -> None:
    assert without_password(url) == shown
