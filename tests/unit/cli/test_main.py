"""The frame of the command line: exit codes, one clear line, `--data` anywhere, a fast start."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from headgate import __version__
from headgate.cli import main
from headgate.cli.main import app
from headgate.errors import NotRunning

HEAVY = (
    "pyspark",
    "confluent_kafka",
    "fastapi",
    "sqlalchemy",
    "pydantic",
    "httpx",
    "pyarrow",
    "rich.console",
)


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("command", [["status"], ["down"], ["table", "list"], ["table", "show", "orders"]])
def test_data_is_taken_before_and_after_the_command(command: list[str], before: bool, tmp_path: Path) -> None:
    option = ["--data", str(tmp_path)]

    result = CliRunner().invoke(app, [*option, *command] if before else [*command, *option])

    assert isinstance(result.exception, NotRunning)
    assert str(tmp_path) in str(result.exception)


def test_after_the_command_wins(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["--data", "elsewhere", "status", "--data", str(tmp_path)])

    assert str(tmp_path) in str(result.exception)


def test_version() -> None:
    assert CliRunner().invoke(app, ["--version"]).output == f"headgate {__version__}\n"


def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    code = "from headgate.cli.main import run; run()"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False
    )


def test_an_error_is_one_line_and_exit_code_1(tmp_path: Path) -> None:
    done = run("status", "--data", str(tmp_path))

    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("headgate: No Headgate runs on")
    assert len(done.stderr.splitlines()) == 1


def test_a_wrong_setting_is_one_line_too(tmp_path: Path) -> None:
    config = tmp_path / "headgate.yaml"
    config.write_text("prots: {}")

    done = run("up", "--config", str(config), "--data", str(tmp_path))

    assert done.returncode == 1
    assert "Did you mean 'ports'?" in done.stderr.splitlines()[-1]


def test_a_wrong_option_is_exit_code_2() -> None:
    assert run("status", "--colour").returncode == 2


def fails() -> None:
    raise KeyError("surprise")


@pytest.mark.parametrize("debug", [True, False])
def test_what_nobody_foresaw_is_one_line_and_exit_code_70(
    debug: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(main, "app", fails)
    monkeypatch.setenv("HEADGATE_DEBUG", "1" if debug else "")

    with pytest.raises(SystemExit) as exit_:
        main.run()

    assert exit_.value.code == 70
    said = capsys.readouterr().err
    assert "KeyError: 'surprise'" in said.splitlines()[-1]
    assert ("Traceback" in said) is debug


def test_an_interrupt_is_exit_code_130(tmp_path: Path) -> None:
    code = (
        "import headgate.cli.status as s, headgate.cli.main as m\n"
        "def connect(data): raise KeyboardInterrupt\n"
        "s.connect = connect\n"
        "m.run()"
    )
    done = subprocess.run([sys.executable, "-c", code, "status"], capture_output=True, text=True, check=False)

    assert done.returncode == 130
    assert "Traceback" not in done.stderr


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "from headgate.cli.main import app\n"
        "app(['--help'], standalone_mode=False)\n"
        f"print('loaded:', *[name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.splitlines()[-1] == "loaded:"


def commands(command: Any, name: str = "headgate") -> Iterator[tuple[str, Any]]:
    context = typer.Context(command)
    if not hasattr(command, "list_commands"):
        yield name, command
        return
    for each in command.list_commands(context):
        yield from commands(command.get_command(context, each), f"{name} {each}")


def test_no_option_of_a_command_has_two_meanings() -> None:
    """The later one would silently take what was said to the other: a snapshot was the name of a file."""
    known = dict(commands(typer.main.get_command(app)))
    assert "headgate table changes" in known
    for name, command in known.items():
        said = [option for one in command.params for option in (*one.opts, *one.secondary_opts)]
        options = [option for option in said if option.startswith("-")]
        assert sorted(set(options)) == sorted(options), name
