"""Scheduled exports of tables of the lake. One is changed in place: runs that were made stay as they are."""

from collections.abc import Iterable

from headgate.apply.kinds.kind import Kind, compare_fields
from headgate.apply.model import Difference, Live, Owner, Ref, Spec
from headgate.errors import InvalidRequest
from headgate.export.definition import ExportOptions, check_name, parse_options
from headgate.export.sql import tables_of

STATE = "state"
# No namespace has this name: a table that is named with its namespace is not looked for in the file.
_HERE = "\0"


def options_of(spec: Spec) -> ExportOptions:
    return parse_options({field: value for field, value in spec.items() if field != STATE})


def canonical(spec: Spec) -> Spec:
    """What a file says, without what is a default."""
    state = {STATE: "paused"} if spec.get(STATE) == "paused" else {}
    return {**options_of(spec).to_dict(), **state}


def complete(spec: Spec) -> Spec:
    """All that is true of it, defaults too."""
    state = "paused" if spec.get(STATE) == "paused" else "active"
    return {**options_of(spec).model_dump(mode="json"), STATE: state}


class Exports(Kind):
    name = "exports"
    holds = "its history; files that it has made stay"

    def check(self, name: str, spec: Spec) -> None:
        check_name(name)
        try:
            options_of(spec)
        except InvalidRequest as error:
            raise InvalidRequest(f"Export '{name}': {error.message}", error.remedy) from error

    def reads(self, name: str, spec: Spec) -> Iterable[Ref]:
        tables, _ = tables_of(options_of(spec).sql, _HERE)
        yield from (Ref("tables", table.name) for table in sorted(tables) if table.namespace == (_HERE,))
        if (storage := spec.get("storage")) is not None:
            yield Ref("storage", storage)

    def secrets(self, name: str, spec: Spec) -> Iterable[str]:
        return sorted(options_of(spec).secrets)

    def difference(self, name: str, spec: Spec, live: Live, owner: Owner | None) -> Difference | None:
        wanted, there = complete(spec), complete(live.spec)
        # All of it is said by the file, if a world made it: what it does not say is the default.
        said = wanted if owner is not None else {field: wanted[field] for field in spec}
        changes = compare_fields(said, there)
        return Difference(tuple(changes)) if changes else None
