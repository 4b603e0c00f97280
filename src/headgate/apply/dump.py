"""What runs now, as the file that would make it."""

from typing import Any

from headgate.apply.model import Live, Observed, Ref
from headgate.apply.shapes import SECTIONS


def dump_document(observed: Observed, world: str | None = None) -> dict[str, Any]:
    """A document with all that is there, or with what one world has made. To apply it plans nothing."""
    found: dict[str, Any] = {} if world is None else {"world": world}
    for section in SECTIONS:
        things = {
            ref.name: _said(section, live)
            for ref, live in sorted(observed.live.items())
            if ref.kind == section and _is_said(ref, live, observed) and _is_of(ref, world, observed)
        }
        if things:
            found[section] = things
    return found


def _is_of(ref: Ref, world: str | None, observed: Observed) -> bool:
    owner = observed.owners.get(ref)
    return world is None or (owner is not None and owner.world == world)


def _is_said(ref: Ref, live: Live, observed: Observed) -> bool:
    """Not what something else says: a pattern of the configuration, or the CREATE TABLE of a topic."""
    if live.by_pattern:
        return False
    if ref.kind != "schemas":
        return True
    topic = observed.live.get(Ref("topics", ref.name.removesuffix("-value").removesuffix("-key")))
    return topic is None or topic.spec.get("sql") is None


def _said(section: str, live: Live) -> dict[str, Any]:
    spec = {key: value for key, value in live.spec.items() if value not in (None, {})}
    if section == "topics" and "sql" in spec:
        return {key: value for key, value in spec.items() if key in ("config", "sql")}
    if section == "generators":
        return {key: value for key, value in spec.items() if key != "state" or value == "stopped"}
    if section == "statements":
        # What has failed is to run, as what has ended is: neither is a wish.
        state = {"state": "stopped"} if spec.pop("state") == "stopped" else {}
        return {**spec, **state}
    return spec
