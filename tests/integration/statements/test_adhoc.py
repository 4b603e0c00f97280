"""SELECTs that stand alone, on real topics: live, as snapshots, and when who reads them has gone."""

import json
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from headgate.adhoc.app import Door, create_app
from headgate.adhoc.results import PIECES
from headgate.errors import InvalidRequest, NotFound, TooManyRequests
from headgate.statements.asking import Caller
from tests.integration.statements.asking import SNAPSHOT, Asking, Reader
from tests.integration.statements.bench import EVENT_SCHEMA, Bench, event, framed
from tests.support.queries import ENDS, KINDS, NOBODY, NOTHING, Event, at, is_end, plain
from tests.support.services import wait_for

TOKEN = "open"
AB_SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "Row",
    "fields": [
        {"name": "k", "type": "int"},
        {"name": "v", "type": "long"},
        {"name": "w", "type": "string"},
        {"name": "t", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ],
}
KEY_SCHEMA = {"type": "record", "name": "Key", "fields": [{"name": "id", "type": "long"}]}
# What a SELECT names that keeps rows by a key.
KEYS = {"keep-last": "k", "group": "k"}


@pytest.fixture
def asking(bench: Bench, spark: SparkSession, tmp_path: Path) -> Iterator[Asking]:
    found = Asking(bench, spark, tmp_path)
    yield found
    found.close()


@pytest.fixture
def topic(bench: Bench) -> str:
    return bench.events(partitions=2).name


def test_a_count_grows_as_one_reads(bench: Bench, asking: Asking, topic: str) -> None:
    bench.send(topic, [event(n) for n in range(7)])
    reader = asking.reader(f"SELECT COUNT(*) AS n, SUM(amount) AS s FROM `{topic}`")
    wait_for("seven", lambda: reader.rows(lambda _: 0) == [(7, 7)])
    bench.send(topic, [event(n) for n in range(3)], partition=1)
    wait_for("ten", lambda: reader.rows(lambda _: 0) == [(10, 10)])
    assert {line["op"] for line in reader.lines} == {"upsert"}
    reader.leave()
    wait_for("nothing to be left", asking.is_nothing_left)


def test_rows_change_and_disappear(bench: Bench, asking: Asking) -> None:
    """A compacted topic with a key: a filter's rows come, are replaced, and go."""
    name = bench.topic("state", 1, {"cleanup.policy": "compact"})
    bench.register(name, KEY_SCHEMA, "key")

    def put(number: int, amount: int | None) -> None:
        key = framed(bench.register(name, KEY_SCHEMA, "key"), KEY_SCHEMA, {"id": number})
        row = None if amount is None else event(number, amount=amount)
        value = None if row is None else framed(bench.register(name, EVENT_SCHEMA), EVENT_SCHEMA, row)
        bench.send_raw(name, value, key=key)
        bench.flush()

    for number, amount in ((1, 5), (2, 50), (3, 500)):
        put(number, amount)
    sql = f"SELECT id, amount FROM `{name}` WHERE amount > 10"
    reader = asking.reader(sql)

    def rows() -> list[tuple[Any, ...]]:
        return sorted(reader.rows(lambda row: row["id"]))

    wait_for("two rows", lambda: rows() == [(2, 50), (3, 500)])
    put(1, 11)
    put(2, 51)
    wait_for("one that qualifies, and one changed", lambda: rows() == [(1, 11), (2, 51), (3, 500)])
    put(2, 3)
    put(3, None)
    wait_for("two to go", lambda: rows() == [(1, 11)])
    # The same by its end, in one look.
    assert asking.snapshot(sql) == [(1, 11)]
    put(4, 40)
    assert asking.snapshot(f"{sql} LIMIT 1") in ([(1, 11)], [(4, 40)])
    *some, end = asking.whole(f"{sql} LIMIT 2")
    assert end["state"] == "Completed"
    assert {line["row"]["id"] for line in some if line["op"] == "upsert"} >= {1, 4}
    reader.leave()


def test_a_limit_is_the_end(bench: Bench, asking: Asking, topic: str) -> None:
    bench.send(topic, [event(n) for n in range(20)])
    *rows, end = asking.whole(f"SELECT id FROM `{topic}` WHERE id >= 5 LIMIT 4")
    assert [line["row"]["id"] for line in rows] == [5, 6, 7, 8]
    assert (end["op"], end["state"], end["rows"]) == ("end", "Completed", 4)
    wait_for("nothing to be left", asking.is_nothing_left)


def test_a_snapshot_ends_where_the_topic_ended(bench: Bench, asking: Asking, topic: str) -> None:
    assert asking.snapshot(f"SELECT COUNT(*) AS n FROM `{topic}`") == [(0,)]
    assert asking.snapshot(f"SELECT id FROM `{topic}`") == []
    bench.send(topic, [event(n, who=f"w{n % 3}") for n in range(30)])
    assert asking.snapshot(f"SELECT COUNT(*) AS n FROM `{topic}`") == [(30,)]
    grouped = asking.snapshot(f"SELECT who, COUNT(*) AS n FROM `{topic}` GROUP BY who HAVING who <> 'w1'")
    assert sorted(grouped) == [("w0", 10), ("w2", 10)]
    assert len(asking.snapshot(f"SELECT id FROM `{topic}` LIMIT 7")) == 7


