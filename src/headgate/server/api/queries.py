"""SELECTs that stand alone: asked here, run by the query driver, read as lines of JSON."""

from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Request, status
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette.types import Receive, Scope, Send

from headgate.server.driver import QueryDriver, Rows
from headgate.sql.types import name_of
from headgate.statements.execute import Executor

NDJSON = "application/x-ndjson"


class Question(BaseModel):
    """One SELECT."""

    model_config = ConfigDict(extra="forbid")

    sql: str = Field(min_length=1, max_length=1_000_000)
    settings: dict[str, str] = Field(default_factory=dict, description="What is SET.")


class Passing(StreamingResponse):
    """The driver's lines, passed on. Whoever leaves, the other side learns it."""

    def __init__(self, rows: Rows, request: Request) -> None:
        super().__init__(_pieces(rows, request), media_type=NDJSON)
        self._rows = rows

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self._rows.close()


async def _pieces(rows: Rows, request: Request) -> AsyncIterator[bytes]:
    async for piece in rows.pieces():
        if await request.is_disconnected():
            return
        yield piece


def queries_router(executor: Executor, driver: QueryDriver) -> APIRouter:
    router = APIRouter(prefix="/queries", tags=["queries"])

    @router.post("", summary="Ask a SELECT", status_code=status.HTTP_201_CREATED)
    def ask(question: Question) -> dict[str, Any]:
        """Starts the query driver if need be. The rows are to be read within a minute."""
        asked, plan = executor.ask(question.sql, question.settings)
        driver.start()
        started = driver.call("POST", "/queries", asked.to_dict())
        about: dict[str, Any] = {"id": started["id"], "kind": asked.kind}
        if plan is not None:
            columns = [{"name": f.name, "type": name_of(f.dataType)} for f in plan.columns.fields]
            keyed = asked.kind == "live" and plan.changelog == "upsert"
            about |= {"columns": columns, "key": list(plan.key) if keyed else None}
            about |= {"warnings": list(plan.warnings)}
        else:
            about |= {"columns": None, "key": None, "warnings": []}
        return about

    @router.get("", summary="List the queries that run")
    def listed() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = driver.call("GET", "/queries") if driver.is_there else []
        return found

    @router.get("/{query_id}/rows", summary="Read a query's rows", response_class=StreamingResponse)
    async def rows(query_id: str, request: Request) -> Passing:
        """Lines of JSON, the last with the op `end` or `error`. Who leaves stops the query."""
        return Passing(await driver.rows(query_id), request)

    @router.delete("/{query_id}", summary="Stop a query", status_code=status.HTTP_204_NO_CONTENT)
    def cancel(query_id: str) -> None:
        driver.call("DELETE", f"/queries/{quote(query_id, safe='')}")

    return router
