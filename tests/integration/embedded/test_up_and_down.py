"""A supervisor in a process of its own: asked to stop, killed, and started again."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from headgate.embedded.folder import LOCK_FILE, PIDS_FILE, DataFolder
from headgate.embedded.ports import LOOPBACK
from headgate.embedded.process import Identity, group_members
from headgate.embedded.run_file import RUN_FILE, supervisor_of
from headgate.errors import DataFolderInUse, NotRunning
from tests.integration.embedded.conftest import wait_until
from tests.integration.embedded.programs import PROGRAM

HEADGATE = str(Path(sys.executable).parent / "headgate")


def started(data: Path) -> "subprocess.Popen[str]":
    process = subprocess.Popen(
        [sys.executable, PROGRAM, "supervisor", str(data)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    said = [line for line in iter(process.stdout.readline, "READY\n") if line]
    assert said, "it says what it does before it is ready"
    return process


@pytest.fixture
def process(data: Path) -> Iterator["subprocess.Popen[str]"]:
    process = started(data)
    yield process
    assert process.stdout is not None
    if process.poll() is None:
        process.terminate()
    process.stdout.read()
    process.wait(timeout=20)
    process.stdout.close()


def groups_in(data: Path) -> list[int]:
    return [leader["pid"] for leader in json.loads((data / PIDS_FILE).read_text()).values()]


def test_down_ends_all_and_leaves_nothing(data: Path, process: "subprocess.Popen[str]") -> None:
    groups = groups_in(data)
    assert [len(group_members(group)) for group in groups] == [3, 3]

    done = subprocess.run([HEADGATE, "down", "--data", str(data)], capture_output=True, text=True, check=True)

    assert done.stdout == "stopped\n"
    assert process.wait(timeout=5) == 0
    assert [group_members(group) for group in groups] == [[], []]
    assert not (data / RUN_FILE).exists()
    assert groups_in(data) == []


def test_ctrl_c_is_a_stop_like_any_other(data: Path, process: "subprocess.Popen[str]") -> None:
    groups = groups_in(data)

    process.send_signal(signal.SIGINT)

    assert process.wait(timeout=20) == 0
    assert [group_members(group) for group in groups] == [[], []]


def test_a_second_one_on_the_same_folder_is_refused(data: Path, process: "subprocess.Popen[str]") -> None:
    with pytest.raises(DataFolderInUse, match=f"pid {process.pid}"), DataFolder.taken(data):
        pass

    assert supervisor_of(data).pid == process.pid


def test_up_on_a_folder_in_use_fails_with_one_line(data: Path, process: "subprocess.Popen[str]") -> None:
    done = subprocess.run(
        [HEADGATE, "up", "--data", str(data)], capture_output=True, text=True, check=False, cwd=data
    )

    assert done.returncode == 1
    assert f"with pid {process.pid}" in done.stderr.splitlines()[-1]


def test_up_names_a_port_that_is_taken_before_anything_is_started(data: Path, tmp_path: Path) -> None:
    config = tmp_path / "headgate.yaml"
    with socket.create_server((LOOPBACK, 0)) as server:
        port = server.getsockname()[1]
        config.write_text(f"ports: {{server: {port}, broker: 0, connect: 0}}")
        done = subprocess.run(
            [HEADGATE, "up", "--config", str(config), "--data", str(data)],
            capture_output=True,
            text=True,
            check=False,
        )

    assert done.returncode == 1
    assert f"Port {port} (ports.server) is taken" in done.stderr.splitlines()[-1]
    assert {file.name for file in data.iterdir()} == {LOCK_FILE, PIDS_FILE}


def test_no_child_outlives_a_supervisor_that_is_killed(data: Path, process: "subprocess.Popen[str]") -> None:
    groups = groups_in(data)

    process.kill()

    wait_until(lambda: not any(group_members(group) for group in groups))
    assert (data / RUN_FILE).exists(), "nobody was there to remove it"
    with pytest.raises(NotRunning):
        supervisor_of(data)


def test_what_a_killed_run_left_behind_is_ended_by_the_next(
    data: Path, process: "subprocess.Popen[str]"
) -> None:
    groups = groups_in(data)
    process.kill()
    for group in groups:
        os.kill(group, signal.SIGKILL)
    sleepers = [Identity.of(int((data / f"{name}.sleeper").read_text())) for name in ("first", "second")]
    process.wait()
    assert all(sleeper is not None and sleeper.alive for sleeper in sleepers), "the guards could not end them"

    again = started(data)
    try:
        assert not any(sleeper is not None and sleeper.alive for sleeper in sleepers)
        assert not any(group_members(group) for group in groups)
    finally:
        again.terminate()
        again.communicate(timeout=20)
    assert again.returncode == 0


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can tie a process to its parent")
def test_a_program_does_not_outlive_its_guard(data: Path, process: "subprocess.Popen[str]") -> None:
    guard = groups_in(data)[0]
    program = Identity.of(int((data / "first.pid").read_text()))
    assert program is not None

    process.send_signal(signal.SIGSTOP)
    try:
        os.kill(guard, signal.SIGKILL)
        wait_until(lambda: not program.alive)
    finally:
        process.send_signal(signal.SIGCONT)