def test_only_what_is_committed(bench: Bench, asking: Asking, topic: str) -> None:
    bench.send(topic, [event(1)])
    schema_id = bench.register(topic, EVENT_SCHEMA)
    kafka = {"bootstrap.servers": bench.access.bootstrap, "transactional.id": topic}
    producer = Producer(kafka)
    producer.init_transactions(30)
    sql, count = f"SELECT id FROM `{topic}`", f"SELECT COUNT(*) AS n FROM `{topic}`"
    reader = asking.reader(sql)
    wait_for("the first", lambda: reader.rows() == [(1,)])
    for number, commits in ((2, False), (3, True)):
        producer.begin_transaction()
        producer.produce(topic, framed(schema_id, EVENT_SCHEMA, event(number)), partition=0)
        assert producer.flush(30) == 0
        # Behind it, in the other partition, and committed.
        bench.send(topic, [event(number * 10)], partition=1)
        wait_for("the other", lambda number=number: (number * 10,) in reader.rows())  # type: ignore[misc]
        assert (number,) not in reader.rows()
        assert asking.snapshot(count) == [(len(reader.rows()),)]
        if commits:
            producer.commit_transaction(30)
        else:
            producer.abort_transaction(30)
    wait_for("what was committed", lambda: sorted(reader.rows()) == [(1,), (3,), (20,), (30,)])
    assert sorted(asking.snapshot(sql)) == [(1,), (3,), (20,), (30,)]
    reader.leave()


def test_a_schema_that_is_new_is_learned(bench: Bench, asking: Asking, topic: str) -> None:
    bench.send(topic, [event(1)])
    reader = asking.reader(f"SELECT id FROM `{topic}`")
    wait_for("the first", lambda: reader.rows() == [(1,)])
    wider = {**EVENT_SCHEMA, "fields": [*EVENT_SCHEMA["fields"], {"name": "x", "type": "int", "default": 0}]}
    bench.send(topic, [event(2) | {"x": 1}, event(3) | {"x": 2}], schema=wider)
    wait_for("the others", lambda: reader.rows() == [(1,), (2,), (3,)])
    reader.leave()


def test_a_bad_record_ends_it_with_its_place(bench: Bench, asking: Asking, topic: str) -> None:
    bench.send(topic, [event(1)])
    bench.send_raw(topic, b"no avro")
    bench.flush()
    for settings in ({}, SNAPSHOT):
        last = asking.whole(f"SELECT id FROM `{topic}`", settings)[-1]
        assert (last["op"], last["error"]) == ("error", "StatementFailed")
        assert "offset 1" in last["message"]
        skipped = asking.reader(f"SELECT id FROM `{topic}`", {**settings, "sql.on-bad-record": "skip"})
        wait_for("the good one", lambda skipped=skipped: skipped.rows() == [(1,)])  # type: ignore[misc]
        skipped.leave()
    wait_for("nothing to be left", asking.is_nothing_left)


def test_who_does_not_read_is_waited_for(bench: Bench, asking: Asking, topic: str) -> None:
    """Few pieces wait; the query waits then, and ends at once when it is stopped."""
    bench.send(topic, [event(n, who="x" * 2_000) for n in range(4_000)])
    query = asking.ask(f"SELECT id, who FROM `{topic}`")
    wait_for("pieces to wait", lambda: query.results._pieces.qsize() == PIECES)
    seen = query.results.rows
    assert seen < 1_500
    asking.queries.cancel(query.id)
    wait_for("nothing to be left", asking.is_nothing_left)
    assert query.results.rows <= seen + 100
    with pytest.raises(NotFound):
        asking.queries.get(query.id)


