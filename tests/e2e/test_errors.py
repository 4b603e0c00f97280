"""What goes wrong is said in one line that names it, with exit code 1; nothing is changed."""

import os
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from headgate.embedded.ports import LOOPBACK, free_port
from headgate.embedded.run_file import RUN_FILE
from tests.e2e.commands import enabled_topics, headgate, on, refusal, refused
from tests.e2e.feed import Feed
from tests.support.services import wait_for
from tests.support.stack import HEADGATE, PORTS, Stack


@pytest.fixture(scope="module")
def topic(stack: Stack) -> str:
    """A topic that could be a table."""
    return Feed(stack.runtime, "errors.topic").topic


@pytest.mark.parametrize("command", ["show", "sync", "suspend", "resume", "disable"])
def test_a_table_that_is_not_there(stack: Stack, command: str) -> None:
    said = refused(stack, "table", command, "errors.nowhere")
    assert "no table for topic 'errors.nowhere'" in said
    assert "headgate table enable errors.nowhere" in said


def test_a_topic_that_is_not_there(stack: Stack) -> None:
    said = refused(stack, "table", "enable", "errors.nowhere")
    assert "no topic 'errors.nowhere'" in said
    assert "headgate topic create errors.nowhere" in said
    assert "errors.nowhere" not in enabled_topics(stack)


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--formats", "paimon", "The format 'paimon' is not supported. Supported now: iceberg, delta."),
        ("--formats", "iceberg,hudi", "The format 'hudi' is not supported."),
        ("--mode", "merge", "The mode 'merge' is not supported. Supported now: auto, append, upsert, scd2."),
        ("--on-error", "no", "The error policy 'no' is not supported. Supported now: suspend, skip, log."),
        ("--freshness", "soon", "'soon' is not a duration."),
        ("--freshness", "0.5s", "0.5"),
    ],
)
def test_an_option_that_is_not_supported_is_named(
    stack: Stack, topic: str, option: str, value: str, said: str
) -> None:
    assert said in refused(stack, "table", "enable", topic, option, value)
    assert topic not in enabled_topics(stack)


@pytest.mark.parametrize(
    "arguments",
    [
        ("status",),
        ("down",),
        ("table", "list"),
        ("table", "enable", "orders"),
        ("topic", "list"),
        ("topic", "consume", "orders"),
        ("datagen", "orders", "--limit", "1"),
        ("query", "SELECT 1"),
    ],
)
def test_nothing_runs_here(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    done = headgate(*arguments, "--data", str(tmp_path))
    assert refusal(done) == (
        f"No Headgate runs on the data folder {tmp_path}. "
        "Start it with `headgate up`, or name another folder with --data."
    )
    assert done.stdout == b""
    assert list(tmp_path.iterdir()) == []


def test_the_default_folder_is_here(tmp_path: Path) -> None:
    assert f"data folder {tmp_path / '.headgate'}." in refusal(headgate("status", cwd=tmp_path))


def test_a_server_that_does_not_answer(tmp_path: Path) -> None:
    url = f"http://{LOOPBACK}:{free_port()}"
    said = refusal(headgate("status", cwd=tmp_path, HEADGATE_URL=url))
    assert url in said
    assert "HEADGATE_URL" in said


def test_a_second_up_is_refused(stack: Stack) -> None:
    run = (stack.data / RUN_FILE).read_text()
    done = headgate("up", "--data", str(stack.data), cwd=None, **PORTS)
    said = refusal(done, "starting")
    assert f"{stack.data} is in use" in said
    assert f"pid {stack.popen.pid}" in said
    assert (stack.data / RUN_FILE).read_text() == run
    assert stack.json("status")["addresses"] == stack.runtime.addresses


@pytest.mark.parametrize("part", ["server", "broker"])
def test_a_port_that_is_taken(tmp_path: Path, part: str) -> None:
    with socket.create_server((LOOPBACK, 0)) as other:
        port = other.getsockname()[1]
        ports = PORTS | {f"HEADGATE_PORTS__{part.upper()}": str(port)}
        done = headgate("up", "--data", str(tmp_path / "data"), cwd=tmp_path, **ports)
    assert f"Port {port} (ports.{part}) is taken" in refusal(done, "starting")
    assert done.stdout == b""
    assert not (tmp_path / "data" / RUN_FILE).exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ports: {sever: 1}", "unknown key 'ports.sever'. Did you mean 'server'?"),
        ("kafak: {bootstrap: 'x:1'}", "unknown key 'kafak'. Did you mean 'kafka'?"),
        ("ports: {server: many}", "'ports.server'"),
        ("ports: 8080", "'ports'"),
        ("- ports", "must hold keys and values"),
        ("ports: {server: 1", "is not valid YAML"),
    ],
)
def test_a_configuration_that_says_nothing_to_run(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "own.yaml"
    file.write_text(text)
    done = headgate("up", "--config", str(file), "--data", str(tmp_path / "data"), cwd=tmp_path)
    line = refusal(done)
    assert said in line
    assert str(file) in line
    assert list(tmp_path.iterdir()) == [file], "nothing was begun"


def test_an_unknown_variable(tmp_path: Path) -> None:
    done = headgate("up", "--data", str(tmp_path / "data"), cwd=tmp_path, HEADGATE_PORTS__SEVER="1")
    assert "unknown key 'ports.sever'. Did you mean 'server'?" in refusal(done)
    assert list(tmp_path.iterdir()) == []


def test_a_configuration_file_that_is_not_there(tmp_path: Path) -> None:
    missing = tmp_path / "missing.yaml"
    assert str(missing) in refusal(headgate("up", "--config", str(missing), cwd=tmp_path))


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("table", "enable", "orders", "--form", "earliest"), b"--form"),
        (("tabel", "list"), b"tabel"),
        (("datagen", "weather"), b"weather"),
        (("datagen", "orders", "--limit", "0"), b"--limit"),
    ],
)
def test_a_wrong_command_line_is_another_exit_code(arguments: tuple[str, ...], named: bytes) -> None:
    done = headgate(*arguments)
    assert (done.returncode, done.stdout) == (2, b"")
    assert named in done.stderr
    assert b"Traceback" not in done.stderr


def test_ctrl_c_while_a_command_waits(stack: Stack) -> None:
    waiting = Feed(stack.runtime, "errors.waiting", schema=False)
    waiting.send_bytes(0, b"so that there is something to wait for")
    on(stack, "table", "enable", waiting.topic)
    with subprocess.Popen(
        [HEADGATE, "table", "sync", waiting.topic, "--data", str(stack.data)],
        env={k: v for k, v in os.environ.items() if not k.startswith("HEADGATE_")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        wait_for("the request", lambda: stack.store.table(waiting.topic).sync_request, 60)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (130, b""), err
    assert b"Traceback" not in err
    stack.run("table", "disable", waiting.topic)
