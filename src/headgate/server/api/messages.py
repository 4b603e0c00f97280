"""Messages of a topic: a page of them, those that come, and a new one."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, Self

from confluent_kafka import Message
from fastapi import APIRouter, Query, status
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from headgate.access import Principal, Role
from headgate.errors import InvalidRequest
from headgate.kafka.access import KafkaAccess
from headgate.kafka.offsets import Offsets
from headgate.kafka.topics import Topics, no_such_topic
from headgate.model import Topic
from headgate.registry.client import SchemaSource
from headgate.server.access import Access, Asking, needs
from headgate.server.answers import answers
from headgate.server.answers.topics import MessagesAnswer, ProducedAnswer
from headgate.server.api.records import Readers, held_lines
from headgate.server.messages.cursor import Cursor
from headgate.server.messages.decoding import MessageReader
from headgate.server.messages.encoding import encode_hex, encode_plain, encode_with, parse_exact
from headgate.server.messages.live import Tail
from headgate.server.messages.pages import Page, read_page
from headgate.server.messages.producing import MessageWriter, NewMessage
from headgate.server.messages.ranges import range_reader
from headgate.server.messages.schema_rights import SchemaRights
from headgate.server.standing import Standing, Stands
from headgate.statements.asking import Caller

MOST_IN_A_PAGE = 500
# So many live tails at a time; each holds a thread and a connection to the brokers.
MOST_TAILS = 8
FASTEST_TAIL = 200
EVENTS = "text/event-stream"
PartFormat = Literal["schema", "plain", "hex"]


class HeaderRequest(BaseModel):
    """A header: text, bytes in hex, or neither."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(min_length=1, max_length=1000)
    text: str | None = None
    hex: str | None = None

    def pair(self) -> tuple[str, bytes | None]:
        if self.hex is not None:
            return self.name, encode_hex(self.hex, f"header '{self.name}'")
        return self.name, None if self.text is None else self.text.encode()


class MessageRequest(BaseModel):
    """A message that is to be written: each part by the latest schema of its subject where there is one, as
    plain text, or as bytes in hex."""

    model_config = ConfigDict(extra="forbid")

    partition: int | None = Field(None, ge=0)
    key: JsonValue = None
    value: JsonValue = None
    key_json: str | None = Field(None, description="The key as JSON text: its numbers stay as written.")
    value_json: str | None = Field(None, description="The value as JSON text: its numbers stay as written.")
    key_format: PartFormat | None = Field(None, description="None is `schema` where there is one.")
    value_format: PartFormat | None = Field(None, description="None is `schema` where there is one.")
    headers: list[HeaderRequest] = Field(default_factory=list, max_length=100)
    tombstone: bool = Field(False, description="A key without a value: the end of its rows.")

    @model_validator(mode="after")
    def _says_each_part_once(self) -> Self:
        for name in ("key", "value"):
            if getattr(self, name) is not None and getattr(self, f"{name}_json") is not None:
                raise ValueError(f"{name} and {name}_json are the same thing: say one of them")
        return self


@dataclass(frozen=True)
class _Encoded:
    data: bytes | None
    schema_id: int | None = None


