"""Tables of the lake, as the control state has them; the engine makes them so."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from headgate.apply.kinds.tables import spec_of
from headgate.apply.model import Change, Live, Spec
from headgate.errors import InvalidRequest, NotFound, TableStopped
from headgate.kafka.offsets import Offsets
from headgate.kafka.topics import Topics
from headgate.model import WAITING_FOR_SCHEMA, TableSpec, TableState
from headgate.server.api.tables import ENDING, check_wanted, settled
from headgate.server.overview import start_text
from headgate.store import Store, TableRecord

_FIELDS = {"from": "start", "freshness": "freshness_seconds"}


class TablePart:
    """`embedded`: the catalog is ours."""

    def __init__(self, store: Store, topics: Topics, offsets: Offsets, embedded: bool) -> None:
        self._store = store
        self._topics = topics
        self._offsets = offsets
        self._embedded = embedded

    def observe(self, names: Collection[str] | None) -> Mapping[str, Live]:
        return {
            record.spec.topic: _live(record)
            for record in self._store.tables()
            if (names is None or record.spec.topic in names) and record.desired not in ENDING
        }

    def create(self, name: str, spec: Spec) -> Iterator[str]:
        yield from self._await_gone(name)
        wanted = spec_of(name, spec)
        check_wanted(wanted, self._store, self._embedded)
        topic = self._topics.describe(name)
        if topic.internal:
            raise InvalidRequest(f"Topic '{name}' is internal: it cannot be a table.")
        self._store.enable_table(replace(wanted, start=settled(wanted.start, topic, self._offsets)))
        yield from self._reach(name, spec)

    def change(self, name: str, spec: Spec, changes: Sequence[Change], live: Live) -> Iterator[str]:
        after = {_FIELDS.get(c.field, c.field): c.after for c in changes if c.field != "state"}
        if after:
            wanted = TableSpec.from_dict({**live.detail["spec"], **after})
            check_wanted(wanted, self._store, self._embedded)
            self._store.alter_table(wanted)
        yield from self._reach(name, spec)

    def remove(self, name: str, delete_data: bool) -> Iterator[str]:
        if name in self.observe([name]):
            self._store.set_desired(name, "purged" if delete_data else "disabled")
        yield from self._await_gone(name)

    def _reach(self, name: str, spec: Spec) -> Iterator[str]:
        record = self._store.table(name)
        if spec.get("state") == "suspended":
            self._store.set_desired(name, "suspended")
            while self._store.table(name).status.state is not TableState.SUSPENDED:
                yield f"table {name} to be suspended"
            return
        if record.desired == "suspended":
            self._store.set_desired(name, "enabled")
            record = self._store.table(name)
        while not _stands(record):
            if record.status.state in (TableState.SUSPENDED, TableState.FAILED):
                raise TableStopped(
                    f"Table '{name}' is {record.status.state.value}: {record.status.reason}",
                    f"See `headgate table show {name}`.",
                )
            why = f", {record.status.reason}" if record.status.reason else ""
            yield f"table {name} to run: it is {record.status.state.value}{why}"
            record = self._store.table(name)

    def _await_gone(self, name: str) -> Iterator[str]:
        """Of one that is being disabled."""
        while True:
            try:
                if self._store.table(name).desired not in ENDING:
                    return
            except NotFound:
                return
            yield f"table {name} to be gone"


def _stands(record: TableRecord) -> bool:
    """Whether the engine has made it, so that it can be said where it is; or has to wait for its topic."""
    match record.status.state:
        case TableState.RUNNING | TableState.DEGRADED:
            return True
        case TableState.SYNCING:
            return "location" in record.status.detail
        case TableState.PENDING:
            return record.status.reason.startswith(WAITING_FOR_SCHEMA)
        case _:
            return False


def _live(record: TableRecord) -> Live:
    spec = record.spec.to_dict()
    return Live(_said(record), by_pattern=record.origin == "pattern", detail={"spec": spec})


def _said(record: TableRecord) -> dict[str, Any]:
    """A table's options in the words of a file, without those that are defaults."""
    spec, plain = record.spec, TableSpec(record.spec.topic)
    there, default = spec.to_dict(), plain.to_dict()
    found = {
        field: value
        for field, value in there.items()
        if value != default[field] and field not in ("topic", "watermark", "format_version")
    }
    # Where it follows from readers and deletes, the file says those.
    if spec.format != spec.needed_format:
        found["format_version"] = spec.format
    if "start" in found:
        found["from"] = start_text(spec.start)
        del found["start"]
    if "freshness_seconds" in found:
        found["freshness"] = f"{found.pop('freshness_seconds'):g}s"
    for field, nothing in (("metadata", ["none"]), ("partition", ["none"])):
        if field in found and not found[field]:
            found[field] = nothing
    return found | ({"state": "suspended"} if record.desired == "suspended" else {})
