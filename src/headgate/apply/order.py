"""Things in the order in which they can be made: each after what it reads."""

from collections.abc import Iterable

from headgate.apply.kinds import KINDS, ORDER
from headgate.apply.model import Ref, Resource
from headgate.errors import InvalidRequest

_RANK = {kind.name: number for number, kind in enumerate(ORDER)}


def in_order(resources: Iterable[Resource]) -> list[Resource]:
    """By kind, statements after those that write what they read. A circle is refused with its members."""
    ranked = sorted(resources, key=lambda resource: _RANK[resource.ref.kind])
    by_ref = {resource.ref: resource for resource in ranked}
    writers = _writers(ranked)
    done: dict[Ref, None] = {}

    def visit(resource: Resource, above: tuple[Ref, ...]) -> None:
        if resource.ref in done:
            return
        if resource.ref in above:
            circle = [*above[above.index(resource.ref) :], resource.ref]
            at = f"{resource.at}: " if resource.at else ""
            raise InvalidRequest(
                f"{at}{' reads '.join(str(ref) for ref in reversed(circle))}: a circle.",
                "One of them must read what none of the others writes.",
            )
        own = set(_kind_writes(resource))
        for ref in _kind_reads(resource):
            if ref in by_ref:
                visit(by_ref[ref], (*above, resource.ref))
            if ref not in own:
                for writer in writers.get(ref, ()):
                    visit(writer, (*above, resource.ref))
        done[resource.ref] = None

    for resource in ranked:
        visit(resource, ())
    return sorted((by_ref[ref] for ref in done), key=lambda resource: _RANK[resource.ref.kind])


def _writers(resources: Iterable[Resource]) -> dict[Ref, list[Resource]]:
    found: dict[Ref, list[Resource]] = {}
    for resource in resources:
        for ref in _kind_writes(resource):
            found.setdefault(ref, []).append(resource)
    return found


def _kind_reads(resource: Resource) -> Iterable[Ref]:
    # A topic that came with its statement has no file of its own to say anything.
    return KINDS[resource.ref.kind].reads(resource.ref.name, resource.spec) if resource.spec else ()


def _kind_writes(resource: Resource) -> Iterable[Ref]:
    return KINDS[resource.ref.kind].writes(resource.ref.name, resource.spec) if resource.spec else ()
