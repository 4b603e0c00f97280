"""Records that take rows back: written, read, and read in another way after an ALTER."""

from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headgate.errors import InvalidRequest
from headgate.kafka.records import committed_records
from headgate.model import StatementState, TableSpec
from headgate.sql.tables import AFTER, BEFORE, CAME, GONE, OP_CODES
from headgate.statements.execute import job_of
from headgate.store import Statements
from tests.integration.statements.asking import SNAPSHOT, Asking, secret
from tests.integration.statements.bench import Bench, event, framed
from tests.support.services import wait_for

_OPS = {code: op for op, code in OP_CODES.items()}
Change = tuple[int, bytes | None, str, tuple[Any, ...]]


@pytest.fixture
def asking(bench: Bench, spark: SparkSession, tmp_path: Path) -> Iterator[Asking]:
    found = Asking(bench, spark, tmp_path)
    yield found
    found.close()


def engine(bench: Bench, asking: Asking, folder: Path) -> AbstractContextManager[None]:
    return bench.engine(Statements(asking.store.engine), lambda record: job_of(record, secret), folder)


def changes_in(bench: Bench, topic: str) -> list[Change]:
    """Partition, key, what it does and the row of each record, in the order of each partition."""
    places = dict.fromkeys(bench.topics.describe(topic).partitions, 0)
    found: list[Change] = []
    for message in committed_records(bench.access, topic, places, idle_seconds=None):
        headers: Any = message.headers()
        ((name, code),) = headers
        assert name == "op"
        key: Any = message.key()
        row = tuple(bench.decode(message.value()).values())
        found.append((message.partition() or 0, None if key is None else bytes(key), _OPS[code], row))
    return found


def replayed(changes: list[Change]) -> list[tuple[Any, ...]]:
    """What they come to; a row is taken back where it came, after it came."""
    left: Counter[tuple[int, tuple[Any, ...]]] = Counter()
    for partition, _, op, row in changes:
        left[partition, row] += 1 if op in (CAME, AFTER) else -1
        assert left[partition, row] >= 0, (op, row)
    return sorted(row for _, row in left.elements())


def test_changes_are_written_once_and_read_as_what_they_come_to(
    bench: Bench, asking: Asking, tmp_path: Path
) -> None:
    events = bench.events(partitions=1).name
    plus, kept, sizes = (f"{name}-{bench.name}" for name in ("plus", "kept", "sizes"))
    retract = "WITH ('changelog.mode' = 'retract')"
    counted = f"SELECT who, COUNT(*) AS n FROM `{events}` GROUP BY who HAVING SUM(amount) < 100"
    asking.executor.run(
        f"""CREATE TABLE `{plus}` {retract} AS {counted};
        CREATE TABLE `{kept}` (PRIMARY KEY (who) NOT ENFORCED) {retract} AS {counted};
        CREATE TABLE `{sizes}` (PRIMARY KEY (n) NOT ENFORCED) AS
          SELECT n, COUNT(*) AS c FROM `{plus}` GROUP BY n"""
    )
    statements = Statements(asking.store.engine)
    whos = Counter[str]()

    def sizes_now() -> dict[int, int]:
        found = dict(bench.records(sizes))
        return {row["n"]: row["c"] for row in found.values() if row is not None}

    def wanted() -> list[tuple[str, int]]:
        return sorted(whos.items())

    for number in range(3):
        some = ["ann", "bob", "bob", "eve", f"only{number}"] if number < 2 else ["ann"]
        bench.send(events, [event(n, who) for n, who in enumerate(some)])
        whos.update(some)
        if number == 2:
            # A group that no longer passes is gone.
            bench.send(events, [event(99, "eve", 100)])
            del whos["eve"]
        with engine(bench, asking, tmp_path / "checkpoints"):

            def told() -> bool:
                failed = [r.reason for r in statements.all() if r.state is StatementState.FAILED]
                assert not failed, failed
                return (
                    plus in bench.topics.describe_many([plus])
                    and replayed(changes_in(bench, plus)) == wanted()
                    and replayed(changes_in(bench, kept)) == wanted()
                    and sizes_now() == Counter(n for _, n in wanted())
                )

            wait_for("what there is", told, 180)
    changes = changes_in(bench, plus)
    assert {op for _, _, op, _ in changes} == {CAME, BEFORE, AFTER, GONE}
    assert {key for _, key, _, _ in changes} == {None}
    by_key: dict[bytes | None, list[tuple[str, tuple[Any, ...]]]] = {}
    for _, key, op, row in changes_in(bench, kept):
        by_key.setdefault(key, []).append((op, row))
    follows = {CAME: (BEFORE, GONE), BEFORE: (AFTER,), AFTER: (BEFORE, GONE)}
    for of_key in by_key.values():
        # What is taken back is what was there, and an update's two halves follow each other.
        assert of_key[0][0] == CAME
        for (before, old), (op, row) in pairwise(of_key):
            assert op in follows[before]
            assert op == AFTER or row == old
    for name in (plus, kept):
        assert sorted(asking.snapshot(f"SELECT who, n FROM `{name}`")) == wanted()
        sums = f"SELECT COUNT(*) AS c, SUM(n) AS s FROM `{name}` WHERE who <> 'bob'"
        others = [n for who, n in wanted() if who != "bob"]
        assert asking.snapshot(sums) == [(len(others), sum(others))]
    reader = asking.reader(f"SELECT who, n FROM `{plus}`")

    def shown() -> list[tuple[Any, ...]]:
        left: Counter[tuple[Any, ...]] = Counter()
        for line in list(reader.lines):
            left[tuple(line["row"].values())] += {"insert": 1, "delete": -1}[line["op"]]
        return sorted(left.elements())

    wait_for("the same rows, live", lambda: shown() == wanted())
    reader.leave()


