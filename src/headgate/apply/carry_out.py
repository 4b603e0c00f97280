"""Takes the steps of a plan, one after the other, each until its thing stands."""

import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import assert_never

from headgate.apply.kinds import KINDS
from headgate.apply.model import ChangeInPlace, Create, Owner, Plan, Release, Remove, Replace, Step, Wanted
from headgate.apply.plan import needs_delete_data
from headgate.apply.ports import Installation
from headgate.errors import HeadgateError, InvalidRequest, NotStanding

POLL_SECONDS = 0.5
# A statement that takes over reads all that the one before had read.
STEP_SECONDS = 1800.0


@dataclass(frozen=True)
class Begun:
    """A step is taken."""

    number: int


@dataclass(frozen=True)
class Waiting:
    """What a step waits for."""

    number: int
    text: str


@dataclass(frozen=True)
class Done:
    """A step's thing stands."""

    number: int


@dataclass(frozen=True)
class Stopped:
    """A step has failed: those before it are done, it and those after it are not."""

    number: int
    error: HeadgateError


@dataclass(frozen=True)
class Ended:
    """All steps are done."""


Event = Begun | Waiting | Done | Stopped | Ended


def carry_out(
    plan: Plan,
    wanted: Wanted,
    installation: Installation,
    *,
    delete_data: bool = False,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Generator[Event, None, None]:
    """Events as they come. It ends after the last step, or after the first that fails."""
    refuse_losses(plan, delete_data)
    for number, step in enumerate(plan.steps):
        yield Begun(number)
        deadline = clock() + STEP_SECONDS
        try:
            for text in _take(step, plan.world, installation):
                yield Waiting(number, text)
                if clock() > deadline:
                    raise NotStanding(
                        f"{step.ref} does not stand after {STEP_SECONDS:.0f} s: {text}.",
                        "Apply again to go on.",
                    )
                sleep(POLL_SECONDS)
        except HeadgateError as error:
            yield Stopped(number, error)
            return
        yield Done(number)
    _remember(wanted, installation)
    yield Ended()


def refuse_losses(plan: Plan, delete_data: bool) -> None:
    """Raises InvalidRequest where a step would lose data that nobody gave up."""
    for step in plan.steps:
        if isinstance(step, Replace) and needs_delete_data(step) and not delete_data:
            raise InvalidRequest(
                f"To change {step.ref} ({', '.join(change.field for change in step.changes)}) it must be "
                f"made again, which loses {step.lost}.",
                "Say --delete-data to mean it, or leave the field as it is.",
            )


def _take(step: Step, world: str | None, installation: Installation) -> Iterator[str]:
    part = installation.parts[step.ref.kind]
    owners, name = installation.owners, step.ref.name
    match step:
        case Create():
            if world is not None:
                owners.claim(step.ref, Owner(world, step.spec))
                _claim_made(step, world, installation)
            yield from part.create(name, step.spec)
        case ChangeInPlace():
            live = part.observe([name]).get(name)
            if live is None:
                raise InvalidRequest(f"{step.ref} is gone since it was planned.", "Plan again.")
            yield from part.change(name, step.spec, step.changes, live)
        case Replace():
            yield from part.remove(name, delete_data=True)
            yield from part.create(name, step.spec)
        case Remove():
            yield from part.remove(name, step.delete_data)
            owners.release(step.ref)
        case Release():
            owners.release(step.ref)
        case _:
            assert_never(step)


def _claim_made(step: Create, world: str, installation: Installation) -> None:
    """What comes with a thing is its world's, unless it was there before."""
    known = installation.owners.all()
    for ref in KINDS[step.ref.kind].makes(step.ref.name, step.spec):
        if ref not in known and not installation.parts[ref.kind].observe([ref.name]):
            installation.owners.claim(ref, Owner(world))


def _remember(wanted: Wanted, installation: Installation) -> None:
    """What the file says now of what its world has made: what it says no longer is undone next time."""
    known = installation.owners.all()
    for resource in wanted.resources:
        owner = known.get(resource.ref)
        if owner is not None and owner.world == wanted.world and owner.spec != resource.spec:
            installation.owners.claim(resource.ref, Owner(owner.world, resource.spec))
