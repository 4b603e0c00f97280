"""The steps from what is there to what is wanted. Pure: printing them and taking them use the same list."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches

from headgate.apply.kinds import KINDS
from headgate.apply.model import (
    ChangeInPlace,
    Create,
    Live,
    Observed,
    Owner,
    Plan,
    Ref,
    Release,
    Remove,
    Replace,
    Resource,
    Step,
    Wanted,
    Wishes,
)
from headgate.apply.order import in_order
from headgate.errors import HeadgateError, InvalidRequest

# Kinds of which a thing holds what nothing else has.
WITH_DATA = ("topics", "tables", "schemas")


def make_plan(wanted: Wanted, observed: Observed, wishes: Wishes | None = None) -> Plan:
    """Removals first, readers before what they read; then what is wanted, each after what it needs."""
    wishes = wishes or Wishes()
    resources = () if wishes.destroy else tuple(wanted.resources)
    for resource in resources:
        check(resource)
    _check_references(resources, observed)
    ordered = in_order(resources)
    removals, notes = _removals(wanted, resources, observed, wishes)
    steps: list[Step] = [*removals]
    for resource in ordered:
        step = _step(resource, wanted.world, observed)
        if step is not None:
            steps.append(step)
        elif note := KINDS[resource.ref.kind].note(
            resource.ref.name, resource.spec, observed.live[resource.ref]
        ):
            notes.append(note)
    _refuse_under_readers(steps, ordered, observed)
    return Plan(wanted.world, tuple(steps), (*notes, *_pattern_notes(wanted, resources, observed)))


def check(resource: Resource) -> None:
    """Raises InvalidRequest, with the place in the file, for what can never be."""
    try:
        KINDS[resource.ref.kind].check(resource.ref.name, resource.spec)
    except HeadgateError as error:
        raise located(error, resource) from error


def located(error: HeadgateError, resource: Resource) -> HeadgateError:
    """The same error with the place in the file before it."""
    if not resource.at:
        return error
    return InvalidRequest(f"{resource.at}: {error.message}", error.remedy)


def names_of_interest(wanted: Wanted, owners: Mapping[Ref, Owner]) -> set[Ref]:
    """What must be looked at before these are planned."""
    found: set[Ref] = {ref for ref, owner in owners.items() if owner.world == wanted.world}
    for resource in wanted.resources:
        check(resource)
        kind, name, spec = KINDS[resource.ref.kind], resource.ref.name, resource.spec
        found |= {resource.ref, *kind.reads(name, spec), *kind.makes(name, spec)}
    return found | {Ref("tables", ref.name) for ref in found if ref.kind == "topics"}


def made_by(resources: Iterable[Resource]) -> dict[Ref, Resource]:
    """What comes with others, by what it comes with."""
    return {
        ref: resource
        for resource in resources
        for ref in KINDS[resource.ref.kind].makes(resource.ref.name, resource.spec)
    }


def missing_references(resources: Iterable[Resource], observed: Observed) -> list[tuple[Resource, Ref]]:
    """What is needed and neither wanted nor there, with who needs it."""
    resources = list(resources)
    there = {resource.ref for resource in resources} | set(made_by(resources)) | set(observed.live)
    return [
        (resource, ref)
        for resource in resources
        for ref in KINDS[resource.ref.kind].reads(resource.ref.name, resource.spec)
        if ref not in there
    ]


def _check_references(resources: tuple[Resource, ...], observed: Observed) -> None:
    for resource, ref in missing_references(resources, observed):
        there = {other.ref for other in resources} | set(made_by(resources)) | set(observed.live)
        close = get_close_matches(ref.name, [other.name for other in there if other.kind == ref.kind], 1)
        remedy = f"Did you mean '{close[0]}'?" if close else f"Name it under {ref.kind}, or make it first."
        error = InvalidRequest(f"{resource.ref} needs {ref}, which is neither in the file nor there.", remedy)
        raise located(error, resource)


def _step(resource: Resource, world: str | None, observed: Observed) -> Step | None:
    ref, spec, at = resource.ref, resource.spec, resource.at
    live, owner = observed.live.get(ref), observed.owners.get(ref)
    mine = owner if owner is not None and owner.world == world else None
    if live is None:
        _refuse_others(resource, owner, world)
        _refuse_unmade(resource)
        return Create(ref, spec, "it is not there", _records_there(resource, observed), at)
    try:
        difference = KINDS[ref.kind].difference(ref.name, spec, live, mine)
    except HeadgateError as error:
        raise located(error, resource) from error
    if difference is None:
        return None
    _refuse_others(resource, owner, world)
    _refuse_pattern(resource, live)
    if difference.lost:
        why = "it cannot be changed in place"
        return Replace(ref, spec, difference.changes, difference.lost, why, at)
    return ChangeInPlace(ref, spec, difference.changes, "it is not as the file says", difference.keeps, at)


def _records_there(resource: Resource, observed: Observed) -> str:
    """What a statement that is made again finds of the one that was there before."""
    made = KINDS[resource.ref.kind].makes(resource.ref.name, resource.spec)
    there = ", ".join(str(ref) for ref in made if ref in observed.live)
    return (
        f"{there} is there, and keeps its records: it writes after them, from its inputs' beginning"
        if there
        else ""
    )


def _refuse_others(resource: Resource, owner: Owner | None, world: str | None) -> None:
    if owner is not None and owner.world != world:
        error = InvalidRequest(
            f"{resource.ref} belongs to world '{owner.world}'.",
            "Two worlds cannot own one thing: name it in that world's file, or give this one another name.",
        )
        raise located(error, resource)


def _refuse_unmade(resource: Resource) -> None:
    """Of kinds that only a command makes."""
    if command := KINDS[resource.ref.kind].made_by:
        error = InvalidRequest(
            f"{resource.ref} is not there, and no file makes one.",
            f"Make it first: `{command} {resource.ref.name} …`. Then apply again.",
        )
        raise located(error, resource)


def _refuse_pattern(resource: Resource, live: Live) -> None:
    if live.by_pattern:
        error = InvalidRequest(
            f"{resource.ref} is made by a pattern of the configuration.",
            "Change the pattern there, or exclude the topic from it and name the table here.",
        )
        raise located(error, resource)


def _refuse_under_readers(steps: list[Step], ordered: list[Resource], observed: Observed) -> None:
    """A topic that is replaced under its table, or under a statement, stops it."""
    for step in steps:
        if not isinstance(step, Replace) or step.ref.kind != "topics":
            continue
        for resource in ordered:
            kind, name = KINDS[resource.ref.kind], resource.ref.name
            touched = {*kind.reads(name, resource.spec), *kind.writes(name, resource.spec)}
            if step.ref in touched and resource.ref in observed.live:
                error = InvalidRequest(
                    f"{step.ref} would be replaced under {resource.ref}, which stands on its records.",
                    f"Remove {resource.ref} first, or destroy the world with --delete-data and apply again.",
                )
                raise located(error, resource)


def _removals(
    wanted: Wanted, resources: tuple[Resource, ...], observed: Observed, wishes: Wishes
) -> tuple[list[Step], list[str]]:
    """What the world has made and names no longer."""
    named = {resource.ref for resource in resources} | set(made_by(resources))
    orphans = [
        Resource(ref, owner.spec)
        for ref, owner in observed.owners.items()
        if owner.world == wanted.world and ref not in named
    ]
    steps: list[Step] = []
    notes: list[str] = []
    for resource in reversed(in_order(orphans)):
        ref, kind = resource.ref, KINDS[resource.ref.kind]
        if ref not in observed.live:
            steps.append(Release(ref, "it is gone"))
        elif not (wishes.prune or wishes.destroy):
            notes.append(f"{ref} is in the file no longer, and stays: --prune removes it")
        elif ref.kind in ("topics", "schemas") and not wishes.delete_data:
            notes.append(f"{ref} stays, with {kind.holds}: --delete-data removes it")
        else:
            lost = kind.holds if wishes.delete_data or ref.kind not in WITH_DATA else ""
            why = "its world is destroyed" if wishes.destroy else "it is in the file no longer"
            steps.append(Remove(ref, lost, why, wishes.delete_data))
    return steps, notes


def _pattern_notes(wanted: Wanted, resources: tuple[Resource, ...], observed: Observed) -> list[str]:
    topics = {ref.name for ref, owner in observed.owners.items() if owner.world == wanted.world}
    topics |= {resource.ref.name for resource in resources if resource.ref.kind == "topics"}
    return [
        f"{ref} is made by a pattern of the configuration, and is left alone"
        for ref, live in sorted(observed.live.items())
        if ref.kind == "tables" and live.by_pattern and ref.name in topics
    ]


def needs_delete_data(step: Step) -> bool:
    """Whether a step takes records or rows away that the file's author may want to keep."""
    return isinstance(step, Replace) and step.ref.kind in WITH_DATA


def consent_of(plan: Plan) -> dict[int, str]:
    """By number of the step, what somebody must agree to: what is taken away, and what becomes of state."""
    found = {}
    for number, step in enumerate(plan.steps):
        match step:
            case Replace():
                found[number] = f"{step.ref} is made again: it loses {step.lost}"
            case Remove():
                found[number] = f"{step.ref} is removed" + (f", with {step.lost}" if step.lost else "")
            case ChangeInPlace(keeps=keeps) | Create(keeps=keeps) if keeps:
                found[number] = f"{step.ref}: {keeps}"
            case _:
                continue
    return found
