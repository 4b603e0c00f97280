"""`headgate status` and `headgate down`."""

import os
import signal
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from headgate.cli.client import DEFAULT_DATA, DataOption, JsonOption, connect, data_folder
from headgate.cli.output import age, print_fields, print_json, print_table, progress, say
from headgate.cli.statement import print_statements
from headgate.errors import TerminalError

if TYPE_CHECKING:
    from headgate.embedded.process import Identity

DOWN_SECONDS = 120.0


def status(data: DataOption = None, json: JsonOption = False) -> None:
    """Where things are and how they stand: addresses, processes, tables, statements."""
    with connect(data) as client:
        found = client.get("status")
    if json:
        print_json(found)
        return
    print_fields(
        f"headgate {found['version']}, cluster {found['cluster']}",
        [*found["addresses"].items(), ("warehouse", found["warehouse"])],
    )
    say("")
    rows = [(p["name"], p["state"], p["pid"] or "", age(p["beat_age"])) for p in found["processes"]]
    print_table("Processes", ("PROCESS", "STATE", "PID", "LAST HEARD"), rows)
    if found["tables"]:
        say("")
        print_tables(found["tables"])
    if found["statements"]:
        say("")
        print_statements(found["statements"])


def print_tables(tables: list[dict[str, Any]]) -> None:
    rows = [
        (t["topic"], t["state"], t["rows"], t["lag"], age(t["freshness"]), t["reason"] or "") for t in tables
    ]
    print_table("Tables", ("TOPIC", "STATE", "ROWS", "LAG", "FRESHNESS", "REASON"), rows)


def down(data: DataOption = None) -> None:
    """Stop all parts. Returns when nothing of the Headgate on this data folder runs any more."""
    from headgate.embedded.run_file import supervisor_of

    folder = data_folder(data) or DEFAULT_DATA.absolute()
    supervisor = supervisor_of(folder)
    try:
        # One that ends by itself meanwhile is what was asked for.
        with suppress(ProcessLookupError):
            os.kill(supervisor.pid, signal.SIGTERM)
    except PermissionError as error:
        raise TerminalError(f"Headgate (pid {supervisor.pid}) belongs to another user.") from error
    _wait_until_gone(supervisor)
    say("stopped")


def _wait_until_gone(supervisor: "Identity") -> None:
    deadline = time.monotonic() + DOWN_SECONDS
    with progress(f"stopping (pid {supervisor.pid})"):
        while supervisor.alive:
            if time.monotonic() > deadline:
                raise TerminalError(
                    f"Headgate (pid {supervisor.pid}) has not stopped within {DOWN_SECONDS:.0f} s.",
                    f"`kill {supervisor.pid}` once more hurries it.",
                )
            time.sleep(0.1)
