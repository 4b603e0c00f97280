"""The whole control state at one moment, as small as it is shown: read at once, then shown to each caller."""

import time
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from headgate.access.topics import TopicRights
from headgate.embedded.runtime import Runtime
from headgate.model import StatementState, TableState
from headgate.server import overview
from headgate.store import (
    Exports,
    IntegrationRecord,
    Integrations,
    ProcessRecord,
    RunRecord,
    RunState,
    StatementRecord,
    Statements,
    Store,
    TableRecord,
)

# What is wanted and not begun in this time needs somebody.
SLOW_SECONDS = 30.0
ENDED = (RunState.DONE, RunState.FAILED)
_Record = TypeVar("_Record")


@dataclass(frozen=True)
class CatalogStanding:
    """An outside catalog, with how many tables stand how in it."""

    record: IntegrationRecord
    tables: Mapping[str, int]


# Of a run: so many tries to tell of its file are one that somebody should know of.
MANY_TELLINGS = 3


@dataclass(frozen=True)
class ExportStanding:
    """An export, with how many runs stand how, and the one that ended last. `untold`: the first of whose file
    not all know after some tries."""

    name: str
    paused: bool
    runs: Mapping[str, int]
    last: RunRecord | None
    untold: RunRecord | None = None


@dataclass(frozen=True)
class Standings:
    """Two that are equal have nothing new to show: when a process last said that it lives is left out."""

    tables: tuple[TableRecord, ...]
    statements: tuple[StatementRecord, ...]
    processes: tuple[ProcessRecord, ...] = field(compare=False)
    process_states: tuple[tuple[str, str], ...]
    catalogs: tuple[CatalogStanding, ...]
    exports: tuple[ExportStanding, ...]
    # Tables and statements that have been waiting to begin for long.
    slow: frozenset[str]


class StandingsReader:
    """Reads what has changed since it was asked last, and remembers the rest. For one thread."""

    def __init__(self, runtime: Runtime, store: Store) -> None:
        self._runtime = runtime
        self._store = store
        self._integrations = Integrations(store.engine)
        self._exports = Exports(store.engine)
        statements = Statements(store.engine)
        self._tables = _Remembered(store.table_versions, store.tables, lambda one: one.spec.topic)
        self._statements = _Remembered(statements.versions, statements.all, lambda one: one.id)

    def read(self) -> Standings:
        tables, statements = self._tables.read(), self._statements.read()
        processes = tuple(overview.known_processes(self._runtime, self._store))
        return Standings(
            tables,
            statements,
            processes,
            tuple((one.name, overview.process_state(one)) for one in processes),
            self._catalogs(),
            self._read_exports(),
            frozenset(_slow(tables, statements, time.time())),
        )

    def _catalogs(self) -> tuple[CatalogStanding, ...]:
        records = self._integrations.all()
        counts = self._integrations.counts() if records else []
        return tuple(
            CatalogStanding(one, {state.value: count for name, state, count in counts if name == one.name})
            for one in records
        )

    def _read_exports(self) -> tuple[ExportStanding, ...]:
        records = self._exports.all()
        if not records:
            return ()
        counts = Counter({(name, state): count for name, state, count in self._exports.counts()})
        last = {run.export: run for run in self._exports.newest(ENDED)}
        untold = {run.export: run for run in reversed(self._exports.untold(MANY_TELLINGS))}
        return tuple(
            ExportStanding(
                one.name,
                one.desired == "paused",
                {state.value: counts[one.name, state.value] for state in RunState},
                last.get(one.name),
                untold.get(one.name),
            )
            for one in records
        )


class _Remembered(Generic[_Record]):
    """Records by key, of which those are read again that have another version."""

    def __init__(
        self,
        versions: Callable[[], dict[str, Hashable]],
        load: Callable[[Collection[str]], Iterable[_Record]],
        key: Callable[[_Record], str],
    ) -> None:
        self._versions = versions
        self._load = load
        self._key = key
        self._known: dict[str, tuple[Hashable, _Record]] = {}

    def read(self) -> tuple[_Record, ...]:
        versions = self._versions()
        changed = [key for key, version in versions.items() if self._known.get(key, (None,))[0] != version]
        loaded = {self._key(one): one for one in self._load(changed)} if changed else {}
        known: dict[str, tuple[Hashable, _Record]] = {}
        for key, version in versions.items():
            if key in loaded:
                known[key] = version, loaded[key]
            elif key in self._known and key not in changed:
                known[key] = self._known[key]
            # Others were removed between the two reads.
        self._known = known
        return tuple(record for _, record in known.values())


def _slow(tables: Iterable[TableRecord], statements: Iterable[StatementRecord], now: float) -> Iterable[str]:
    for table in tables:
        if table.status.state is TableState.PENDING and now - table.status.since > SLOW_SECONDS:
            yield f"table {table.spec.topic}"
    for statement in statements:
        if statement.state is StatementState.PENDING and now - statement.since > SLOW_SECONDS:
            yield f"statement {statement.name}"


def seen_by(standings: Standings, rights: TopicRights | None) -> Standings:
    """What is not left out for one caller."""
    if rights is None or rights.caller.is_admin:
        return standings
    return Standings(
        tuple(one for one in standings.tables if rights.sees(one.spec.topic)),
        tuple(one for one in standings.statements if rights.sees_statement(one.options)),
        standings.processes,
        standings.process_states,
        standings.catalogs if rights.is_everywhere else (),
        (),
        standings.slow,
    )
