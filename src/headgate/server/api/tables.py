"""Topics as tables."""

import uuid
from dataclasses import replace
from typing import Any

from fastapi import APIRouter, status

from headgate.errors import InvalidRequest
from headgate.kafka.offsets import Offsets
from headgate.kafka.topics import Topics
from headgate.model import Start, StartKind, Topic
from headgate.server import overview
from headgate.server.api.spec import TableRequest
from headgate.store import Store, TableRecord

EVENTS = 50
ENDING = ("disabled", "purged")


def tables_router(store: Store, topics: Topics, offsets: Offsets) -> APIRouter:
    """Requests are written down; the engine carries them out."""
    router = APIRouter(prefix="/tables", tags=["tables"])

    @router.get("", summary="List the tables")
    def list_tables() -> list[dict[str, Any]]:
        return [overview.table(record) for record in store.tables()]

    @router.post("", summary="Make a topic a table", status_code=status.HTTP_201_CREATED)
    def enable(wanted: TableRequest) -> dict[str, Any]:
        spec = wanted.spec()
        topic = topics.describe(spec.topic)
        if topic.internal:
            raise InvalidRequest(f"Topic '{spec.topic}' is internal to Kafka.")
        store.enable_table(replace(spec, start=settled(spec.start, topic, offsets)))
        return show(spec.topic)

    @router.get("/{topic}", summary="Show a table with its events")
    def show(topic: str) -> dict[str, Any]:
        return overview.table_with_detail(store.table(topic), store.events(topic, EVENTS))

    @router.delete("/{topic}", summary="Stop materializing a topic", status_code=status.HTTP_202_ACCEPTED)
    def disable(topic: str, purge: bool = False) -> dict[str, Any]:
        store.set_desired(topic, "purged" if purge else "disabled")
        return show(topic)

    @router.post("/{topic}/suspend", summary="Stop writing a table", status_code=status.HTTP_202_ACCEPTED)
    def suspend(topic: str) -> dict[str, Any]:
        _not_ending(store.table(topic))
        store.set_desired(topic, "suspended")
        return show(topic)

    @router.post(
        "/{topic}/resume", summary="Go on where a table stopped", status_code=status.HTTP_202_ACCEPTED
    )
    def resume(topic: str) -> dict[str, Any]:
        _not_ending(store.table(topic))
        store.set_desired(topic, "enabled")
        return show(topic)

    @router.post("/{topic}/sync", summary="Catch up at once", status_code=status.HTTP_202_ACCEPTED)
    def sync(topic: str) -> dict[str, Any]:
        """The table has caught up when its `detail.synced` is the token."""
        record = store.table(topic)
        _not_ending(record)
        if record.desired == "suspended":
            raise InvalidRequest(
                f"Table '{topic}' is suspended and does not catch up.",
                f"Resume it: `headgate table resume {topic}`.",
            )
        token = uuid.uuid4().hex
        store.request_sync(topic, token)
        return {"token": token}

    return router


def settled(start: Start, topic: Topic, offsets: Offsets) -> Start:
    """`latest` is the end at this moment, not when the engine gets round to it. Offsets must be there."""
    if start.kind is StartKind.LATEST:
        return replace(start, offsets=offsets.start_offsets(start, topic))
    if start.kind is StartKind.OFFSETS:
        offsets.start_offsets(start, topic)
    return start


def _not_ending(record: TableRecord) -> None:
    if record.desired in ENDING:
        raise InvalidRequest(f"Table '{record.spec.topic}' is being disabled.")
