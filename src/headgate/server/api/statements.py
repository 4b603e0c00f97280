"""Statements that run. What is asked is written down; the engine carries it out."""

from typing import Any

from fastapi import APIRouter, status

from headgate.access import Role
from headgate.kafka.access import KafkaAccess
from headgate.kafka.offsets import Offsets
from headgate.kafka.topics import Topics
from headgate.server import overview
from headgate.server.access import Asking, needs
from headgate.server.answers import answers
from headgate.server.answers.statements import (
    FinishingStatementAnswer,
    ResetPlanAnswer,
    ShownStatementAnswer,
    StatementAnswer,
)
from headgate.server.api.spec import ResetRequest
from headgate.statements.resetting import plan_of_record
from headgate.store import Statements, Store
from headgate.store.statements import check_resettable

EVENTS = 50


def statements_router(
    store: Store, statements: Statements, access: KafkaAccess, topics: Topics, offsets: Offsets
) -> APIRouter:
    router = APIRouter(prefix="/statements", tags=["statements"])
    reader, writer, admin = (
        needs(role, "statement", statements) for role in (Role.READER, Role.WRITER, Role.ADMIN)
    )

    @router.get(
        "", summary="List the statements", **needs(Role.READER, "seen"), **answers(list[StatementAnswer])
    )
    def list_statements(access: Asking) -> list[dict[str, Any]]:
        return [
            overview.statement(record) for record in statements.all() if access.sees_statement(record.options)
        ]

    @router.get(
        "/{name}",
        summary="Show a statement with its metrics and events",
        **reader,
        **answers(ShownStatementAnswer),
    )
    def show(name: str) -> dict[str, Any]:
        record = statements.get(name)
        events = store.events(f"statement {name}", EVENTS, is_current=True)
        return overview.statement_with_detail(record, events)

    @router.post(
        "/{name}/stop",
        summary="Stop a statement",
        status_code=status.HTTP_202_ACCEPTED,
        **writer,
        **answers(StatementAnswer, 202),
    )
    def stop(name: str) -> dict[str, Any]:
        """It has stopped when its state is `Stopped`; its offsets and its state stay."""
        return overview.statement(statements.want(name, "stopped"))

    @router.post(
        "/{name}/start",
        summary="Go on where a statement was",
        status_code=status.HTTP_202_ACCEPTED,
        **writer,
        **answers(StatementAnswer, 202),
    )
    def start(name: str) -> dict[str, Any]:
        return overview.statement(statements.want(name, "running"))

    @router.post(
        "/{name}/reset",
        summary="Have a stopped statement begin elsewhere",
        status_code=status.HTTP_202_ACCEPTED,
        **admin,
        **answers(ResetPlanAnswer, 202),
    )
    def reset(name: str, wanted: ResetRequest) -> dict[str, Any]:
        """What it repeats and skips, as ranges of offsets; `places` asks for the same once more. It is done
        when the statement is `Stopped` again; then it can be started."""
        record = statements.get(name)
        check_resettable(record)
        plan = plan_of_record(record, wanted.start, access, topics, offsets).to_dict()
        if not wanted.dry_run:
            statements.reset(name, {"from": plan["places"], "starts": plan["starts"]})
        return plan

    @router.post(
        "/{name}/finish",
        summary="Close what has come to a statement",
        status_code=status.HTTP_202_ACCEPTED,
        **writer,
        **answers(FinishingStatementAnswer, 202),
    )
    def finish(name: str) -> dict[str, Any]:
        """Event time passes all that was read; it goes on running. It is done when `detail.finished.request`
        is `options.finish`; rows before `detail.finished.watermark` are late from then on."""
        record = statements.finish(name)
        return overview.statement(record) | {"finish": record.options["finish"]}

    @router.delete(
        "/{name}",
        summary="Delete a statement",
        status_code=status.HTTP_202_ACCEPTED,
        **writer,
        **answers(StatementAnswer, 202),
    )
    def delete(name: str) -> dict[str, Any]:
        """Its offsets and its state are gone with it; the topic that it wrote stays."""
        return overview.statement(statements.want(name, "deleted"))

    return router
