"""Dead letters as people look at them: from their topic, without Spark."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any

from confluent_kafka import Message
from fastapi import APIRouter, Query

from headgate.access import Principal, Role
from headgate.errors import InvalidRequest
from headgate.kafka.access import KafkaAccess
from headgate.kafka.offsets import Offsets
from headgate.kafka.readable import moment
from headgate.kafka.topics import Topics
from headgate.model import DEAD_LETTER_HEADERS, OnError
from headgate.registry.client import SchemaSource
from headgate.server.access import Asking, needs
from headgate.server.answers import answers
from headgate.server.answers.dead_letters import DeadLettersAnswer
from headgate.server.api.records import Readers
from headgate.server.messages.cursor import Cursor
from headgate.server.messages.decoding import MessageReader
from headgate.server.messages.pages import read_page
from headgate.server.messages.ranges import range_reader
from headgate.server.messages.schema_rights import SchemaRights
from headgate.statements.asking import Caller
from headgate.store import Store

MOST_IN_A_PAGE = 200
# Of a payload, in hex.
MOST_BYTES = 16 * 1024


def dead_letters_router(
    store: Store,
    access: KafkaAccess,
    topics: Topics,
    offsets: Offsets,
    schemas: SchemaSource,
    readers: Readers,
    callers: Callable[[Principal], Caller],
) -> APIRouter:
    router = APIRouter(prefix="/tables", tags=["tables"])

    @router.get(
        "/{topic}/dead-letters",
        summary="A table's dead letters",
        **needs(Role.READER, "table"),
        **answers(DeadLettersAnswer),
    )
    def dead_letters(
        topic: str,
        asking: Asking,
        limit: Annotated[int, Query(ge=1, le=MOST_IN_A_PAGE)] = 50,
        cursor: Annotated[str | None, Query(description="`next` of another page.")] = None,
    ) -> dict[str, Any]:
        """The newest first, those that were replayed since among them. It takes the right to read the topic
        of the dead letters too."""
        spec = store.table(topic).spec
        if spec.on_error is not OnError.LOG:
            raise InvalidRequest(
                f"Table '{topic}' keeps no dead letters: its error policy is {spec.on_error}.",
                f"It does with `headgate table alter {topic} --on-error log`.",
            )
        name = spec.dead_letters_name
        asking.check_topic(name, Role.READER)
        found = topics.describe_many([name]).get(name)
        if found is None:
            return {"dead_letters": [], "topic": name, "next": None, "looked_at": 0, "is_whole": True}
        bounds = {one["partition"]: (one["earliest"], one["end"]) for one in offsets.reach(found)}
        ends = {p: end for p, (_, end) in bounds.items()}
        where = Cursor(found.id, "older", True, ends) if cursor is None else Cursor.parse(cursor, found.id)
        most = min(limit, callers(asking.caller).rows or limit)
        asking.note_records()
        begin = {p: offset for p, offset in where.offsets.items() if p in bounds}
        with readers.take(), range_reader(access, name) as source:
            reach = {p: bounds[p] for p in begin}
            # Several tables may share a topic of dead letters.
            page = read_page(
                source, reach, begin, "older", most, lambda one: _headers(one).get("topic") == topic
            )
        decoder = MessageReader(schemas, SchemaRights(schemas, asking).sees)
        older = Cursor(found.id, "older", True, page.low)
        has_older = any(offset > bounds[p][0] for p, offset in page.low.items())
        return {
            "dead_letters": [_shown(one, decoder) for one in page.messages],
            "topic": name,
            "next": older.to_text() if has_older else None,
            "looked_at": page.looked_at,
            "is_whole": page.is_whole,
        }

    return router


def _shown(message: Message, decoder: MessageReader) -> dict[str, Any]:
    said = _headers(message)
    number = said.get("schema_id")
    return {
        "partition": int(said.get("partition") or 0),
        "offset": int(said.get("offset") or 0),
        "timestamp": said.get("timestamp"),
        "failed_at": moment(*message.timestamp()),
        "schema_id": None if number is None else int(number),
        "error_class": said.get("error_class") or "",
        "error_message": said.get("error_message") or "",
        "key": _payload(message.key(), decoder),
        "value": _payload(message.value(), decoder),
    }


def _payload(data: str | bytes | None, decoder: MessageReader) -> dict[str, Any] | None:
    if data is None:
        return None
    raw = data.encode() if isinstance(data, str) else data
    part = decoder.read(raw)
    return {
        "hex": raw[:MOST_BYTES].hex(),
        "bytes": len(raw),
        "content": part.content,
        "format": part.format,
        "schema_id": part.schema_id,
        "error": part.error,
    }


def _headers(message: Message) -> Mapping[str, str | None]:
    """Those of Headgate's, without their prefix: the last of a name is ours."""
    pairs: list[tuple[str, str | bytes | None]] = list(message.headers() or ())  # type: ignore[arg-type]
    return {
        name.removeprefix(DEAD_LETTER_HEADERS): content.decode(errors="replace")
        if isinstance(content, bytes)
        else content
        for name, content in pairs
        if name.startswith(DEAD_LETTER_HEADERS)
    }
