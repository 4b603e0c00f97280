"""The ports in memory: an installation without Kafka or an engine, for tests of what plans and applies."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from headgate.apply.kinds import KINDS
from headgate.apply.kinds.catalogs import canonical as canonical_catalog
from headgate.apply.kinds.credentials import canonical as canonical_credential
from headgate.apply.kinds.exports import canonical as canonical_export
from headgate.apply.kinds.generators import generator_of
from headgate.apply.kinds.generators import spec_of as generator_spec
from headgate.apply.kinds.statements import script_of
from headgate.apply.kinds.storage import place_of, spec_of
from headgate.apply.kinds.tables import spec_of as table_spec
from headgate.apply.kinds.topics import declared_of, watermark_of
from headgate.apply.model import Change, Live, Owner, Ref, Spec
from headgate.apply.ports import Installation
from headgate.errors import AlreadyExists
from headgate.sql.tables import Watermark
from headgate.statements.altering import PARTITIONS
from headgate.statements.declared import Declared


@dataclass
class MemoryPart:
    """Things of one kind in a dictionary. It waits once before a change takes effect, and once after."""

    kind: str
    parts: "dict[str, MemoryPart]"
    things: dict[str, Live] = field(default_factory=dict)

    def observe(self, names: Collection[str] | None) -> Mapping[str, Live]:
        return {name: live for name, live in self.things.items() if names is None or name in names}

    def create(self, name: str, spec: Spec) -> Iterator[str]:
        yield f"{name} is about to be there"
        for ref in KINDS[self.kind].makes(name, spec):
            made = declared_of(ref.name, f"CREATE TABLE `{ref.name}` (id BIGINT)")
            topic = Live({"partitions": PARTITIONS, "config": {}}, detail={"declared": made.to_dict()})
            self.parts[ref.kind].things.setdefault(ref.name, topic)
        self.things[name] = live_of(self.kind, name, spec, None)
        yield f"{name} starts"

    def change(self, name: str, spec: Spec, changes: Sequence[Change], live: Live) -> Iterator[str]:
        yield f"{name} is about to change"
        self.things[name] = live_of(self.kind, name, spec, live)
        yield f"{name} follows"

    def remove(self, name: str, delete_data: bool) -> Iterator[str]:
        yield f"{name} is about to go"
        self.things.pop(name, None)


@dataclass
class MemoryOwners:
    """Owners in a dictionary."""

    known: dict[Ref, Owner] = field(default_factory=dict)

    def all(self) -> Mapping[Ref, Owner]:
        return dict(self.known)

    def claim(self, ref: Ref, owner: Owner) -> None:
        before = self.known.get(ref)
        if before is not None and before.world != owner.world:
            raise AlreadyExists(f"{ref} belongs to world '{before.world}'.")
        self.known[ref] = owner

    def release(self, ref: Ref) -> None:
        self.known.pop(ref, None)


def memory_installation() -> Installation:
    """An installation where nothing is yet."""
    parts: dict[str, MemoryPart] = {}
    for kind in KINDS:
        parts[kind] = MemoryPart(kind, parts)
    return Installation(parts, MemoryOwners())


def live_of(kind: str, name: str, spec: Spec, before: Live | None) -> Live:
    """A thing as it is once a file's word on it is carried out."""
    match kind:
        case "topics":
            return _topic(name, spec, before)
        case "statements":
            script = script_of(name, spec)
            state = spec.get("state", "running")
            return Live({"sql": script.insert_text, "settings": dict(script.settings), "state": state})
        case "tables":
            table = table_spec(name, spec)
            state = {"state": spec["state"]} if spec.get("state") == "suspended" else {}
            said = {key: value for key, value in spec.items() if key != "state"}
            return Live({**said, **state}, detail={"spec": table.to_dict()})
        case "storage":
            return Live(spec_of(place_of(name, spec)))
        case "generators":
            state = spec.get("state") or ("running" if before is None else before.spec["state"])
            return Live({**generator_spec(generator_of(spec)), "state": state})
        case "catalogs":
            return Live(canonical_catalog(spec))
        case "credentials":
            return Live(canonical_credential(spec))
        case "exports":
            return Live(canonical_export(spec))
        case "schemas":
            earlier = () if before is None else (*before.detail["earlier"], before.spec)
            return Live(dict(spec), detail={"earlier": earlier})
        case _:
            return Live(dict(spec))


def _topic(name: str, spec: Spec, before: Live | None) -> Live:
    config: dict[str, Any] = dict(spec.get("config") or {})
    if spec.get("sql") is not None:
        declared = declared_of(name, spec["sql"])
        live = {"partitions": declared.buckets or PARTITIONS, "config": config, "sql": spec["sql"]}
        return Live(live, detail={"declared": declared.to_dict()})
    mark = watermark_of(spec)
    watermark = None if mark is None else Watermark(mark["column"], mark["delay_ms"])
    declared = Declared(watermark=watermark, options=dict(spec.get("options") or {}))
    partitions = spec.get("partitions") or (PARTITIONS if before is None else before.spec["partitions"])
    live = {key: spec[key] for key in ("options", "watermark") if spec.get(key) is not None}
    return Live({"partitions": partitions, "config": config, **live}, detail={"declared": declared.to_dict()})
