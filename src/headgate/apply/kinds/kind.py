"""The interface of a kind: what a file may say of a thing, and how that differs from what is there. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from headgate.apply.model import Change, Difference, Live, Owner, Ref, Spec
from headgate.errors import InvalidRequest


class Kind(Protocol):
    #: As files name it.
    name: str
    #: What goes with a thing of this kind that is removed; empty where nothing does.
    holds: str
    #: The command that makes one, where files only change those that are there.
    made_by: str = ""

    def check(self, name: str, spec: Spec) -> None:
        """Raises InvalidRequest for what cannot be, whatever is there."""

    def reads(self, name: str, spec: Spec) -> Iterable[Ref]:
        """What must be there before it."""
        return ()

    def writes(self, name: str, spec: Spec) -> Iterable[Ref]:
        """What it puts rows into: who reads that comes after it."""
        return ()

    def makes(self, name: str, spec: Spec) -> Iterable[Ref]:
        """What is there with it, though no file names it."""
        return ()

    def secrets(self, name: str, spec: Spec) -> Iterable[str]:
        """The names of the secrets that it takes from the configuration."""
        return ()

    def note(self, name: str, spec: Spec, live: Live) -> str:
        """What a plan tells of a thing that is as wanted; empty where there is nothing to tell."""
        return ""

    def difference(self, name: str, spec: Spec, live: Live, owner: Owner | None) -> Difference | None:
        """None where it is as wanted. `owner` is given where a world made it: what its file said before and
        does not say now goes back to its default."""


def compare_fields(
    wanted: Mapping[str, Any], there: Mapping[str, Any], said_before: Iterable[str] = (), prefix: str = ""
) -> list[Change]:
    """The fields that are said and differ, and those that were said before and are not now."""
    changes = [
        Change(prefix + field, there.get(field), value)
        for field, value in wanted.items()
        if there.get(field) != value
    ]
    gone = [field for field in said_before if field not in wanted and there.get(field) is not None]
    return changes + [Change(prefix + field, there[field], None) for field in gone]


def replaced_whole(wanted: Spec, live: Live, owner: Owner | None, lost: str) -> Difference | None:
    """The difference of a kind that has no way to change in place."""
    before = owner.spec if owner is not None else {}
    changes = compare_fields(wanted, live.spec, before)
    return Difference(tuple(changes), lost=lost) if changes else None


def check_name(kind: str, name: str) -> None:
    if not name or name != name.strip():
        raise InvalidRequest(f"'{name}' cannot be a name under {kind}.", "Write it without blanks around it.")
