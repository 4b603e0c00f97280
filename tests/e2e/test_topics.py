"""`headgate topic`: made, listed, described, read and deleted, whatever its name."""

import json
from typing import Any

import pytest

from headgate.datagen.orders import Orders
from headgate.kafka.topics import Topics
from tests.e2e.commands import on, refused
from tests.e2e.feed import Feed
from tests.support.stack import Stack

NAME = "topics.dots-and_lines.v1"


def consumed(stack: Stack, *arguments: str) -> list[dict[str, Any]]:
    done = on(stack, "topic", "consume", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_from_create_to_delete(stack: Stack) -> None:
    created = stack.json("topic", "create", NAME, "--partitions", "2", "--config", "retention.ms=86400000")
    assert (created["name"], created["partitions"]) == (NAME, 2)

    assert created in stack.json("topic", "list")
    listed = [line.split() for line in stack.run("topic", "list").stdout.splitlines()]
    assert [NAME, "2", created["id"]] in listed

    described = stack.json("topic", "describe", NAME)
    assert described == {
        "name": NAME,
        "id": created["id"],
        "table": None,
        "config": {"retention.ms": "86400000"},
        "partitions": [{"partition": p, "earliest": 0, "end": 0} for p in (0, 1)],
    }

    said = refused(stack, "topic", "create", NAME)
    assert f"'{NAME}' already exists" in said
    said = refused(stack, "topic", "delete", NAME)
    assert f"'{NAME}'" in said
    assert "--yes" in said
    assert stack.json("topic", "describe", NAME) == described, "nothing was changed"

    assert stack.run("topic", "delete", NAME, "--yes").stdout == f"{NAME} is deleted\n"
    assert NAME not in {topic["name"] for topic in stack.json("topic", "list")}
    assert f"no topic '{NAME}'" in refused(stack, "topic", "describe", NAME)

    # The name is free again, and the topic another one.
    assert stack.run("topic", "create", NAME).stdout == f"{NAME} is created, with 4 partitions\n"
    assert stack.json("topic", "describe", NAME)["id"] != created["id"]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("topics.a b",), "topics.a b"),
        (("topics.none", "--partitions", "0"), "partitions"),
        (("topics.none", "--replication", "3"), "replication"),
        (("topics.none", "--config", "retention.ms"), "'retention.ms'"),
        (("topics.none", "--config", "no.such=1"), "no.such"),
        (("topics.none", "--config", "retention.ms=long"), "retention.ms"),
    ],
)
def test_a_topic_that_cannot_be_is_refused(stack: Stack, arguments: tuple[str, ...], named: str) -> None:
    assert named in refused(stack, "topic", "create", *arguments).lower()
    assert not Topics(stack.runtime.kafka).describe_many([arguments[0]])


def test_avro_is_shown_exactly(stack: Stack) -> None:
    stack.run("datagen", "orders", "--limit", "40", "--seed", "5", "--prefix", "topics.")
    made = {r.key.decode(): r for r in Orders(5).records(40) if r.topic == "orders"}
    found = consumed(stack, "topics.orders", "--limit", "40")

    assert len(made) == 40
    assert {record["key"] for record in found} == set(made)
    for record in found:
        value = made[record["key"]].value
        shown = record["value"]
        assert record["value_format"] == "avro"
        assert set(shown) == set(value)
        # Decimals keep their digits, and times their moment; the rest is as it was made.
        assert shown["total"] == format(value["total"], ".2f")
        assert shown["voucher"] == (None if value["voucher"] is None else format(value["voucher"], ".2f"))
        assert shown["placed_at"] == record["timestamp"]
        for same in ("order_id", "customer_id", "channel", "ship_to", "note", "express", "tags"):
            assert shown[same] == value[same]
        for line, expected in zip(shown["lines"], value["lines"], strict=True):
            assert line == expected | {"unit_price": format(expected["unit_price"], ".2f")}
    places = {(record["partition"], record["offset"]) for record in found}
    assert len(places) == 40


def test_where_consume_begins_and_ends(stack: Stack) -> None:
    feed = Feed(stack.runtime, "topics.range", partitions=1)
    feed.send_texts(["plain", "with\nnewline and \x1b[31mescape", None])
    feed.send_bytes(0, b"no schema at all")
    feed.send_bytes(0, b"\xff\xfe")
    feed.send_bytes(0, None)

    found = consumed(stack, feed.topic, "--limit", "6")
    assert [record["offset"] for record in found] == [0, 1, 2, 3, 4, 5]
    assert [record["value_format"] for record in found] == ["avro"] * 3 + ["text", "bytes", "none"]
    assert [record["value"]["text"] for record in found[:3]] == [
        "plain",
        "with\nnewline and \x1b[31mescape",
        None,
    ]
    assert [record["value"] for record in found[3:]] == ["no schema at all", "base64://4=", None]
    assert found[0]["timestamp"] == "2026-01-01T00:00:00Z"

    lines = stack.run("topic", "consume", feed.topic, "--limit", "2").stdout.splitlines()
    assert len(lines) == 2, "a value cannot break its line"
    assert "\x1b" not in lines[1]
    assert lines[0].startswith("0:0  2026-01-01T00:00:00Z  ")

    assert consumed(stack, feed.topic, "--from", "latest", "--timeout", "1s") == []


def test_describe_tells_offsets_and_the_table(stack: Stack) -> None:
    feed = Feed(stack.runtime, "topics.described", partitions=2)
    feed.send(5)
    stack.run("table", "enable", feed.topic)
    stack.run("table", "sync", feed.topic, "--timeout", "120s")
    described = stack.json("topic", "describe", feed.topic)
    assert described["partitions"] == [
        {"partition": 0, "earliest": 0, "end": 3},
        {"partition": 1, "earliest": 0, "end": 2},
    ]
    assert described["table"] == "Running"
    assert feed.check() == 5


@pytest.mark.parametrize("command", ["describe", "consume", "delete"])
def test_a_topic_that_is_not_there(stack: Stack, command: str) -> None:
    assert "no topic 'topics.nowhere'" in refused(stack, "topic", command, "topics.nowhere")
