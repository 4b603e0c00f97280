"""Topics as tables."""

import uuid
from typing import Any

from fastapi import APIRouter, status

from headgate.errors import InvalidRequest
from headgate.kafka.topics import Topics
from headgate.server import overview
from headgate.server.api.spec import TableRequest
from headgate.store import Store, TableRecord

EVENTS = 50
ENDING = ("disabled", "purged")


def tables_router(store: Store, topics: Topics) -> APIRouter:
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
        unknown = sorted(set(spec.start.offsets or {}) - set(topic.partitions))
        if unknown:
            raise InvalidRequest(
                f"Topic '{spec.topic}' has no partition {unknown[0]}.",
                f"Its partitions are 0 to {max(topic.partitions)}.",
            )
        store.enable_table(spec)
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


def _not_ending(record: TableRecord) -> None:
    if record.desired in ENDING:
        raise InvalidRequest(f"Table '{record.spec.topic}' is being disabled.")
