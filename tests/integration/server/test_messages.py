"""Messages by the API, with a real broker and registry: what is written is read again, in all formats."""

import json
import time
import uuid
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from headgate.access.credentials import Credentials
from headgate.access.roles import Grant
from tests.integration.server.conftest import Served

AVRO = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "note", "type": ["null", "string"], "default": None},
    ],
}
AVRO_VALUE = {"id": "9007199254740993", "price": "12.30", "at": "2026-11-19T12:00:00Z", "note": "<b>‮"}
JSON_SCHEMA = {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}
PROTO = 'syntax = "proto3"; message Order { int64 id = 1; repeated string tags = 2; bool paid = 3; }'
PROTO_VALUE = {"id": "9007199254740993", "tags": ["a"], "paid": True}


@pytest.fixture
def http(served: Served) -> Iterator[httpx.Client]:
    """As the user whose server it is."""
    with httpx.Client(base_url=f"{served.runtime.api}/", trust_env=False, timeout=60) as client:
        yield client


def new_topic(http: httpx.Client, partitions: int = 1) -> str:
    name = f"messages-{uuid.uuid4().hex[:10]}"
    assert http.post("topics", json={"name": name, "partitions": partitions}).status_code == 201
    return name


def register(served: Served, subject: str, kind: str, schema: Any) -> int:
    text = schema if isinstance(schema, str) else json.dumps(schema)
    answer = httpx.post(
        f"{served.runtime.registry}/subjects/{subject}/versions",
        json={"schema": text, "schemaType": kind},
        trust_env=False,
    )
    assert answer.status_code == 200, answer.text
    return int(answer.json()["id"])


def write(http: httpx.Client, topic: str, **said: Any) -> dict[str, Any]:
    answer = http.post(f"topics/{topic}/messages", json=said)
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


def read(http: httpx.Client, topic: str, **query: Any) -> dict[str, Any]:
    answer = http.get(f"topics/{topic}/messages", params=query)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


@pytest.mark.parametrize(
    ("kind", "schema", "value"),
    [
        ("AVRO", AVRO, AVRO_VALUE),
        ("JSON", JSON_SCHEMA, {"id": "9007199254740993", "more": [1, None, {"x": "y"}]}),
        ("PROTOBUF", PROTO, PROTO_VALUE),
    ],
)
def test_what_is_written_by_a_schema_is_read_again(
    served: Served, http: httpx.Client, kind: str, schema: Any, value: Any
) -> None:
    topic = new_topic(http)
    value_id = register(served, f"{topic}-value", kind, schema)
    key_id = register(served, f"{topic}-key", "AVRO", '"string"')
    # A number as JSON has it, which no browser could send.
    said = {"value_json": '{"id": 9007199254740993, "more": [1, null, {"x": "y"}]}'} if kind == "JSON" else {}
    headers = [{"name": "from", "text": "here"}, {"name": "raw", "hex": "00ff"}, {"name": "none"}]
    sent = write(http, topic, key="k-1", headers=headers, **(said or {"value": value}))
    assert (sent["partition"], sent["offset"], sent["value_schema_id"]) == (0, 0, value_id)
    (message,) = read(http, topic)["messages"]
    assert (message["key"], message["value"], message["error"]) == ("k-1", value, None)
    assert (message["key_schema_id"], message["value_schema_id"]) == (key_id, value_id)
    assert (message["key_format"], message["value_format"]) == ("avro", kind.lower())
    assert message["headers"] == [
        {"name": "from", "text": "here", "hex": None},
        {"name": "raw", "text": None, "hex": "00ff"},
        {"name": "none", "text": None, "hex": None},
    ]
    shown = http.get(f"topics/{topic}/schemas").json()
    assert [shown["value"]["versions"][0]["id"], shown["value"]["versions"][0]["type"]] == [value_id, kind]
    assert shown["value"]["compatibility"] == "BACKWARD"