def test_nobody_comes_for_its_rows(asking: Asking, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headgate.adhoc.queries.LONELY_SECONDS", 1.0)
    query = asking.ask(f"SELECT id FROM `{topic}`")
    reader = asking.reader(f"SELECT COUNT(*) AS n FROM `{topic}`")
    wait_for("it to end", lambda: [one.id for one in asking.queries.all()] == [reader.query.id])
    assert not query.results.is_wanted
    reader.leave()
    wait_for("nothing to be left", asking.is_nothing_left)


def test_who_goes_away_stops_it(bench: Bench, asking: Asking, topic: str) -> None:
    """By HTTP, as the server reads: a connection that is cut off, with rows under way or without."""
    before = {found.name for found in bench.topics.list()}
    with Door(create_app(asking.queries, TOKEN), "127.0.0.1") as door:
        head = {"Authorization": f"Bearer {TOKEN}"}
        assert httpx.get(f"{door.address}/queries", trust_env=False).status_code == 401
        for rows in (0, 50):
            bench.send(topic, [event(n) for n in range(rows)])
            asked, _ = asking.executor.ask(f"SELECT id FROM `{topic}`", {})
            made = httpx.post(f"{door.address}/queries", json=asked.to_dict(), headers=head, trust_env=False)
            query_id = made.json()["id"]
            host, port = door.address.removeprefix("http://").split(":")
            with socket.create_connection((host, int(port))) as connection:
                request = f"GET /queries/{query_id}/rows HTTP/1.1\r\nHost: {host}\r\n"
                connection.sendall(f"{request}Authorization: Bearer {TOKEN}\r\n\r\n".encode())
                assert b"200 OK" in connection.recv(1000)
                wait_for("the stream", lambda: list(asking.checkpoints.glob("*/offsets")))
                again = httpx.get(f"{door.address}/queries/{query_id}/rows", headers=head, trust_env=False)
                assert (again.status_code, again.json()["error"]) == (400, "InvalidRequest")
            wait_for("nothing to be left", asking.is_nothing_left, 20)
    assert {found.name for found in bench.topics.list()} == before, "no topic is made for a SELECT"


@pytest.mark.parametrize("name", KINDS)
def test_a_snapshot_is_what_the_stream_comes_to(bench: Bench, asking: Asking, name: str) -> None:
    kind = KINDS[name]
    rows = [(1, 1, "x", 3), (2, 2, "y", 1), (1, 4, "z", 0), (3, 9, "x", 8), (1, 5, "x", 9), (2, 7, "y", 6)]
    events = {
        "a": [Event(k, v, w, t, place) for place, (k, v, w, t) in enumerate(rows)],
        "b": [Event(k, v + 1, w, t + 1, place) for place, (k, v, w, t) in enumerate(rows[:5])],
    }
    sql = kind.sql
    for table in events:
        made = bench.topic(table, 1)
        schema_id = bench.register(made, AB_SCHEMA)
        asking.executor.run(f"ALTER TABLE `{made}` MODIFY WATERMARK FOR t AS t - INTERVAL '5' SECOND")
        for one in events[table]:
            send(bench, made, schema_id, (one.k, one.v, one.w, one.t))
        asking.executor.run(f"CREATE OR REPLACE VIEW {table} AS SELECT * FROM `{made}`")
    bench.flush()
    wanted = plain([readable(row) for row in kind.rows(events["a"], events["b"])])
    found = asking.snapshot(sql)
    assert plain(found) == wanted

    reader = asking.reader(sql)
    key = KEYS.get(name)

    def streamed() -> list[str]:
        rows = reader.rows(None if key is None else lambda row: row[key])
        return plain([row for row in rows if not is_end(row)])

    for end in ENDS:
        for table in events:
            made = f"{table}-{bench.name}"
            send(bench, made, bench.register(made, AB_SCHEMA), (NOBODY, NOTHING, "end", end))
        bench.flush()
    wait_for("all of it", lambda: streamed() == wanted)
    reader.leave()


def send(bench: Bench, topic: str, schema_id: int, row: tuple[int, int, str, int]) -> None:
    k, v, w, t = row
    value = {"k": k, "v": v, "w": w, "t": int(at(t).timestamp() * 1000)}
    bench.send_raw(topic, framed(schema_id, AB_SCHEMA, value))


def readable(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """As lines of JSON have it."""
    return tuple(str(value) if hasattr(value, "tzinfo") else value for value in row)


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("INSERT INTO `{}` SELECT * FROM `{}`", "A query is a SELECT"),
        ("SELECT id FROM `{}`; SELECT id FROM `{}`", "Expected one statement"),
        ("SELECT nothing FROM `{}`", "nothing"),
        ("SELECT a.id FROM lake.local.x a JOIN `{}` b ON a.id = b.id", "not read together"),
    ],
)
def test_what_is_no_query(asking: Asking, topic: str, sql: str, said: str) -> None:
    with pytest.raises(InvalidRequest, match=said):
        asking.ask(sql.format(topic, topic))
    assert json.dumps(asking.executor.ask(f"SELECT id FROM `{topic}`", {})[0].to_dict())


def test_caller_runs_so_many_queries_and_no_more(asking: Asking, topic: str) -> None:
    asked, _ = asking.executor.ask(f"SELECT id FROM `{topic}`", {})
    guest = Caller("'guest'", "hg1", concurrent=1, limits="limits.reader")
    first = Reader(asking.queries, asking.queries.start(replace(asked, caller=guest)))
    with pytest.raises(TooManyRequests, match="runs 1 queries already") as refused:
        asking.queries.start(replace(asked, caller=guest))
    assert "limits.reader.concurrent" in refused.value.remedy
    other = Reader(asking.queries, asking.queries.start(replace(asked, caller=replace(guest, id="hg2"))))
    first.leave()
    again = Reader(asking.queries, asking.queries.start(replace(asked, caller=guest)))
    for reader in (other, again):
        reader.leave()
    wait_for("nothing to be left", asking.is_nothing_left)
