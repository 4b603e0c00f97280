"""`headgate apply` and its kin, up to where they need a Headgate."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from headgate.cli.main import app
from headgate.errors import HeadgateError, InvalidRequest


def refused(*arguments: str) -> str:
    result = CliRunner().invoke(app, [*arguments])
    assert isinstance(result.exception, HeadgateError), result.output
    return str(result.exception)


def test_the_json_schema_needs_no_file() -> None:
    result = CliRunner().invoke(app, ["apply", "--json-schema"])
    assert result.exit_code == 0
    assert "statements" in json.loads(result.stdout)["properties"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("apply",), "A file is wanted. Say headgate apply FILE."),
        (("plan", "nowhere.yaml"), "nowhere.yaml cannot be read: No such file or directory."),
        (("plan", "w.yaml", "--var", "x"), "'x' is no variable. Write for instance --var PARTITIONS=4."),
        (("destroy", "w.yaml"), "w.yaml names no world, so nothing is known to be its own."),
    ],
)
def test_a_mistake_is_told_before_anybody_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("w.yaml").write_text("topics: {a: }\n")
    assert said in refused(*arguments)


def test_variables_are_those_of_the_command_before_those_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from headgate.cli.desired import read_desired

    file = tmp_path / "w.yaml"
    file.write_text("world: ${NAME}\ntopics: {'${PREFIX}a': }\n")
    monkeypatch.setenv("NAME", "of-the-environment")
    monkeypatch.setenv("PREFIX", "x.")
    desired = read_desired(file, ["NAME=said"])
    assert desired["world"] == "said"
    assert desired["resources"] == [{"kind": "topics", "name": "x.a", "spec": {}, "at": f"{file}:2"}]
    with pytest.raises(InvalidRequest, match="is no variable"):
        read_desired(file, ["=x"])


def test_output_tells_buckets_catalogs_and_clients(capsys: pytest.CaptureFixture[str]) -> None:
    from headgate.cli.desired import _show_worlds

    world = {
        "world": "shop",
        "cluster": "local",
        "warehouse": "file:/data/warehouse",
        "addresses": {"kafka": "127.0.0.1:9092"},
        "topics": ["orders"],
        "statements": [],
        "exports": ["weekly"],
        "generators": [],
        "storage": [{"name": "lake", "uri": "s3://bucket/prefix"}],
        "catalogs": [{"name": "glue", "type": "glue", "state": "Connected"}],
        "clients": [{"name": "notebook", "client_id": "hg12", "grants": ["reader:local:*"]}],
        "tables": [],
    }
    _show_worlds([world])
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    for said in (
        "storage lake s3://bucket/prefix",
        "catalog glue glue, Connected",
        "client notebook hg12, reader:local:*",
        "exports weekly",
        "topics orders",
    ):
        assert said in lines