def test_plain_parts_bytes_and_tombstones(http: httpx.Client) -> None:
    topic = new_topic(http)
    write(http, topic, key="k", value="as it is")
    write(http, topic, key="k", value={"a": 1})
    write(http, topic, key="00ff", key_format="hex", value="deadbeef", value_format="hex")
    write(http, topic, key="k", tombstone=True)
    shown = [(one["key"], one["value"], one["value_format"]) for one in read(http, topic)["messages"]]
    assert shown == [
        ("k", None, "none"),
        ("00ff", "deadbeef", "bytes"),
        ("k", {"a": 1}, "json"),
        ("k", "as it is", "text"),
    ]


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"value": {"id": "x", "price": "1", "at": 0}}, "Field 'id' of the value"),
        ({"value": {"id": 1}}, "Field 'price' of the value is missing"),
        ({}, "The value is null"),
        ({"value": AVRO_VALUE, "partition": 9}, "no partition 9"),
        ({"value": AVRO_VALUE, "tombstone": True, "key": "k"}, "A tombstone has no value"),
        ({"tombstone": True}, "without a key"),
        ({"value": "x", "key": "k", "key_format": "schema"}, "There is no subject"),
    ],
)
def test_what_cannot_be_written_is_refused(
    served: Served, http: httpx.Client, said: dict[str, Any], why: str
) -> None:
    topic = new_topic(http)
    register(served, f"{topic}-value", "AVRO", AVRO)
    answer = http.post(f"topics/{topic}/messages", json=said)
    assert answer.status_code == 400, answer.text
    assert why in answer.json()["message"]
    assert read(http, topic)["messages"] == []


def test_pages_by_offset_time_and_cursor(http: httpx.Client) -> None:
    topic = new_topic(http, partitions=2)
    for number in range(12):
        write(http, topic, value=f"number {number}", partition=number % 2)
    newest = read(http, topic, limit=5)
    assert [one["value"] for one in newest["messages"]] == [f"number {n}" for n in (11, 10, 9, 8, 7)]
    assert newest["previous"] is None
    older = read(http, topic, limit=5, cursor=newest["next"])
    assert [one["value"] for one in older["messages"]] == [f"number {n}" for n in (6, 5, 4, 3, 2)]
    back = read(http, topic, limit=5, cursor=older["previous"])
    assert back["messages"] == newest["messages"]
    write(http, topic, value="number 12", partition=0)
    newer = read(http, topic, limit=5, cursor=back["previous"] or newest["previous"] or back["next"])
    assert newer["messages"]
    first = read(http, topic, **{"from": "earliest"}, limit=3)
    assert [one["value"] for one in first["messages"]] == [f"number {n}" for n in (0, 1, 2)]
    from_there = read(http, topic, partition=1, offset=4)
    assert [one["value"] for one in from_there["messages"]] == ["number 9", "number 11"]
    at = newest["messages"][1]["timestamp"]
    assert "number 10" in [one["value"] for one in read(http, topic, time=at)["messages"]]
    found = read(http, topic, text="NUMBER 1")
    assert [one["value"] for one in found["messages"]] == [f"number {n}" for n in (12, 11, 10, 1)]
    assert found["looked_at"] == 13
    for wrong in ({"offset": 3}, {"partition": 7}, {"time": "soon"}, {"cursor": "x"}):
        assert http.get(f"topics/{topic}/messages", params=wrong).status_code == 400


def test_bytes_that_do_not_fit_their_schema_are_shown_with_the_reason(
    served: Served, http: httpx.Client
) -> None:
    topic = new_topic(http)
    number = register(served, f"{topic}-value", "AVRO", AVRO)
    bad = (b"\0" + number.to_bytes(4, "big") + b"\xff").hex()
    write(http, topic, value=bad, value_format="hex")
    (message,) = read(http, topic)["messages"]
    assert (message["value"], message["value_schema_id"]) == (bad, number)
    assert f"cannot be decoded by schema {number}" in message["error"]


