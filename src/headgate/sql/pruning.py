"""Which columns a plan speaks of. What keeps whole rows in its state keeps no others."""

import re
from collections.abc import Iterator
from dataclasses import is_dataclass

from headgate.sql.operators import Operator, ProjectRows, ScanRows
from headgate.sql.typed import Typed

_QUOTED = re.compile(r"`((?:[^`]|``)+)`")


def mentioned(root: Operator, down_to: Operator | None = None) -> frozenset[str]:
    """Every reference that some step uses. One that is only passed on is not among them: no result has it."""
    found: set[str] = set()
    for step in _above(root, down_to):
        if isinstance(step, ScanRows):
            continue
        for name, part in vars(step).items():
            if not (isinstance(step, ProjectRows) and name == "kept"):
                _collect(part, found)
    return frozenset(found)


def _above(root: Operator, down_to: Operator | None) -> Iterator[Operator]:
    """The steps from the root down to one: those that stand above it, and that one."""
    if down_to is None:
        yield from root.walk()
        return
    below = {id(down_to): True}
    for step in root.walk():
        if _holds(step, below):
            yield step


def _holds(step: Operator, below: dict[int, bool]) -> bool:
    """Whether the step is one of those that are known to be looked for, or stands above one."""
    if id(step) not in below:
        below[id(step)] = any(_holds(one, below) for one in step.inputs)
    return below[id(step)]


def _collect(part: object, found: set[str]) -> None:
    if isinstance(part, Typed):
        found.update(name.replace("``", "`") for name in _QUOTED.findall(part.sql))
    elif isinstance(part, str):
        found.add(part)
    elif isinstance(part, list | tuple):
        for one in part:
            _collect(one, found)
    elif is_dataclass(part) and not isinstance(part, Operator):
        _collect(list(vars(part).values()), found)
