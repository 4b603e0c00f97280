"""How much memory is left for another process: of the machine, and of this one's control groups."""

import re
from collections.abc import Iterator
from pathlib import Path

PROC, GROUPS = Path("/proc"), Path("/sys/fs/cgroup")
# Above this a limit is none: version 1 says a number near 2^63.
_UNLIMITED = 1 << 60
# What a driver takes beside its heap: classes, compiled code, threads, buffers, and the Python process.
BESIDE_HEAP = 1024**3
_HEAP = re.compile(r"(\d+)([kmgt]?)b?", re.IGNORECASE)
# Spark takes a number alone for mebibytes.
_BITS = {"": 20, "k": 10, "m": 20, "g": 30, "t": 40}


def available_bytes(proc: Path = PROC, groups: Path = GROUPS) -> int | None:
    """The least of what the machine and each control group leave; None where that is not told."""
    machine = _meminfo(proc / "meminfo")
    if machine is None:
        return None
    return min([machine, *_left_of_groups(proc / "self" / "cgroup", groups)])


def driver_bytes(heap: str) -> int:
    """What a driver with this heap may take, written as Spark takes it: 2g, 1500m."""
    match = _HEAP.fullmatch(heap.strip())
    if match is None:
        raise ValueError(f"'{heap}' is no size")
    return (int(match[1]) << _BITS[match[2].lower()]) + BESIDE_HEAP


def _meminfo(file: Path) -> int | None:
    try:
        found = re.search(r"^MemAvailable:\s+(\d+) kB", file.read_text(), re.MULTILINE)
    except OSError:
        return None
    return None if found is None else int(found[1]) * 1024


def _left_of_groups(own: Path, groups: Path) -> Iterator[int]:
    """Of the process's own group and of all above it, for both versions of control groups."""
    try:
        lines = own.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers:
            root, names = groups, ("memory.max", "memory.current")
        elif "memory" in controllers.split(","):
            root, names = groups / "memory", ("memory.limit_in_bytes", "memory.usage_in_bytes")
        else:
            continue
        inner = root / path.lstrip("/")
        for folder in (inner, *inner.parents):
            if folder == root or root in folder.parents:
                left = _left_of(folder, *names)
                if left is not None:
                    yield left


def _left_of(folder: Path, limit_name: str, usage_name: str) -> int | None:
    limit, usage = (_number(folder / name) for name in (limit_name, usage_name))
    if limit is None or usage is None or limit >= _UNLIMITED:
        return None
    # Pages of files that were read once are given back when somebody needs them.
    return max(0, limit - usage + _inactive_file(folder / "memory.stat"))


def _number(file: Path) -> int | None:
    try:
        text = file.read_text().strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None


def _inactive_file(file: Path) -> int:
    try:
        found = re.search(r"^(?:total_)?inactive_file (\d+)", file.read_text(), re.MULTILINE)
    except OSError:
        return 0
    return 0 if found is None else int(found[1])
