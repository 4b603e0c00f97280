"""The whole: status, events, and the query driver."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, status

from headgate.access import Role
from headgate.server import overview
from headgate.server.access import Asking, needs
from headgate.server.answers import answers
from headgate.server.answers.events import EventAnswer
from headgate.server.answers.status import QueryDriverAnswer, StatusAnswer
from headgate.server.overview import Overview
from headgate.server.standings import StandingsReader
from headgate.server.status import status_of


def control_router(found: Overview) -> APIRouter:
    router = APIRouter(tags=["headgate"])
    store = found.store

    @router.get(
        "/status",
        summary="Where things are and how they stand",
        **needs(Role.READER, "seen"),
        **answers(StatusAnswer),
    )
    def get_status(access: Asking) -> dict[str, Any]:
        return status_of(found.runtime, StandingsReader(found.runtime, store).read(), access)

    @router.get(
        "/events",
        summary="What happened, the newest first",
        **needs(Role.READER, "seen"),
        **answers(list[EventAnswer]),
    )
    def events(
        access: Asking,
        subject: str | None = None,
        text: Annotated[
            str | None, Query(description="In its subject, kind or message.", max_length=500)
        ] = None,
        before: Annotated[int | None, Query(description="Older than this event.", ge=0, le=2**62)] = None,
        limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    ) -> list[dict[str, Any]]:
        if access.caller.is_admin:
            return store.events(subject, limit, before=before, text=text)
        subjects = store.event_subjects() if subject is None else [subject]
        seen = found.seen_by(access).subjects(subjects)
        return store.events(seen, limit, before=before, text=text, is_current=True)

    @router.get(
        "/query",
        summary="The query driver and its address",
        **needs(Role.READER, "seen"),
        **answers(QueryDriverAnswer),
    )
    def query() -> dict[str, Any]:
        record = store.process("query")
        state = overview.process(record)["state"]
        return {
            # The supervisor looks at what is wanted every now and then.
            "state": "starting" if record.wanted and state == "stopped" else state,
            "wanted": record.wanted,
            "spark_connect": found.runtime.spark_connect,
        }

    @router.post(
        "/query/start",
        summary="Start the query driver",
        status_code=status.HTTP_202_ACCEPTED,
        **needs(Role.READER, "seen"),
        **answers(QueryDriverAnswer, 202),
    )
    def start_query() -> dict[str, Any]:
        """It is ready when its state is `ready`."""
        store.want("query")
        return query()

    return router