def test_another_mode_is_another_way_to_read(bench: Bench, asking: Asking) -> None:
    """And another way to write, for statements that are made from then on."""
    name, run = f"modes-{bench.name}", asking.executor.run
    run(
        f"""CREATE TABLE `{name}` (id BIGINT NOT NULL, amount INT, PRIMARY KEY (id) NOT ENFORCED)
        DISTRIBUTED INTO 1 BUCKETS WITH ('changelog.mode' = 'retract')"""
    )
    assert "compact" not in bench.topics.config_overrides(name).get("cleanup.policy", "")
    parts = {part: bench.schemas.latest(f"{name}-{part}") for part in ("key", "value")}

    def put(op: str | None, id_: int, amount: int | None) -> None:
        key, value = (
            None if schema is None or row is None else framed(schema.id, bench.parsed(schema), row)
            for schema, row in (
                (parts["key"], {"id": id_}),
                (parts["value"], None if amount is None else {"id": id_, "amount": amount}),
            )
        )
        headers = [] if op is None else [("op", OP_CODES.get(op, b"?"))]
        bench.send_raw(name, value, 0, key, headers=headers)
        bench.flush()

    def rows() -> list[tuple[Any, ...]]:
        return sorted(asking.snapshot(f"SELECT id, amount FROM `{name}`"))

    def alter(mode: str) -> str:
        (made,) = run(f"ALTER TABLE `{name}` SET ('changelog.mode' = '{mode}')")
        return " ".join(made.warnings)

    for op, id_, amount in (
        (CAME, 1, 5),
        (CAME, 2, 6),
        (BEFORE, 1, 5),
        (AFTER, 1, 7),
        (GONE, 2, 6),
        (None, 3, 8),
    ):
        put(op, id_, amount)
    assert rows() == [(1, 7), (3, 8)]
    (made,) = run(f"INSERT INTO `{name}` SELECT id, MAX(amount) AS amount FROM `{name}` GROUP BY id")
    assert made.statement is not None
    record = Statements(asking.store.engine).get(made.statement)
    before = job_of(record, secret)
    assert "those that take a row back too" in alter("append")
    assert rows() == [(1, 5), (1, 5), (1, 7), (2, 6), (2, 6), (3, 8)]
    assert alter("retract") == ""
    assert "take it back too" in alter("upsert")
    assert rows() == [(1, 7), (2, 6), (3, 8)]
    after = job_of(record, secret)
    assert (after.output, after.output.changelog) == (before.output, "retract")
    assert after.runnable.explain() == before.runnable.explain()  # type: ignore[attr-defined]
    # A record without a value deletes by its key; as rows, it is none.
    put(None, 3, None)
    assert rows() == [(1, 7), (2, 6)]
    assert "left out" in alter("append")
    assert len(rows()) == 6
    assert alter("retract") == ""
    assert rows() == [(1, 7)]

    # A table of the lake has rows by one mode, and none can have those that are taken back.
    spec, other = TableSpec(name), f"other-{bench.name}"
    with pytest.raises(InvalidRequest, match=r"cannot be a table: its .* 'retract'"):
        asking.store.enable_table(spec)
    assert name in asking.store.declined()
    alter("append")
    asking.store.enable_table(spec)
    with pytest.raises(InvalidRequest, match="is enabled as a table") as refused:
        run(f"CREATE TABLE `{other}` (a INT); ALTER TABLE `{name}` SET ('changelog.mode' = 'upsert')")
    assert "table disable" in refused.value.remedy
    assert other not in bench.topics.describe_many([other])
    assert alter("append") == ""
    asking.store.remove_table(name)
    alter("retract")

    put("?", 4, 9)
    *_, end = asking.whole(f"SELECT id FROM `{name}`", SNAPSHOT)
    assert end["op"] == "error"
    assert "header 'op'" in end["message"]
    *left, end = asking.whole(f"SELECT id FROM `{name}`", {**SNAPSHOT, "sql.on-bad-record": "skip"})
    assert ([line["row"]["id"] for line in left], end["op"]) == ([1], "end")
