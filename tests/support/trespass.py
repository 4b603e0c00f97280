"""Has another user of the machine try to get at a running Headgate, and looks at what lies open."""

import json
import os
import re
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil

from headgate.embedded.folder import PIDS_FILE
from headgate.embedded.process import group_members
from tests.support import trials
from tests.support.stack import Stack
from tests.support.users import NOBODY, as_user

# What may hold settings: those who start others, and those who read them.
READERS = (
    "headgate.embedded.guard",
    "headgate.server",
    "headgate.engine",
    "headgate.query",
    "headgate.export",
)


@contextmanager
def reachable(folder: Path) -> Iterator[None]:
    """Others are let through to the folder, as they are in a home or under /var/lib."""
    with ExitStack() as restored:
        for parent in folder.absolute().parents:
            mode = stat.S_IMODE(parent.stat().st_mode)
            if not mode & 0o001:
                parent.chmod(mode | 0o011)
                restored.callback(parent.chmod, mode)
        yield


def processes(data: Path) -> list[psutil.Process]:
    groups = json.loads((data / PIDS_FILE).read_text())
    return [psutil.Process(pid) for group in groups.values() for pid in group_members(group["pid"])]


def listening(data: Path) -> dict[str, int]:
    """The ports of the Headgate on this folder, by who listens there."""
    return {
        f"{process.name()} {process.pid} port {seen.laddr.port}": seen.laddr.port
        for process in processes(data)
        for seen in process.net_connections("tcp")
        if seen.status == psutil.CONN_LISTEN
    }


def outcomes(stack: Stack, broker_is_open: bool) -> dict[str, str]:
    """What came of each trial of a user who has nothing here."""
    ports = listening(stack.data)
    server = stack.runtime.server_port
    broker = {pid.pid for pid in processes(stack.data) if "kafka.Kafka" in " ".join(pid.cmdline())}
    open_ports = [name for name in ports if broker_is_open and int(name.split()[1]) in broker]
    pids = {f"{process.name()} {process.pid}": process.pid for process in processes(stack.data)}
    facts = {
        "data": str(stack.data),
        "server": server,
        "pids": {**pids, "the supervisor": stack.popen.pid},
        # The server's own is tried route by route.
        "ports": {name: port for name, port in ports.items() if port != server},
        "open": open_ports,
    }
    code = f"{Path(trials.__file__).read_text()}\nmain(sys.stdin.readline())"
    with reachable(stack.data), as_user(NOBODY, code) as process:
        said, _ = process.communicate(json.dumps(facts) + "\n", timeout=300)
    told: dict[str, str] = json.loads(said.splitlines()[-1])
    return told


def loose(folder: Path) -> list[str]:
    """What in a folder, itself included, others may do anything with."""
    paths = [folder, *folder.rglob("*")]
    modes = {path: path.lstat().st_mode for path in paths if not path.is_symlink() and os.path.lexists(path)}
    return [f"{mode:o} {path}" for path, mode in modes.items() if stat.S_IMODE(mode) & 0o077]


def showing(data: Path, canaries: list[str]) -> list[str]:
    """The processes whose arguments have a canary, or whose environment, where they read no settings."""
    found = []
    for process in processes(data):
        try:
            arguments = process.cmdline()
            variables = Path(f"/proc/{process.pid}/environ").read_text(errors="replace")
        except (psutil.NoSuchProcess, OSError):
            continue
        reads = "-m" in arguments and arguments[arguments.index("-m") + 1] in READERS
        shown = " ".join(arguments) if reads else " ".join(arguments) + variables
        found += [f"{process.pid} {arguments[:4]}" for canary in canaries if canary in shown]
    return found


def careless(data: Path) -> dict[str, str]:
    """The processes that would make files for others, or leave their memory in a core file."""
    found = {}
    for process in processes(data):
        folder = Path(f"/proc/{process.pid}")
        try:
            limits, status = (folder / "limits").read_text(), (folder / "status").read_text()
        except OSError:
            continue
        core = re.search(r"^Max core file size\s+(\S+)", limits, re.MULTILINE)
        umask = re.search(r"^Umask:\s+(\d+)", status, re.MULTILINE)
        seen = (core and core[1], umask and umask[1])
        if seen not in (("1", "0077"), ("0", "0077")):
            found[f"{process.name()} {process.pid}"] = str(seen)
    return found