def messages_router(
    access: KafkaAccess,
    topics: Topics,
    offsets: Offsets,
    schemas: SchemaSource,
    readers: Readers,
    callers: Callable[[Principal], Caller],
    stands: Stands,
) -> APIRouter:
    """`callers`: how much one may read; `stands`: that they may still be answered."""
    router = APIRouter(prefix="/topics", tags=["topics"])
    writer, tails = MessageWriter(access), Readers(MOST_TAILS)

    def seen(name: str, asking: Access) -> Topic:
        topic = topics.describe(name)
        if topic.internal and not asking.has(name, Role.ADMIN):
            raise no_such_topic(name)
        return topic

    @router.get(
        "/{name}/messages",
        summary="A page of a topic's messages",
        **needs(Role.READER, "topic"),
        **answers(MessagesAnswer),
    )
    def page(
        name: str,
        asking: Asking,
        start: Annotated[
            Literal["earliest", "latest"],
            Query(alias="from", description="`latest` shows the newest first, `earliest` the oldest."),
        ] = "latest",
        partition: Annotated[int | None, Query(ge=0, description="Only this one.")] = None,
        offset: Annotated[int | None, Query(ge=0, le=2**62, description="From there on.")] = None,
        time: Annotated[str | None, Query(description="From there on: `2026-11-19T12:00:00Z`.")] = None,
        limit: Annotated[int, Query(ge=1, le=MOST_IN_A_PAGE)] = 50,
        text: Annotated[str | None, Query(description="Only with this in key, value or a header.")] = None,
        cursor: Annotated[str | None, Query(description="`next` or `previous` of another page.")] = None,
    ) -> dict[str, Any]:
        """Committed messages, decoded by the schemas that one sees. A filter is held against ten thousand
        records at most, or for five seconds; `is_whole` is false then, and `next` goes on."""
        topic = seen(name, asking)
        caller = callers(asking.caller)
        most = min(limit, caller.rows or limit)
        bounds = _bounds(offsets, topic)
        where = (
            _start(offsets, topic, bounds, start, partition, offset, time)
            if cursor is None
            else Cursor.parse(cursor, topic.id)
        )
        asking.note_records()
        decoder = MessageReader(schemas, SchemaRights(schemas, asking).sees)
        shown: dict[tuple[int | None, int | None], dict[str, Any]] = {}

        def matches(message: Message) -> bool:
            record = shown[message.partition(), message.offset()] = decoder.shown(message)
            return _has_text(record, text or "")

        with readers.take(), range_reader(access, name) as source:
            reach = {p: bounds[p] for p in where.offsets if p in bounds}
            begin = {p: where.offsets[p] for p in reach}
            found = read_page(source, reach, begin, where.way, most, matches if text else None)
        messages = [
            shown.get((one.partition(), one.offset())) or decoder.shown(one) for one in found.messages
        ]
        if (where.way == "older") != where.newest_first:
            messages.reverse()
        return {"messages": messages, **_around(topic, where, found, bounds)}

    @router.get(
        "/{name}/messages/live",
        summary="A topic's messages as they come",
        response_class=StreamingResponse,
        **needs(Role.READER, "topic"),
    )
    def live(
        name: str,
        asking: Asking,
        partition: Annotated[int | None, Query(ge=0, description="Only this one.")] = None,
        text: Annotated[str | None, Query(description="Only with this in key, value or a header.")] = None,
        most: Annotated[int, Query(ge=1, le=FASTEST_TAIL, description="Messages in a second.")] = 20,
    ) -> StreamingResponse:
        """Server-sent events: `message` as in a page, `tail` with how many were `left_out` and `looked_at`,
        and `error` when it ends. What is too fast to be shown is not read."""
        topic = seen(name, asking)
        starts = {p: end for p, (_, end) in _bounds(offsets, topic).items()}
        if partition is not None:
            starts = {_known(topic, partition): starts[partition]}
        asking.note_records()
        tails.check()
        matches = None if not text else lambda record: _has_text(record, text)
        still = Standing(stands, asking.caller)
        decoder = MessageReader(schemas, SchemaRights(schemas, asking).sees)
        tail = Tail(access, name, starts, decoder.shown, most, matches, still.check)
        # No proxy is to gather them.
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(_lines(tail, tails), media_type=EVENTS, headers=headers)

    @router.post(
        "/{name}/messages",
        summary="Write a message",
        status_code=status.HTTP_201_CREATED,
        **needs(Role.WRITER, "topic"),
        **answers(ProducedAnswer, 201),
    )
    def produce(name: str, wanted: MessageRequest) -> dict[str, Any]:
        """By the latest schema of `NAME-key` and `NAME-value`, where there is one. What does not fit is
        refused, and the field is named."""
        topic = topics.describe(name)
        if topic.internal:
            raise InvalidRequest(f"Topic '{name}' is internal: nothing is written to it by hand.")
        chosen = None if wanted.partition is None else _known(topic, wanted.partition)
        key = _encoded(schemas, name, "key", wanted)
        value = _encoded(schemas, name, "value", wanted)
        _check_tombstone(wanted, key)
        headers = [header.pair() for header in wanted.headers]
        at = writer.write(name, NewMessage(key.data, value.data, headers, chosen))
        return {
            "partition": at[0],
            "offset": at[1],
            "key_schema_id": key.schema_id,
            "value_schema_id": value.schema_id,
            "bytes": len(key.data or b"") + len(value.data or b""),
        }

    return router


def _lines(tail: Tail, tails: Readers) -> Iterator[bytes]:
    return held_lines(tail.events(), tails)


