"""Managed generators, as the control state has them."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from headgate.apply.kinds.generators import generator_of, spec_of
from headgate.apply.model import Change, Live, Spec
from headgate.datagen import GeneratorSpec
from headgate.datagen.times import NOW
from headgate.errors import InvalidRequest
from headgate.store import Generators, GeneratorState
from headgate.store.generators import STOPPED

_BEGINNING = frozenset({GeneratorState.PENDING, GeneratorState.WAITING})


class GeneratorPart:
    """Generators, each with its place in its story."""

    def __init__(self, generators: Generators) -> None:
        self._generators = generators

    def observe(self, names: Collection[str] | None) -> Mapping[str, Live]:
        return {
            record.name: Live(
                {**spec_of(GeneratorSpec.from_dict(dict(record.spec))), "state": record.desired}
            )
            for record in self._generators.all()
            if names is None or record.name in names
        }

    def create(self, name: str, spec: Spec) -> Iterator[str]:
        made = generator_of(spec)
        there = {record.name: record for record in self._generators.all()}.get(name)
        if there is not None and spec.get("start") == NOW:
            # It was created before this was broken off.
            made = replace(made, start_ms=there.spec["start_ms"])
        self._generators.start(name, made.to_dict())
        if spec.get("state") == STOPPED:
            yield from self._stop(name)
        else:
            yield from self._await_writing(name)

    def change(self, name: str, spec: Spec, changes: Sequence[Change], live: Live) -> Iterator[str]:
        if spec.get("state") == STOPPED:
            yield from self._stop(name)
            return
        self._generators.start(name, self._generators.get(name).spec)
        yield from self._await_writing(name)

    def remove(self, name: str, delete_data: bool) -> Iterator[str]:
        if name in self.observe([name]):
            yield from self._stop(name)
            self._generators.forget(name)

    def _stop(self, name: str) -> Iterator[str]:
        self._generators.stop(name)
        while not self._generators.get(name).is_at_rest:
            yield f"generator {name} to stop"

    def _await_writing(self, name: str) -> Iterator[str]:
        while (record := self._generators.get(name)).state in _BEGINNING:
            yield f"generator {name} to write" + (f": {record.reason}" if record.reason else "")
        if record.state is GeneratorState.FAILED:
            raise InvalidRequest(
                f"Generator '{name}' has failed: {record.reason}", "`headgate datagen list` shows it."
            )
