"""How all stands, as it happens; and the figures of the last hour."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, status

from headgate.access import Role
from headgate.access.gate import Visit
from headgate.errors import InvalidRequest
from headgate.server.access import Access, Asking, check_statement, needs
from headgate.server.answers.live import SampleAnswer
from headgate.server.answers.shape import answers
from headgate.server.live import EventStream, Live
from headgate.server.live.samples import KEPT_SECONDS, Sample
from headgate.store import Statements, Store

STREAM: dict[str, Any] = {
    "responses": {
        200: {
            "description": "Server-sent events: `status`, as GET /status answers, whenever something has "
            "changed, once a second at most; `sample`, as in GET /samples, every ten seconds.",
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
        }
    }
}


def live_router(live: Live, store: Store) -> APIRouter:
    router = APIRouter(tags=["headgate"])
    statements = Statements(store.engine)

    @router.get(
        "/live",
        summary="How things stand, as it happens",
        response_class=EventStream,
        status_code=status.HTTP_200_OK,
        **STREAM,
        **needs(Role.READER, "seen"),
    )
    async def stream(request: Request, access: Asking) -> EventStream:
        """It ends with the session or the credential that it was opened with, and with the server."""
        return EventStream(live.open(Visit.of(request.scope), access), live.close)

    @router.get(
        "/samples",
        summary="Figures of the last hour, every ten seconds",
        **answers(list[SampleAnswer]),
        **needs(Role.READER, "seen"),
    )
    def samples(
        access: Asking,
        minutes: Annotated[float, Query(gt=0, le=KEPT_SECONDS / 60)] = KEPT_SECONDS / 60,
        table: str | None = None,
        statement: str | None = None,
    ) -> list[dict[str, Any]]:
        """In total, of the tables that one sees; or of one table or statement, under its name. A server that
        has just started has none yet."""
        if table is not None and statement is not None:
            raise InvalidRequest("Samples are of one thing.", "Name a table or a statement.")
        return [_shown(one, access, table, statement) for one in _asked(access, table, statement, minutes)]

    def _asked(access: Access, table: str | None, statement: str | None, minutes: float) -> list[Sample]:
        if table is not None:
            access.check_table(table, Role.READER)
        found = live.samples(minutes * 60)
        if statement is not None:
            check_statement(access, statements, statement, Role.READER)
            # Another may have had the name before.
            created_at = statements.get(statement).created_at
            return [one for one in found if one.at >= created_at]
        return found

    return router


def _shown(sample: Sample, access: Access, table: str | None, statement: str | None) -> dict[str, Any]:
    if table is None and statement is None:
        return sample.shown(access.sees, lambda _: False, with_names=False)
    return sample.shown(lambda name: name == table, lambda name: name == statement)
