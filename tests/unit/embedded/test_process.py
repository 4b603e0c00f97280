"""Who a pid is, and the end of a group."""

import os
import subprocess
import time
from collections.abc import Iterator

import pytest

from headgate.embedded.process import Identity, end_group, group_members, is_group_of, kill_group

# Has a child in its group; the group's leader does not reap, as a pid 1 that never does.
FAMILY = ["sh", "-c", "sleep 1000 & echo up; exec sleep 1000"]
STUBBORN = ["sh", "-c", "trap '' TERM; echo up; while :; do sleep 1000; done"]


def start(command: list[str]) -> "subprocess.Popen[bytes]":
    process = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"
    return process


@pytest.fixture
def family() -> Iterator["subprocess.Popen[bytes]"]:
    process = start(FAMILY)
    yield process
    kill_group(process.pid)
    process.communicate()


def test_a_process_is_known_by_pid_and_start() -> None:
    own = Identity.own()

    assert own == Identity.of(os.getpid())
    assert own.alive
    assert not Identity(own.pid, own.started + "0").alive
    assert Identity.from_dict(own.to_dict()) == own


def test_one_that_has_ended_is_nobody_even_before_it_is_reaped() -> None:
    process = subprocess.Popen(["true"])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)

    assert Identity.of(process.pid) is None
    process.wait()
    assert Identity.of(process.pid) is None


def test_a_group_is_ended_whole(family: "subprocess.Popen[bytes]") -> None:
    assert len(group_members(family.pid)) == 2

    assert end_group(family.pid, grace=5)

    assert group_members(family.pid) == []


def test_what_does_not_mind_sigterm_is_killed_after_the_grace() -> None:
    process = start(STUBBORN)
    started = time.monotonic()

    assert end_group(process.pid, grace=0.2)

    assert time.monotonic() - started >= 0.2
    assert group_members(process.pid) == []
    process.communicate()


def test_a_group_is_known_while_its_leader_lives_and_after(family: "subprocess.Popen[bytes]") -> None:
    leader = Identity.of(family.pid)
    assert leader is not None
    assert is_group_of(family.pid, leader)
    assert not is_group_of(family.pid, Identity(leader.pid, "another start"))

    family.kill()
    family.wait()

    assert len(group_members(family.pid)) == 1
    assert is_group_of(family.pid, leader)
    assert kill_group(family.pid)
    assert not is_group_of(family.pid, leader)


def test_a_group_that_is_gone_is_ended_already() -> None:
    process = subprocess.Popen(["true"], start_new_session=True)
    process.wait()

    assert end_group(process.pid, grace=0)
