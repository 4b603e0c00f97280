"""`run.json` in the data folder: where a Headgate runs. Who reads it need not know of Kafka."""

import json
from pathlib import Path
from typing import Any

from headgate.embedded.privacy import write_private
from headgate.embedded.process import Identity
from headgate.errors import NotAllowed, NotRunning

RUN_FILE = "run.json"


def read_run(data: Path) -> dict[str, Any]:
    """What `run.json` says, without the settings."""
    try:
        found: dict[str, Any] = json.loads((data / RUN_FILE).read_text())
    except FileNotFoundError as error:
        raise not_running(data) from error
    except PermissionError as error:
        raise NotAllowed(
            f"The data folder {data} is of another user.",
            "Use a credential that its user makes: set HEADGATE_URL, HEADGATE_CLIENT_ID and "
            "HEADGATE_CLIENT_SECRET.",
        ) from error
    return found


def supervisor_of(data: Path) -> Identity:
    """The supervisor that runs on this data folder now. A `run.json` that outlived its writer is no sign."""
    run = read_run(data)
    found = None if run["supervisor"] is None else Identity.from_dict(run["supervisor"])
    if found is None or not found.alive:
        raise not_running(data)
    return found


def not_running(data: Path) -> NotRunning:
    return NotRunning(
        f"No Headgate runs on the data folder {data}.",
        "Start it with `headgate up`, or name another folder with --data.",
    )


def write_json(file: Path, content: object) -> None:
    """Replace a small file at once: a reader sees the old one or the new one."""
    write_private(file, json.dumps(content, indent=2) + "\n")