def test_a_list_has_records_and_schemas(served: Served, http: httpx.Client) -> None:
    topic = new_topic(http, partitions=2)
    number = register(served, f"{topic}-value", "AVRO", AVRO)
    for _ in range(3):
        write(http, topic, value=AVRO_VALUE)
    deadline = time.monotonic() + 40
    while True:
        (listed,) = [one for one in http.get("topics").json() if one["name"] == topic]
        if listed["records"] == 3 and listed["value_schema"] is not None:
            break
        assert time.monotonic() < deadline, listed
        time.sleep(0.3)
    expected = {"subject": f"{topic}-value", "version": 1, "id": number, "type": "AVRO"}
    assert (listed["value_schema"], listed["key_schema"], listed["rate"]) == (expected, None, None)


def events(answer: httpx.Response) -> Iterator[tuple[str, Any]]:
    name = ""
    for line in answer.iter_lines():
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield name, json.loads(line.removeprefix("data: "))


def test_a_live_tail_shows_what_comes_and_brakes(served: Served, http: httpx.Client) -> None:
    topic = new_topic(http)
    write(http, topic, value="before")
    with http.stream("GET", f"topics/{topic}/messages/live", params={"most": 3}) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        coming = events(answer)
        assert next(coming) == ("tail", {"left_out": 0, "looked_at": 0})
        with httpx.Client(base_url=f"{served.runtime.api}/", trust_env=False, timeout=60) as other:
            for number in range(60):
                write(other, topic, value=f"number {number}")
            shown: list[str] = []
            left_out = 0
            for name, content in coming:
                if name == "message":
                    shown.append(content["value"])
                elif name == "tail":
                    left_out = content["left_out"]
                if left_out and len(shown) + left_out >= 60:
                    break
    assert "before" not in shown
    assert len(shown) < 60
    assert shown == sorted(shown, key=lambda text: int(text.split()[1]))


def test_a_live_tail_ends_with_the_credential(served: Served, http: httpx.Client) -> None:
    topic = new_topic(http)
    credentials = Credentials(served.store.engine)
    made, secret = credentials.create(f"tail-{uuid.uuid4().hex}", [Grant.parse("reader:local:messages-*")])
    with (
        httpx.Client(
            base_url=f"{served.runtime.api}/", auth=(made.client_id, secret), trust_env=False, timeout=60
        ) as reader,
        reader.stream("GET", f"topics/{topic}/messages/live") as answer,
    ):
        coming = events(answer)
        assert next(coming)[0] == "tail"
        credentials.revoke(made.name)
        name, content = next(coming)
        assert (name, content["error"]) == ("error", "NotAuthorized")
        assert list(coming) == []


def test_who_may_read_and_write(served: Served, http: httpx.Client) -> None:
    topic = new_topic(http)
    credentials = Credentials(served.store.engine)
    for role, wrote in (("reader", 403), ("writer", 201), ("admin", 201)):
        made, secret = credentials.create(
            f"{role}-{uuid.uuid4().hex}", [Grant.parse(f"{role}:local:messages-*")]
        )
        with httpx.Client(
            base_url=f"{served.runtime.api}/", auth=(made.client_id, secret), trust_env=False, timeout=60
        ) as client:
            said = {"value": "a secret of the record"}
            assert client.post(f"topics/{topic}/messages", json=said).status_code == wrote
            assert client.get(f"topics/{topic}/messages").status_code == 200
            internal = client.get("topics/__consumer_offsets/messages")
            assert internal.status_code == 404
    trail = json.dumps(http.get("audit", params={"about": topic}).json())
    assert "POST /api/v1/topics" in trail
    assert "a secret of the record" not in trail
    assert http.post("topics/__consumer_offsets/messages", json={"value": "x"}).status_code in (400, 404)
