"""Topics that are tables of the lake."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from headgate.apply.kinds.kind import Kind
from headgate.apply.model import Change, Difference, Live, Owner, Ref, Spec
from headgate.model import Start, StartKind, TableSpec
from headgate.options import SETTLED, TableOptions
from headgate.storage.place import is_s3

ROWS = "its rows, which are made again of what its topic still has"
# As files name the fields of a TableSpec.
_NAMES = {"start": "from", "freshness_seconds": "freshness"}


def spec_of(name: str, spec: Spec, before: TableSpec | None = None) -> TableSpec:
    """The table that a file wants; what it does not say is as `before` has it, or the default."""
    options = {field: value for field, value in spec.items() if field != "state"}
    return TableOptions.model_validate(options).apply(before or TableSpec(name))


def _start(start: Start) -> dict[str, Any]:
    """Where `latest` was is known only once the table is there."""
    return (replace(start, offsets=None) if start.kind is StartKind.LATEST else start).to_dict()


class Tables(Kind):
    name = "tables"
    holds = "the table with its rows, files and history"

    def check(self, name: str, spec: Spec) -> None:
        spec_of(name, spec)

    def reads(self, name: str, spec: Spec) -> Iterable[Ref]:
        yield Ref("topics", name)
        storage = spec.get("storage")
        if storage is not None and not is_s3(storage):
            yield Ref("storage", storage)

    def difference(self, name: str, spec: Spec, live: Live, owner: Owner | None) -> Difference | None:
        there = TableSpec.from_dict(live.detail["spec"])
        # A column that was renamed stays renamed: that was an instruction, and is done. So is what its topic
        # declared when the table was enabled, and the format that it was made in or taken to.
        kept = replace(
            TableSpec(name),
            renames=there.renames,
            watermark=there.watermark,
            format_version=there.format_version,
        )
        base = kept if owner is not None else there
        wanted = spec_of(name, spec, base)
        before, after = there.to_dict(), wanted.to_dict()
        before["start"], after["start"] = _start(there.start), _start(wanted.start)
        fields = [field for field in after if before[field] != after[field]]
        changes = [Change(_NAMES.get(field, field), before[field], after[field]) for field in fields]
        state = spec.get("state", "enabled")
        if live.spec.get("state", "enabled") != state:
            changes.append(Change("state", live.spec.get("state", "enabled"), state))
        if not changes:
            return None
        return Difference(tuple(changes), lost=ROWS if any(field in SETTLED for field in fields) else "")
