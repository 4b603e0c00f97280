"""The `headgate` command as a user types it, and what it says when it fails."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import httpx

from headgate.embedded.folder import PIDS_FILE
from headgate.model import TableState
from tests.support.services import wait_for
from tests.support.stack import HEADGATE, Stack

# What is said meanwhile, beside the one line that says what went wrong.
QUERYING = ("starting the query driver", "the query driver is ")


def headgate(
    *arguments: str, cwd: Path | None = None, **environment: str
) -> "subprocess.CompletedProcess[bytes]":
    """In an environment that says nothing of Headgate but what it is given; nobody is there to answer."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("HEADGATE_")}
    return subprocess.run(
        [HEADGATE, *arguments],
        env={**clean, **environment},
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=300,
    )


def on(stack: Stack, *arguments: str) -> "subprocess.CompletedProcess[bytes]":
    """A command on a stack's data folder, its output as bytes."""
    return headgate(*arguments, "--data", str(stack.data))


def refusal(done: "subprocess.CompletedProcess[bytes]", *meanwhile: str, code: int = 1) -> str:
    """The one line of a command that failed. Besides, only lines that begin with one of `meanwhile`."""
    *others, line = done.stderr.decode().splitlines() or [""]
    assert done.returncode == code, (done.returncode, done.stderr)
    assert line.startswith("headgate: "), done.stderr
    assert all(other.startswith(meanwhile) for other in others), done.stderr
    said = line.removeprefix("headgate: ")
    assert len(said) > 10, f"it says nothing: {line!r}"
    return said


def refused(stack: Stack, *arguments: str, meanwhile: tuple[str, ...] = ()) -> str:
    """The one line of a command that must fail with 1 and print no result."""
    done = on(stack, *arguments)
    said = refusal(done, *meanwhile)
    assert done.stdout == b""
    return said


def wait_for_state(stack: Stack, topic: str, state: TableState) -> dict[str, Any]:
    """What `table show --json` prints, once the table is in that state."""

    def reached() -> dict[str, Any] | None:
        found = shown(stack, topic)
        return found if found["state"] == state.value else None

    found: dict[str, Any] = wait_for(f"'{topic}' to be {state.value}", reached, 60)
    return found


def shown(stack: Stack, topic: str) -> dict[str, Any]:
    """What `table show --json` prints, for less than a process."""
    # Without TLS there is nothing to verify, and to get ready for it takes twenty times as long.
    answer = httpx.get(f"{stack.runtime.api}/tables/{topic}", trust_env=False, verify=False)
    found: dict[str, Any] = answer.raise_for_status().json()
    return found


def enabled_topics(stack: Stack) -> set[str]:
    return {record.spec.topic for record in stack.store.tables()}


def groups_of(data: Path) -> dict[str, int]:
    """The process groups of a running Headgate, the supervisor's children."""
    return {name: leader["pid"] for name, leader in json.loads((data / PIDS_FILE).read_text()).items()}