def _bounds(offsets: Offsets, topic: Topic) -> dict[int, tuple[int, int]]:
    return {one["partition"]: (one["earliest"], one["end"]) for one in offsets.reach(topic)}


def _known(topic: Topic, partition: int) -> int:
    if partition not in topic.partitions:
        known = ", ".join(map(str, topic.partitions))
        raise InvalidRequest(
            f"Topic '{topic.name}' has no partition {partition}.", f"Its partitions are {known}."
        )
    return partition


def _start(
    offsets: Offsets,
    topic: Topic,
    bounds: Mapping[int, tuple[int, int]],
    start: Literal["earliest", "latest"],
    partition: int | None,
    offset: int | None,
    time: str | None,
) -> Cursor:
    wanted = topic.partitions if partition is None else (_known(topic, partition),)
    if offset is not None and time is not None:
        raise InvalidRequest("There is an offset, and there is a time.", "Say one of them.")
    if offset is not None:
        if partition is None:
            raise InvalidRequest(
                "An offset is one of a partition, and none is said.", f"Say which: partition={wanted[0]}."
            )
        return Cursor(topic.id, "newer", False, {partition: offset})
    if time is not None:
        at = offsets.at_timestamp(topic, _milliseconds(time))
        return Cursor(topic.id, "newer", False, {p: at[p] for p in wanted})
    newest_first = start == "latest"
    edge = 1 if newest_first else 0
    places = {p: bounds[p][edge] for p in wanted}
    return Cursor(topic.id, "older" if newest_first else "newer", newest_first, places)


def _milliseconds(text: str) -> int:
    if text.isdigit():
        return int(text)
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidRequest(
            f"'{text}' is no time.", "Write 2026-11-19T12:00:00Z, or milliseconds."
        ) from error
    return int((at if at.tzinfo is not None else at.replace(tzinfo=UTC)).timestamp() * 1000)


def _around(
    topic: Topic, where: Cursor, found: Page, bounds: Mapping[int, tuple[int, int]]
) -> dict[str, Any]:
    older = Cursor(topic.id, "older", where.newest_first, found.low)
    newer = Cursor(topic.id, "newer", where.newest_first, found.high)
    has_older = any(offset > bounds[p][0] for p, offset in found.low.items())
    has_newer = any(offset < bounds[p][1] for p, offset in found.high.items())
    down, up = (older.to_text() if has_older else None), (newer.to_text() if has_newer else None)
    following, preceding = (down, up) if where.newest_first else (up, down)
    return {
        "next": following,
        "previous": preceding,
        "looked_at": found.looked_at,
        "is_whole": found.is_whole,
    }


def _has_text(record: Mapping[str, Any], text: str) -> bool:
    """Whether a text is in the key, the value or a header, in capitals or not."""
    wanted = text.casefold()
    for part in (record["key"], record["value"]):
        said = part if isinstance(part, str) else json.dumps(part, ensure_ascii=False)
        if wanted in said.casefold():
            return True
    return any(wanted in (content or "").casefold() for one in record["headers"] for content in one.values())


def _encoded(
    schemas: SchemaSource, topic: str, part: Literal["key", "value"], wanted: MessageRequest
) -> _Encoded:
    text: str | None = getattr(wanted, f"{part}_json")
    given: Any = getattr(wanted, part)
    chosen: PartFormat | None = getattr(wanted, f"{part}_format")
    if text is None and given is None and (part == "key" or wanted.tombstone):
        return _Encoded(None)
    if chosen == "hex":
        return _Encoded(encode_hex(given, part))
    schema = schemas.latest(f"{topic}-{part}") if chosen != "plain" else None
    if schema is None:
        if chosen == "schema":
            raise InvalidRequest(
                f"There is no subject '{topic}-{part}' in the schema registry.",
                f"Register a schema for it, or say {part}_format plain.",
            )
        if text is None and given is None:
            raise InvalidRequest("There is no value.", "Say tombstone, if a key without a value is meant.")
        return _Encoded(encode_plain(given, text))
    value = given if text is None else parse_exact(text, part)
    return _Encoded(encode_with(schema, value, text, part), schema.id)


def _check_tombstone(wanted: MessageRequest, key: _Encoded) -> None:
    if not wanted.tombstone:
        return
    if wanted.value is not None or wanted.value_json is not None:
        raise InvalidRequest("A tombstone has no value.", "Leave the value out, or tombstone.")
    if key.data is None:
        raise InvalidRequest("A tombstone without a key ends nothing.", "Say the key.")
