"""Jobs that end: up to the ends that their topics had, closed and written once, whatever fails."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headgate.errors import ConfigError, InvalidRequest
from headgate.model import StatementState
from headgate.statements import bounded
from headgate.statements.declared import DeclaredTables
from headgate.statements.execute import Executor, job_of
from headgate.statements.tables import TopicTables
from headgate.store import SqlObjects, StatementRecord, Statements, Store
from tests.integration.statements.bench import Bench, event
from tests.support.services import wait_for

NOW = "SET 'sql.snapshot.mode' = 'now';"


def secret(name: str) -> str:
    raise ConfigError(f"There is no secret '{name}'.")


class Jobs:
    def __init__(self, bench: Bench, folder: Path) -> None:
        self.store = Store.open(f"sqlite:///{folder / 'control.db'}")
        self.statements = Statements(self.store.engine)
        tables = DeclaredTables(SqlObjects(self.store.engine), TopicTables(bench.topics, bench.schemas))
        self._executor = Executor(tables, self.statements, bench.topics, bench.schemas, secret)
        self._bench = bench
        self.checkpoints = folder / "checkpoints"

    def run(self, text: str) -> list[str]:
        """The names of the statements that came of it."""
        made = self._executor.run(text.replace("@", self._bench.name))
        return [outcome.statement for outcome in made if outcome.statement is not None]

    def engine(self) -> Any:
        return self._bench.engine(self.statements, lambda record: job_of(record, secret), self.checkpoints)

    def until(self, names: list[str], state: StatementState) -> list[StatementRecord]:
        def there() -> list[StatementRecord] | None:
            found = [self.statements.get(name) for name in names]
            if state is not StatementState.FAILED:
                assert not [record.reason for record in found if record.state is StatementState.FAILED]
            return found if all(record.state is state for record in found) else None

        found: list[StatementRecord] = wait_for(f"{names} to be {state}", there, 180)
        return found


@pytest.fixture
def jobs(bench: Bench, tmp_path: Path) -> Iterator[Jobs]:
    found = Jobs(bench, tmp_path)
    yield found
    found.store.close()


def test_a_job_that_ends_closes_all_that_was_there_and_is_completed(bench: Bench, jobs: Jobs) -> None:
    topic = bench.events().name
    # Of 'a' the least time comes last; the last window is not over.
    rows = [("a", 30), ("b", 40), ("a", 10), ("c", 70), ("b", 130)]
    for partition in (0, 1):
        bench.send(topic, [event(n, who, seconds=s) for n, (who, s) in enumerate(rows)], partition)
    bench.send(topic, [event(9, "a", seconds=5)], 1)
    first = f"(SELECT *, ROW_NUMBER() OVER (PARTITION BY who ORDER BY ts) AS n FROM `{topic}`) WHERE n = 1"
    counts = f"SELECT who, COUNT(*) AS n FROM `{topic}` GROUP BY who"
    names = jobs.run(
        f"""{NOW}
        CREATE TABLE `first.@` AS SELECT who, id FROM {first};
        CREATE TABLE `kept.@` (who STRING, id BIGINT, PRIMARY KEY (who) NOT ENFORCED)
          AS SELECT who, id FROM {first};
        ALTER TABLE `{topic}` MODIFY WATERMARK FOR ts AS ts - INTERVAL '5' SECOND;
        CREATE TABLE `minutes.@` AS SELECT window_start, COUNT(*) AS n
          FROM TABLE(TUMBLE(TABLE `{topic}`, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
          GROUP BY window_start, window_end;
        CREATE TABLE `steps.@` (n BIGINT, names BIGINT, PRIMARY KEY (n) NOT ENFORCED)
          AS SELECT n, COUNT(*) AS names FROM ({counts}) GROUP BY n;
        CREATE TABLE `taken.@` (who STRING, n BIGINT, PRIMARY KEY (who) NOT ENFORCED)
          WITH ('changelog.mode' = 'retract') AS {counts};
        CREATE TABLE `none.@` AS SELECT id FROM `{topic}` WHERE id > 99;"""
    )
    # What comes now is for others.
    bench.send(topic, [event(77, "z", seconds=-500), event(78, "a", seconds=-500)])
    with jobs.engine():
        found = jobs.until(names, StatementState.COMPLETED)
    assert [(r.desired, r.detail["lag"], r.detail["rows_in"]) for r in found] == [("stopped", 0, 11)] * 6
    assert [r.detail["rows_out"] for r in found] == [3, 3, 3, 3, 3, 0]

    def read(table: str, *columns: str) -> list[tuple[Any, ...]]:
        return sorted(tuple(v[c] for c in columns) for v in bench.values(f"{table}.{bench.name}"))

    def check() -> None:
        assert read("first", "who", "id") == [("a", 9), ("b", 1), ("c", 3)]
        assert read("kept", "who", "id") == [("a", 9), ("b", 1), ("c", 3)]
        assert [n for _, n in read("minutes", "window_start", "n")] == [5, 4, 2]
        assert read("steps", "n", "names") == [(2, 1), (4, 1), (5, 1)]
        assert read("taken", "who", "n") == [("a", 5), ("b", 4), ("c", 2)]
        assert read("none", "id") == []

    check()
    with pytest.raises(InvalidRequest, match="is completed") as refused:
        jobs.statements.want(names[0], "running")
    assert "create it again" in refused.value.remedy
    wait_for("no files", lambda: not list(jobs.checkpoints.glob("*/result-*")))
    jobs.statements.want(names[0], "deleted")
    with jobs.engine():
        wait_for("it to be gone", lambda: len(jobs.statements.all()) == len(names) - 1)
    assert {r.state for r in jobs.statements.all()} == {StatementState.COMPLETED}
    check()


def test_a_job_that_ends_is_written_once_whatever_fails(
    bench: Bench, jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It fails when all is computed, after every transaction, and is stopped and started; rows with chance in
    their order, which a second computation would put elsewhere."""
    monkeypatch.setattr(bounded, "CHUNK_ROWS", 8)
    topic = bench.events().name
    for partition in (0, 1):
        bench.send(topic, [event(100 * partition + n) for n in range(20)], partition)
    (name,) = jobs.run(f"{NOW} CREATE TABLE `all.@` AS SELECT id, who FROM `{topic}`")
    passed: list[str] = []

    def fails(place: str) -> None:
        passed.append(place)
        if passed.count(place) < 3:
            raise RuntimeError(f"dies at {place}")

    monkeypatch.setattr(bounded, "failpoint", fails)
    with jobs.engine():
        wait_for("two failures", lambda: len(passed) > 1)
        jobs.statements.want(name, "stopped")
        jobs.until([name], StatementState.STOPPED)
    bench.send(topic, [event(999)])
    jobs.statements.want(name, "running")
    with jobs.engine():
        (record,) = jobs.until([name], StatementState.COMPLETED)
    assert passed.count("bounded-computed") == 3
    assert passed.count("bounded-written") >= 2, "each after a round of transactions"
    written = Counter(row["id"] for row in bench.values(f"all.{bench.name}"))
    assert written == Counter(100 * partition + n for partition in (0, 1) for n in range(20))
    assert record.detail["rows_out"] == 40


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("CREATE TABLE `x.@` AS SELECT id, NOW() AS at FROM `{}`", "CURRENT_TIMESTAMP gives something else"),
        ("CREATE TABLE `x.@` AS SELECT id FROM `{}` WHERE ts < CURRENT_DATE", "CURRENT_DATE gives"),
        (
            "SET 'sql.tables.initial-offset-from' = 'b-@'; CREATE TABLE `x.@` AS SELECT id FROM `{}`",
            "takes over",
        ),
    ],
)
def test_what_would_not_be_the_same_again_is_refused(bench: Bench, jobs: Jobs, text: str, said: str) -> None:
    topic = bench.events().name
    jobs.run(f"SET 'client.statement-name' = 'b-@'; CREATE TABLE `b.@` AS SELECT id FROM `{topic}`")
    with pytest.raises(InvalidRequest, match=said):
        jobs.run(f"{NOW} {text.format(topic)}")
    assert len(jobs.statements.all()) == 1
