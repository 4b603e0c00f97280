"""Records of topics, for people to look at: committed ones, decoded with the schema registry."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Literal, Self

from fastapi import APIRouter, Query
from fastapi.responses import StreamingResponse

from headgate.access import Principal, Role
from headgate.errors import HeadgateError, LimitReached, NotFound, TooManyRequests
from headgate.kafka.access import KafkaAccess
from headgate.kafka.offsets import Offsets
from headgate.kafka.readable import Reader, WriterSchema
from headgate.kafka.records import committed_records
from headgate.kafka.topics import Topics, no_such_topic
from headgate.model import Start, StartKind
from headgate.options import parse_duration
from headgate.registry.client import SchemaSource
from headgate.server.access import Access, Asking, needs
from headgate.server.messages.schema_rights import SchemaRights
from headgate.server.standing import Standing, Stands
from headgate.statements.asking import Caller

NDJSON = "application/x-ndjson"
# Each holds a thread of the server while it waits for records.
MOST_READERS = 8
LONGEST_SECONDS = 300.0


class Readers:
    """How many topics are being read, `most` at a time."""

    def __init__(self, most: int = MOST_READERS) -> None:
        self._lock = threading.Lock()
        self._most = most
        self._count = 0

    def check(self) -> None:
        if self._count >= self._most:
            raise self._refusal()

    @contextmanager
    def take(self) -> Iterator[None]:
        """One of them while the block lasts; refused where there is none left."""
        with self._lock:
            if self._count >= self._most:
                raise self._refusal()
            self._count += 1
        try:
            yield
        finally:
            with self._lock:
                self._count -= 1

    def _refusal(self) -> TooManyRequests:
        return TooManyRequests(f"{self._most} topics are being read already.", "Try again in a moment.")

    def __enter__(self) -> Self:
        with self._lock:
            self._count += 1
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._count -= 1


def records_router(
    access: KafkaAccess,
    schemas: SchemaSource,
    held: Readers,
    callers: Callable[[Principal], Caller],
    stands: Stands,
) -> APIRouter:
    router = APIRouter(prefix="/topics", tags=["topics"])
    topics, offsets = Topics(access), Offsets(access)

    def reader_for(asking: Access) -> Reader:
        """One that reads by the schemas which the caller sees."""
        rights = SchemaRights(schemas, asking)

        def schema_of(schema_id: int) -> WriterSchema:
            if not rights.sees(schema_id):
                raise NotFound(f"Schema {schema_id} is under no subject that {asking.caller.name} sees.")
            found = schemas.schema(schema_id)
            return WriterSchema(found.type.value, found.text)

        return Reader(schema_of)

    @router.get(
        "/{name}/records",
        summary="Read a topic's records",
        response_class=StreamingResponse,
        **needs(Role.READER, "topic"),
    )
    def records(
        name: str,
        asking: Asking,
        start: Annotated[Literal["earliest", "latest"], Query(alias="from")] = "earliest",
        limit: Annotated[int | None, Query(ge=1, le=2**31)] = None,
        timeout: Annotated[str, Query(description="Ends when no record came for this long.")] = "5s",
    ) -> StreamingResponse:
        """Lines of JSON, the last with the op `end` or `error`. Decoded by the schemas that one sees."""
        seconds = min(parse_duration(timeout), LONGEST_SECONDS)
        topic = topics.describe(name)
        if topic.internal and not asking.has(name, Role.ADMIN):
            raise no_such_topic(name)
        places = offsets.start_offsets(Start(StartKind(start)), topic)
        asking.note_records()
        held.check()
        messages = committed_records(access, name, places, limit, seconds)
        reader = reader_for(asking)
        still = Standing(stands, asking.caller)
        rows = bounded((reader.record(message) for message in messages), callers(asking.caller), still)
        return StreamingResponse(held_lines(rows, held), media_type=NDJSON)

    return router


def bounded(records: Iterator[dict[str, Any]], caller: Caller, still: Standing) -> Iterator[bytes]:
    """The lines of as many records as the caller may have, and how it ended."""
    count = size = 0
    try:
        for record in records:
            still.check()
            line = _line({"op": "insert", "row": record})
            count, size = count + 1, size + len(line)
            for name, value, most in (("rows", count, caller.rows), ("bytes", size, caller.bytes)):
                if most and value > most:
                    raise LimitReached(
                        f"The topic gives more than {most} {name}, the limit for {caller.name}.",
                        f"Ask for less, or raise {caller.limits}.{name}.",
                    )
            yield line
    except HeadgateError as error:
        failure = {"op": "error", "error": type(error).__name__}
        yield _line(failure | {"message": error.message, "remedy": error.remedy})
        return
    yield _line({"op": "end", "state": "Completed", "rows": count})


def held_lines(lines: Iterator[bytes], held: Readers) -> Iterator[bytes]:
    """Counted from the first line on: an answer that nobody begins to read holds nothing."""
    with held:
        yield from lines


def _line(content: dict[str, Any]) -> bytes:
    return json.dumps(content, ensure_ascii=False).encode() + b"\n"
