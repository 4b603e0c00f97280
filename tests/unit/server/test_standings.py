"""The control state as it is read again and again: what has changed, and nothing else."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from unittest.mock import patch

from headgate.embedded.runtime import Runtime
from headgate.model import StatementState, TableFormat, TableSpec, TableState
from headgate.server import standings
from headgate.server.standings import StandingsReader
from headgate.store import Exports, Integrations, PublicationState, Statements, Store, TableRecord


@contextmanager
def counted(store: Store) -> Iterator[list[str]]:
    """The topics whose records are read."""
    read: list[str] = []
    load = store.tables

    def tables(topics: Collection[str] | None = None) -> list[TableRecord]:
        read.extend(topics or ())
        return load(topics)

    with patch.object(store, "tables", tables):
        yield read


def test_record_is_read_again_when_it_has_changed(runtime: Runtime, store: Store) -> None:
    for topic in ("a", "b"):
        store.enable_table(TableSpec(topic))
    with counted(store) as read:
        reader = StandingsReader(runtime, store)
        first = reader.read()
        assert reader.read() == first
        assert read == ["a", "b"]
        store.report("b", TableState.RUNNING, "", {"rows": 7})
        second = reader.read()
        store.set_desired("a", "suspended")
        third = reader.read()
    assert read == ["a", "b", "b", "a"]
    assert second != first
    assert second.tables[0] is first.tables[0]
    assert second.tables[1].status.detail == {"rows": 7}
    assert third.tables[0].desired == "suspended"
    store.remove_table("a")
    assert [one.spec.topic for one in reader.read().tables] == ["b"]


def test_statement_is_read_again_when_it_has_changed(runtime: Runtime, store: Store) -> None:
    statements, reader = Statements(store.engine), StandingsReader(runtime, store)
    made = statements.create("clean", "insert", "INSERT …", {})
    first = reader.read()
    statements.want("clean", "stopped")
    assert reader.read().statements[0].desired == "stopped"
    statements.report(made.id, StatementState.STOPPED, "by request", {"rows_in": 3})
    assert dict(reader.read().statements[0].detail) == {"rows_in": 3}
    assert first.statements[0].desired == "running"
    statements.remove(made.id)
    assert reader.read().statements == ()


def test_beat_of_a_process_is_nothing_new_and_silence_is(runtime: Runtime, store: Store) -> None:
    reader = StandingsReader(runtime, store)
    store.beat("engine", "one", 1, "ready")
    first = reader.read()
    store.beat("engine", "one", 1, "ready")
    assert reader.read() == first
    assert ("engine", "ready") in first.process_states
    with patch("headgate.server.overview.SILENT_SECONDS", -1.0):
        silent = reader.read()
    assert silent != first
    assert ("engine", "silent") in silent.process_states


def test_catalogs_and_exports_have_their_figures(runtime: Runtime, store: Store) -> None:
    integrations = Integrations(store.engine)
    integrations.add("athena", "glue", TableFormat.ICEBERG, {})
    for topic, state in (("a", PublicationState.SYNCED), ("b", PublicationState.SYNCED)):
        integrations.tell("athena", topic, state, "")
    Exports(store.engine).create("daily", {})
    run = Exports(store.engine).request("daily", 0, 1)
    found = StandingsReader(runtime, store).read()
    assert [(one.record.name, one.tables) for one in found.catalogs] == [("athena", {"Synced": 2})]
    (export,) = found.exports
    assert (export.name, export.runs["Waiting"], export.last) == ("daily", 1, None)
    assert run.id


def test_what_does_not_begin_is_slow_after_a_while(runtime: Runtime, store: Store) -> None:
    store.enable_table(TableSpec("a"))
    Statements(store.engine).create("clean", "insert", "INSERT …", {})
    reader = StandingsReader(runtime, store)
    assert reader.read().slow == frozenset()
    with patch.object(standings, "SLOW_SECONDS", -1.0):
        assert reader.read().slow == {"table a", "statement clean"}
