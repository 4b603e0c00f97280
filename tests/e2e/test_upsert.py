"""Upsert tables as a user has them: by the topic's policy, with their keys, deletes and changes."""

from typing import Any

from tests.support.keyed import Keyed
from tests.support.ledger import canonical, read_duckdb, read_pyiceberg
from tests.support.stack import Stack


def check(stack: Stack, keyed: Keyed) -> None:
    expected = sorted(map(canonical, keyed.state()))
    for read in (read_duckdb, read_pyiceberg):
        rows = [
            {name: value for name, value in row.items() if name != "_kafka_timestamp"}
            for row in read(stack.runtime.iceberg, "local", keyed.topic)
        ]
        assert sorted(map(canonical, rows)) == expected, read.__name__


def changes(stack: Stack, topic: str, *arguments: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = stack.json_output("table", "changes", topic, *arguments)["rows"]
    return found


def test_a_compacted_topic_becomes_an_upsert_table(stack: Stack) -> None:
    keyed = Keyed(stack.runtime, "upsert.auto", config={"cleanup.policy": "compact"})
    for number in range(4):
        keyed.put((number, "eu"), {"id": number, "name": "first", "amount": number})
    keyed.flush()
    stack.run("table", "enable", keyed.topic, "--freshness", "1s")
    stack.run("table", "sync", keyed.topic, "--timeout", "180s")
    check(stack, keyed)
    shown = stack.json("table", "show", keyed.topic)["detail"]
    assert (shown["mode"], shown["key"], shown["unique_keys"]) == ("upsert", ["id", "region"], 4)
    assert shown["index_bytes"] > 0
    first = shown["snapshot_id"]

    keyed.put((1, "eu"), {"id": 1, "name": "second", "amount": 10})
    keyed.put((2, "eu"), None)
    keyed.put((9, "us"), {"id": 9, "name": "new", "amount": None})
    keyed.flush()
    stack.run("table", "sync", keyed.topic, "--timeout", "180s")
    check(stack, keyed)
    found = [(row["_change"], row["id"], row["name"]) for row in changes(stack, keyed.topic, "--from", first)]
    assert found == [
        ("update_before", 1, "first"),
        ("update_after", 1, "second"),
        ("delete", 2, "first"),
        ("insert", 9, "new"),
    ]
    assert len(changes(stack, keyed.topic, "--from", "earliest", "--to", first)) == 4

    # Compaction moves rows and changes none; the index follows.
    second = stack.json("table", "show", keyed.topic)["detail"]["snapshot_id"]
    stack.run("table", "compact", keyed.topic, "--all")
    assert changes(stack, keyed.topic, "--from", second) == []
    stack.run("table", "alter", keyed.topic, "--deletes", "copy-on-write")
    keyed.put((1, "eu"), {"id": 1, "name": "third", "amount": 11})
    keyed.put((9, "us"), None)
    keyed.flush()
    stack.run("table", "sync", keyed.topic, "--timeout", "180s")
    check(stack, keyed)
    refused = stack.run("table", "changes", keyed.topic, "--from", "lately", code=1)
    assert "neither a snapshot's id nor a time" in refused.stderr
    stack.verify(keyed.topic)


def test_a_table_is_tagged_and_put_back(stack: Stack) -> None:
    keyed = Keyed(stack.runtime, "upsert.back")
    for number in range(4):
        keyed.put((number, "eu"), {"id": number, "name": "first", "amount": number})
    keyed.flush()
    topic = keyed.topic
    stack.run("table", "enable", topic, "--mode", "upsert", "--freshness", "1s")
    stack.run("table", "sync", topic, "--timeout", "180s")
    said = stack.run("table", "tag", topic, "good", "--keep", "30d").stdout
    assert "kept until" in said
    assert {one["name"]: one["type"] for one in stack.json("table", "tag", topic)} == {
        "good": "tag",
        "main": "branch",
    }
    sent = len(keyed._acked)
    keyed.put((1, "eu"), {"id": 1, "name": "second", "amount": 1})
    keyed.put((2, "eu"), None)
    keyed.put((9, "eu"), {"id": 9, "name": "new", "amount": None})
    keyed.flush()
    stack.run("table", "sync", topic, "--timeout", "180s")
    tagged = stack.json("table", "tag", topic)[0]["snapshot_id"]
    summary = {row["column"]: row for row in changes(stack, topic, "--from", tagged, "--summary")}
    counts = {name: (row["inserted"], row["updated"], row["deleted"]) for name, row in summary.items()}
    assert (counts["*"], counts["name"], counts["amount"]) == ((1, 1, 1), (1, 1, 1), (0, 0, 1))

    plan = stack.json("table", "rollback", topic, "--to", "good", "--dry-run")
    assert (plan["rows"], plan["rows_after"], plan["offsets"], plan["refused"]) == (4, 4, 3, {})
    assert "Say --records again" in stack.run("table", "rollback", topic, "--to", "good", code=1).stderr
    wanted = ("table", "rollback", topic, "--to", "good", "--records", "keep-out")
    assert "Say --yes" in stack.run(*wanted, code=1).stderr
    check(stack, keyed)
    said = stack.run(*wanted, "--yes").stdout
    assert "rows: 4 now, 4 then (+0)" in said
    assert "the records of 3 offsets stay out of it" in said
    del keyed._acked[sent:]
    check(stack, keyed)
    history = stack.json("table", "history", topic)["snapshots"]
    assert history[0]["rolled_back"]["records"] == "keep-out"
    assert history[0]["asked_by"]
    audit = stack.json("audit")
    assert any(f"snapshot {tagged}, records keep-out" in str(one) for one in audit)
    keyed.put((2, "eu"), None)
    keyed.flush()
    stack.run("table", "sync", topic, "--timeout", "180s")
    check(stack, keyed)
    stack.run("table", "tag", topic, "good", "--remove")
    assert [one["name"] for one in stack.json("table", "tag", topic)] == ["main"]
    stack.verify(topic)
