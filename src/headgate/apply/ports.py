"""What planning and applying ask of an installation. `memory` has the doubles."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from headgate.apply.kinds import ORDER
from headgate.apply.model import Change, Live, Observed, Owner, Plan, Ref, Spec, Wanted
from headgate.apply.plan import missing_references, names_of_interest


class Part(Protocol):
    """The things of one kind, as they are.

    What changes them gives a line each time it waits, saying for what; who takes the lines decides when to
    look again. It ends when the thing stands as it should, and raises a HeadgateError when it will not. Any
    of it may be broken off between two lines, and be asked for again: it goes on from what is there.
    """

    def observe(self, names: Collection[str] | None) -> Mapping[str, Live]:
        """Those of these names that are there; all of them for None."""

    def create(self, name: str, spec: Spec) -> Iterator[str]: ...

    def change(self, name: str, spec: Spec, changes: Sequence[Change], live: Live) -> Iterator[str]: ...

    def remove(self, name: str, delete_data: bool) -> Iterator[str]:
        """One that is not there is removed already."""


class Owners(Protocol):
    """Which world has made what."""

    def all(self) -> Mapping[Ref, Owner]: ...

    def claim(self, ref: Ref, owner: Owner) -> None:
        """Before a thing is made, so that what was made by half belongs to somebody. Raises AlreadyExists
        where another world has it."""

    def release(self, ref: Ref) -> None: ...


@dataclass(frozen=True)
class Installation:
    """A Headgate, as far as files have a say in it."""

    parts: Mapping[str, Part]
    owners: Owners
    #: Raises InvalidRequest for steps that would fail, as far as that can be known before they are taken.
    check: Callable[[Plan, Observed], None] = lambda plan, observed: None

    def observe(self, wanted: Wanted) -> Observed:
        """As much of it as these need."""
        owners = self.owners.all()
        refs = names_of_interest(wanted, owners)
        names = {kind.name: [ref.name for ref in refs if ref.kind == kind.name] for kind in ORDER}
        observed = self._observed(owners, names)
        missing = missing_references(wanted.resources, observed)
        # What was probably meant is among all that are there.
        others = self._observed(owners, dict.fromkeys({ref.kind for _, ref in missing}))
        return Observed({**others.live, **observed.live}, owners)

    def observe_all(self) -> Observed:
        return self._observed(self.owners.all(), {kind.name: None for kind in ORDER})

    def _observed(self, owners: Mapping[Ref, Owner], names: Mapping[str, Collection[str] | None]) -> Observed:
        live = {
            Ref(kind, name): one
            for kind, wanted in names.items()
            if wanted is None or wanted
            for name, one in self.parts[kind].observe(wanted).items()
        }
        return Observed(live, owners)
