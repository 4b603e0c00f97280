"""The whole: status, events, and the query driver."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, status

from headgate.server import overview
from headgate.server.overview import Overview


def control_router(found: Overview) -> APIRouter:
    router = APIRouter(tags=["headgate"])
    store = found.store

    @router.get("/status", summary="Where things are and how they stand")
    def get_status() -> dict[str, Any]:
        return found.status()

    @router.get("/events", summary="What happened, the newest first")
    def events(
        subject: str | None = None, limit: Annotated[int, Query(ge=1, le=1000)] = 100
    ) -> list[dict[str, Any]]:
        return store.events(subject, limit)

    @router.get("/query", summary="The query driver and its address")
    def query() -> dict[str, Any]:
        record = store.process("query")
        state = overview.process(record)["state"]
        return {
            # The supervisor looks at what is wanted every now and then.
            "state": "starting" if record.wanted and state == "stopped" else state,
            "wanted": record.wanted,
            "spark_connect": found.runtime.spark_connect,
        }

    @router.post("/query/start", summary="Start the query driver", status_code=status.HTTP_202_ACCEPTED)
    def start_query() -> dict[str, Any]:
        """It is ready when its state is `ready`."""
        store.want("query")
        return query()

    return router
