"""One record of ten is poison: good and dead together are what was produced; replay brings some back."""

import json
import os
import random
from base64 import b64decode, b64encode
from collections import Counter
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema

from tests.support.stack import Stack
from tests.support.stream import TRACE, Letter, Stream, mixed

SOAK = os.environ.get("HEADGATE_SOAK") == "1"
GOOD = 90_000 if SOAK else 450
DEPTH = 10_000
COLUMNS = "n bigint, text string"
JSON_SCHEMA = {
    "type": "object",
    "title": "Reading",
    "properties": {"n": {"type": "integer"}, "text": {"type": "string"}},
    "required": ["n", "text"],
    "additionalProperties": False,
}


def enable(stack: Stack, topic: str, *more: str) -> None:
    stack.run("table", "enable", topic, "--freshness", "1s", "--on-error", "log", *more)


def sync(stack: Stack, topic: str) -> None:
    stack.run("table", "sync", topic, "--timeout", "300s")


def told(stack: Stack, topic: str) -> dict[str, tuple[int, int]]:
    """What `dlq list` says: by class of error, how many are dead and how many were replayed."""
    found = [row for row in stack.json("dlq", "list") if row["topic"] == topic]
    return {row["error_class"]: (row["dead"], row["replayed"]) for row in found}


def shown(stack: Stack, topic: str, *more: str) -> list[Letter]:
    """What `dlq show` says, with the bytes."""
    found = stack.json("dlq", "show", topic, "--limit", "1000000", *more)
    headers = [{"key": key, "value": value and "base64:" + b64encode(value).decode()} for key, value in TRACE]
    assert all(row["headers"] == headers for row in found)
    return [Letter(row["partition"], row["offset"], decoded(row["value"])) for row in found]


def decoded(text: str | None) -> bytes | None:
    return None if text is None else b64decode(text.removeprefix("base64:"), validate=True)


def poisoned_json(kinds: list[bytes], count: int) -> list[tuple[None, bytes]]:
    return [(None, kinds[number % len(kinds)]) for number in range(count)]


@pytest.mark.soak
def test_poison_in_avro(stack: Stack) -> None:
    chance = random.Random(7)
    stream = Stream(stack.runtime, "poison.avro", partitions=3)
    enable(stack, stream.topic)
    later = stream.register(1) + 1
    # Good ones, but for their schema, which nobody has registered yet.
    hidden = stream.new_rows(GOOD // 45, version=2)
    early = [(None, stream.encode(row, version=2, schema_id=later)) for row in hidden]
    records: list[Any] = [*mixed(stream, GOOD, 0.08, chance), *early]
    chance.shuffle(records)
    for part in (records[: len(records) // 2], records[len(records) // 2 :]):
        stream.send_mixed(part)
        sync(stack, stream.topic)
    assert len(stream.rows) + len(stream.dead) == len(records)
    assert 0.08 < len(stream.dead) / len(records) < 0.12
    stream.check()
    stream.check_dead()
    assert Counter(shown(stack, stream.topic)) == Counter(stream.dead)
    before = told(stack, stream.topic)
    assert set(before) == {"NoSchemaId", "UnknownSchema", "Undecodable"}
    assert sum(dead for dead, _ in before.values()) == len(stream.dead)
    assert before["UnknownSchema"][0] >= len(hidden)

    # Nothing is better yet, then the schema is there.
    assert stack.json("dlq", "replay", stream.topic)["replayed"] == 0
    assert stream.register(2) == later
    left = len(stream.dead) - len(hidden)
    assert stack.json("dlq", "replay", stream.topic) == {"replayed": len(hidden), "dead": left}
    assert stack.json("dlq", "replay", stream.topic) == {"replayed": 0, "dead": left}
    stream.rows += hidden
    stream.check(version=2)
    stream.check_dead(replayed=len(hidden))
    after = told(stack, stream.topic)
    assert after["UnknownSchema"] == (before["UnknownSchema"][0] - len(hidden), len(hidden))
    assert len(shown(stack, stream.topic)) == left
    assert Counter(shown(stack, stream.topic, "--replayed")) == Counter(stream.dead)
    # And the table goes on.
    stream.send(10, version=2)
    sync(stack, stream.topic)
    stream.check(version=2)
    stack.verify(stream.topic)


def bad_documents(good: bytes) -> list[bytes]:
    """No documents, or not what the columns say."""
    return [
        b"",
        b"[" * DEPTH + b"]" * DEPTH,
        b'{"n":' + b"[" * DEPTH + b"]" * DEPTH + b',"text":"x"}',
        b'{"n":1,"text":' + b'{"a":' * DEPTH + b"1" + b"}" * DEPTH + b"}",
        b"[" * DEPTH,
        b'{"n":1,"text":"\xff\xfe"}',
        good[:-1],
        good + b"x",
        b'{"n":"one","text":"x"}',
        b'{"n":9223372036854775808,"text":"x"}',
        b"\x01\x02\x03",
    ]


@pytest.mark.soak
@pytest.mark.parametrize("registered", [False, True], ids=["declared", "registered"])
def test_poison_in_json(stack: Stack, registered: bool) -> None:
    chance = random.Random(8)
    stream = Stream(stack.runtime, f"poison.json-{'registered' if registered else 'declared'}", partitions=3)
    prefix = b""
    if registered:
        number = stream.registry.register_schema(stream.subject, Schema(json.dumps(JSON_SCHEMA), "JSON"))
        prefix = b"\x00" + number.to_bytes(4, "big")
        enable(stack, stream.topic)
    else:
        enable(stack, stream.topic, "--value-format", "json", "--value-columns", COLUMNS)
    rows = stream.new_rows(GOOD)
    rows[0]["n"] = 2**53 + 1
    records: list[Any] = [(row, prefix + json.dumps(row).encode()) for row in rows]
    kinds = [prefix + kind for kind in bad_documents(json.dumps(rows[1]).encode())]
    records += poisoned_json(kinds, GOOD // 9)
    chance.shuffle(records)
    stream.send_mixed(records)
    sync(stack, stream.topic)
    assert len(stream.rows) + len(stream.dead) == len(records)
    stream.check()
    stream.check_dead()
    assert Counter(shown(stack, stream.topic)) == Counter(stream.dead)
    assert sum(dead for dead, _ in told(stack, stream.topic).values()) == len(stream.dead)
    assert stack.json("dlq", "replay", stream.topic) == {"replayed": 0, "dead": len(stream.dead)}
    stack.verify(stream.topic)
