"""Scheduled exports, as the control state has them."""

from collections.abc import Collection, Iterator, Mapping, Sequence

from headgate.apply.kinds.exports import STATE, options_of
from headgate.apply.model import Change, Live, Spec
from headgate.server.api.exports import ExportDesk


class ExportPart:
    """The exports of files; nothing waits for their runs."""

    def __init__(self, desk: ExportDesk) -> None:
        self._desk = desk

    def observe(self, names: Collection[str] | None) -> Mapping[str, Live]:
        return {
            record.name: Live({**record.spec, **({STATE: "paused"} if record.desired == "paused" else {})})
            for record in self._desk.exports.all()
            if names is None or record.name in names
        }

    def create(self, name: str, spec: Spec) -> Iterator[str]:
        yield f"export {name} to be there"
        self._desk.create(name, options_of(spec))
        self._reach(name, spec)

    def change(self, name: str, spec: Spec, changes: Sequence[Change], live: Live) -> Iterator[str]:
        yield f"export {name} to be changed"
        wanted = {**live.spec, **{one.field: one.after for one in changes if one.after is not None}}
        for gone in (one.field for one in changes if one.after is None):
            wanted.pop(gone, None)
        self._desk.change(name, options_of(wanted))
        self._reach(name, wanted)

    def remove(self, name: str, delete_data: bool) -> Iterator[str]:
        yield f"export {name} to be gone"
        if name in self.observe([name]):
            self._desk.exports.remove(name)

    def _reach(self, name: str, spec: Spec) -> None:
        self._desk.exports.set_desired(name, "paused" if spec.get(STATE) == "paused" else "active")
