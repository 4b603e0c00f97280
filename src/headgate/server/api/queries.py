"""SELECTs that stand alone: asked here, run by the query driver, read as lines of JSON."""

import json
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

import anyio.to_thread
from fastapi import APIRouter, Request, status
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette.types import Receive, Scope, Send

from headgate.access import Principal, Role
from headgate.errors import NotAuthorized
from headgate.server.access import Access, Asking, needs
from headgate.server.answers import answers
from headgate.server.answers.queries import StartedQueryAnswer
from headgate.server.api.history import cancel, owner_of
from headgate.server.driver import NDJSON, QueryDriver, Rows
from headgate.server.standing import Standing, Stands
from headgate.sql.types import name_of
from headgate.statements.asking import Asked, Caller, Form
from headgate.statements.execute import Executor
from headgate.store import Store
from headgate.store.queries import QueryHistory

# What is known of the rows of the lake only when they come.
NOT_PLANNED: dict[str, Any] = {"columns": None, "key": None, "warnings": []}


class Question(BaseModel):
    """One SELECT."""

    model_config = ConfigDict(extra="forbid")

    sql: str = Field(min_length=1, max_length=1_000_000)
    settings: dict[str, str] = Field(default_factory=dict, description="What is SET.")
    lake: bool = Field(False, description="All names are tables of the lake, and the SQL is Spark's.")
    format: Form = Field("json", description="Rows of the lake as lines of JSON, or as a stream of Arrow.")


class Passing(StreamingResponse):
    """The driver's lines, passed on. Whoever leaves, the other side learns it."""

    def __init__(self, rows: Rows, request: Request, still: Standing) -> None:
        super().__init__(_pieces(rows, request, still), media_type=rows.media_type)
        self._rows = rows

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self._rows.close()


async def _pieces(rows: Rows, request: Request, still: Standing) -> AsyncIterator[bytes]:
    async for piece in rows.pieces():
        if await request.is_disconnected():
            return
        try:
            if still.is_due:
                await anyio.to_thread.run_sync(still.check)
        except NotAuthorized as error:
            # A stream of Arrow that ends too soon says so itself.
            if rows.media_type == NDJSON:
                told = {"op": "error", "error": "NotAuthorized", "message": error.message, "remedy": ""}
                yield b"\n" + json.dumps(told).encode() + b"\n"
            return
        yield piece


class Comparison(BaseModel):
    """Two snapshots of a table."""

    model_config = ConfigDict(extra="forbid")

    topic: str = Field(min_length=1)
    start: str | None = Field(None, description="A snapshot's id, or a time; none is before the first.")
    end: str | None = Field(None, description="A snapshot's id, or a time; none is now.")
    summary: bool = Field(False, description="By column, how many values came, are others, and went.")
    format: Form = Field("json", description="Lines of JSON, or a stream of Arrow.")


def queries_router(
    executor: Executor,
    driver: QueryDriver,
    store: Store,
    history: QueryHistory,
    callers: Callable[[Principal], Caller],
    stands: Stands,
) -> APIRouter:
    """`callers`: what the driver is told of who asks; `stands`: that they may still be answered."""
    router = APIRouter(prefix="/queries", tags=["queries"])

    def started(asked: Asked, access: Access) -> str:
        caller = callers(access.caller)
        if asked.kind == "lake" and caller.token is None:
            # A catalog that is not ours knows no grants: it is read with Headgate's own rights.
            access.check_everywhere(Role.READER)
        driver.start()
        about = replace(asked, caller=caller).to_dict()
        query_id = str(driver.call("POST", "/queries", about)["id"])
        access.note(f"query {query_id}")
        return query_id

    @router.post(
        "",
        summary="Ask a SELECT",
        status_code=status.HTTP_201_CREATED,
        **needs(Role.READER, "body"),
        **answers(StartedQueryAnswer, 201),
    )
    def ask(question: Question, access: Asking) -> dict[str, Any]:
        """Starts the query driver if need be. The rows are to be read within a minute. It reads what its
        caller may read: the rest is not there."""
        scripts = executor.acting_for(access)
        if question.lake:
            asked, plan = scripts.ask_lake(question.sql, question.settings), None
        else:
            asked, plan = scripts.ask(question.sql, question.settings)
        for topic in sorted(() if plan is None else plan.tables):
            access.note(f"topic {topic}")
        about: dict[str, Any] = {
            "id": started(replace(asked, form=question.format), access),
            "kind": asked.kind,
        }
        if plan is not None:
            columns = [{"name": f.name, "type": name_of(f.dataType)} for f in plan.columns.fields]
            keyed = asked.kind == "live" and plan.changelog == "upsert"
            about |= {"columns": columns, "key": list(plan.key) if keyed else None}
            about |= {"warnings": list(plan.warnings)}
        else:
            about |= NOT_PLANNED
        return about

    @router.post(
        "/changes",
        summary="Ask what changed in a table",
        status_code=status.HTTP_201_CREATED,
        **needs(Role.READER, "body"),
        **answers(StartedQueryAnswer, 201),
    )
    def compare(wanted: Comparison, access: Asking) -> dict[str, Any]:
        """Its rows are read as a SELECT's are."""
        access.check_table(wanted.topic, Role.READER)
        key = list(store.table(wanted.topic).status.detail.get("key") or ())
        compared = {**wanted.model_dump(exclude={"format"}), "key": key}
        asked = Asked("changes", "", changes=compared, form=wanted.format)
        return {"id": started(asked, access), "kind": asked.kind, **NOT_PLANNED}

    @router.get(
        "/{query_id}/rows",
        summary="Read a query's rows",
        response_class=StreamingResponse,
        **needs(Role.READER, "own"),
    )
    async def rows(query_id: str, request: Request, access: Asking) -> Passing:
        """Lines of JSON, the last with the op `end` or `error`; or a stream of Arrow, whose last batch is
        empty and has that line in its metadata, under `headgate`. Who leaves stops the query."""
        access.note_records()
        return Passing(
            await driver.rows(query_id, owner_of(access)), request, Standing(stands, access.caller)
        )

    @router.delete(
        "/{query_id}",
        summary="Stop a query",
        status_code=status.HTTP_204_NO_CONTENT,
        **needs(Role.READER, "own"),
    )
    def stop(query_id: str, access: Asking) -> None:
        """Its jobs end, and its reader is told. It is `cancelled` then."""
        access.note(f"query {query_id}")
        cancel(history, store, driver, query_id, owner_of(access))

    return router
