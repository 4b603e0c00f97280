"""Drills that share their engines: each holds its table at a place in the code, one SIGKILL finds them all.

The start of an engine with its first batch is most of what a drill costs. A drill is a generator: it works
with the engine that runs, holds its table where the engine is to die, and yields; when every drill has done
so, the engine is killed, what was yielded is done while none runs, and the next engine starts.
"""

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from headgate.failpoints import HELD
from headgate.model import TableSpec
from tests.support.services import Process, Services, wait_for

ENGINE_SECONDS = 180.0
MORE_SECONDS = 60.0
# A worker that is held does no other table's work.
WORKERS = {"HEADGATE_ENGINE__WORKERS": "32"}


def nothing() -> None:
    """For a drill that changes nothing while no engine runs."""


#: It yields what is to be done between two engines.
Drill = Generator[Callable[[], None], None, None]


class Rounds:
    """The engine of now, and the places where it is to hold tables."""

    def __init__(self, services: Services, folder: Path) -> None:
        self.services = services
        self._folder = folder
        self._folder.mkdir()
        self._engine: Process | None = None
        self._tables = ExitStack()

    @property
    def engine(self) -> Process:
        assert self._engine is not None, "no engine runs"
        return self._engine

    def enable(self, spec: TableSpec) -> None:
        """A table until the drills are over."""
        self._tables.enter_context(self.services.table(spec))

    def sync(self, topic: str) -> None:
        self.services.sync(topic, ENGINE_SECONDS)

    def verify(self, topic: str) -> None:
        """The last word of a drill, besides that of its ledger."""
        self.services.verify(topic)

    def arm(self, topic: str, places: Sequence[str]) -> None:
        for place in places:
            (self._folder / f"{place}@{topic}").touch()

    def held(self, topic: str, more: Callable[[], None] = nothing) -> str:
        """The place where the table is held. If it does not come by, `more` is sent: a batch that is tried
        again, after Kafka did not answer, need not pass the place."""
        suffix = f"@{topic}{HELD}"

        def place() -> str | None:
            return next((f.name.removesuffix(suffix) for f in self._folder.glob(f"*{suffix}")), None)

        deadline = time.monotonic() + MORE_SECONDS
        while time.monotonic() < deadline and place() is None:
            assert self.engine.popen.poll() is None, "the engine ended: see engine.log"
            time.sleep(0.02)
        if place() is None:
            more()
        found: str = wait_for(f"'{topic}' at one of {self._armed(topic)}", place, ENGINE_SECONDS)
        (self._folder / f"{found}{suffix}").unlink()
        return found

    def _armed(self, topic: str) -> list[str]:
        record = self.services.store.table(topic).status
        return [*(f.name for f in self._folder.glob(f"*@{topic}")), record.state.value, record.reason]

    def run(
        self, drills: Mapping[str, Drill], engine_settings: Sequence[Mapping[str, str]]
    ) -> dict[str, BaseException | None]:
        """How each drill ended; the engine of round N has the Nth settings, later ones the last."""
        ends: dict[str, BaseException | None] = {}
        left = dict(drills)
        number = 0
        with self._tables:
            while left:
                settings = engine_settings[min(number, len(engine_settings) - 1)]
                number += 1
                print(f"round {number}: {', '.join(left)}", flush=True)
                between = self._round(left, ends, settings)
                for name, step in between.items():
                    try:
                        step()
                    except Exception as error:  # noqa: BLE001 - told by its own test
                        ends[name] = error
                        del left[name]
        return ends

    def _round(
        self, left: dict[str, Drill], ends: dict[str, BaseException | None], settings: Mapping[str, str]
    ) -> dict[str, Callable[[], None]]:
        """Every drill goes on to where the engine is to die; then it dies."""
        between: dict[str, Callable[[], None]] = {}
        environment = {**WORKERS, **settings}
        with self.services.engine(failpoints=self._folder, **environment) as engine:
            self._engine = engine
            for name, drill in list(left.items()):
                try:
                    between[name] = next(drill)
                except StopIteration:
                    ends[name] = None
                    del left[name]
                except Exception as error:  # noqa: BLE001 - told by its own test
                    ends[name] = error
                    del left[name]
            engine.kill()
        self._engine = None
        return between
