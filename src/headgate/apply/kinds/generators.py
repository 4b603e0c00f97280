"""Managed generators of made-up data."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from headgate.apply.kinds.kind import Kind, compare_fields
from headgate.apply.model import Difference, Live, Owner, Ref, Spec
from headgate.datagen import GeneratorSpec
from headgate.datagen.formats import Format
from headgate.datagen.times import NOW, START_MS, parse_start
from headgate.kafka.topics import check_topic_name
from headgate.store.generators import check_generator_name

PLACE = "its place: it begins from the beginning, and writes again what it has written"


def generator_of(spec: Spec) -> GeneratorSpec:
    """What a file says that a generator makes; InvalidRequest where it cannot be made."""
    said = {name: value for name, value in spec.items() if name not in ("state", "start", "evolve")}
    start = spec.get("start")
    made = GeneratorSpec(
        **said | {"format": Format(spec.get("format", Format.AVRO))},
        start_ms=START_MS if start is None else parse_start(start),
        evolve_after=spec.get("evolve"),
    )
    for topic in made.topics():
        check_topic_name(topic)
    return made


def spec_of(made: GeneratorSpec) -> dict[str, Any]:
    """What a file says of a generator, without defaults."""
    defaults = GeneratorSpec(made.scenario).to_dict()
    said = {name: value for name, value in made.to_dict().items() if value != defaults[name]}
    spec = {"scenario": made.scenario, **said}
    if (start_ms := spec.pop("start_ms", None)) is not None:
        spec["start"] = datetime.fromtimestamp(start_ms / 1000, UTC).isoformat().replace("+00:00", "Z")
    if (evolve := spec.pop("evolve_after", None)) is not None:
        spec["evolve"] = evolve
    return spec


class Generators(Kind):
    name = "generators"
    holds = ""

    def check(self, name: str, spec: Spec) -> None:
        check_generator_name(name)
        generator_of(spec)

    def writes(self, name: str, spec: Spec) -> Iterable[Ref]:
        return [Ref("topics", topic) for topic in generator_of(spec).topics()]

    def difference(self, name: str, spec: Spec, live: Live, owner: Owner | None) -> Difference | None:
        """Another state is a change in place; all else would be other records."""
        there = {field: value for field, value in live.spec.items() if field != "state"}
        wanted = spec_of(generator_of(spec))
        if spec.get("start") == NOW:
            # It was now when it was created.
            wanted = {field: value for field, value in wanted.items() if field != "start"}
            there.pop("start", None)
        before = {} if owner is None else {"state": owner.spec.get("state")}
        state = {"state": spec["state"]} if spec.get("state") is not None else {}
        made = compare_fields(wanted, there, there)
        changes = made + compare_fields(state, {"state": live.spec["state"]}, _said(before))
        return Difference(tuple(changes), lost=PLACE if made else "") if changes else None


def _said(spec: Spec) -> Iterable[str]:
    return [field for field, value in spec.items() if value is not None and value != "running"]
