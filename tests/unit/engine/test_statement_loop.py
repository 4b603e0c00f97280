"""The round of statements: what one of them meets is its own trouble."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from headgate.config import Statements as Settings
from headgate.engine.statements import Query, StatementLoop
from headgate.model import StatementState
from headgate.statements.progress import Totals
from headgate.store import Statements, Store
from tests.support.services import wait_for


class Broken:
    """A query that has ended, and cannot say why."""

    is_active = is_outgrown = has_news = False
    progress = None
    totals = Totals()
    stopped = False

    def poll(self) -> None: ...

    def failure(self) -> Exception | None:
        raise ValueError("a record that nobody can read")

    def watermarks(self) -> dict[str, int | None]:
        return {}

    def stop(self, patience: float = 0.0) -> None:
        self.stopped = True


class Loop(StatementLoop):
    """Without Spark: statements are given their queries by hand."""

    def __init__(self, statements: Statements, queries: dict[str, Any]) -> None:
        nothing: Any = None
        super().__init__(
            statements, nothing, nothing, nothing, nothing, "file:/nowhere", Settings(interval=1.0)
        )
        self._queries = queries

    def _start(self, record: Any, totals: Totals, query: Query | None = None) -> Query:
        return cast(Query, self._queries[record.name])


class Running(Broken):
    """A query that runs and has nothing to say yet."""

    is_active = True
    queries = ()


@pytest.fixture
def statements(tmp_path: Path) -> Iterator[Statements]:
    store = Store.open(f"sqlite:///{tmp_path / 'control.db'}")
    yield Statements(store.engine)
    store.close()


def test_a_statement_that_cannot_be_looked_at_holds_no_other_up(statements: Statements) -> None:
    for name in ("a-broken", "b-sound"):
        statements.create(name, "insert", "", {})
    broken = Broken()
    loop = Loop(statements, {"a-broken": broken, "b-sound": Running()})

    def looked(name: str, state: StatementState, reason: str) -> bool:
        loop.tick()
        record = statements.get(name)
        return record.state is state and reason in record.reason

    try:
        wait_for("the sound one", lambda: looked("b-sound", StatementState.RUNNING, ""))
        said = "trying again: ValueError: a record that nobody can read"
        wait_for("the broken one", lambda: looked("a-broken", StatementState.PENDING, said))
    finally:
        loop.close(0)
    assert broken.stopped
