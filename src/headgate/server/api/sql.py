"""Scripts of SQL: carried out here as far as they declare something, by the engine as far as they run."""

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from headgate.access import Role
from headgate.server.access import Asking, needs
from headgate.server.answers import answers
from headgate.server.answers.statements import ScriptAnswer
from headgate.statements.execute import Executor


class Script(BaseModel):
    """Statements with semicolons between them."""

    model_config = ConfigDict(extra="forbid")

    sql: str = Field(min_length=1, max_length=1_000_000)
    settings: dict[str, str] = Field(default_factory=dict, description="What was SET before.")


def sql_router(executor: Executor) -> APIRouter:
    router = APIRouter(prefix="/sql", tags=["statements"])

    @router.post("", summary="Carry out a script", **needs(Role.READER, "body"), **answers(ScriptAnswer))
    def run(script: Script, access: Asking) -> dict[str, Any]:
        """A mistake anywhere in the script changes nothing, and so does a topic that its caller may not read
        or write."""
        settings = dict(script.settings)
        outcomes = executor.acting_for(access).run(script.sql, settings)
        for outcome in outcomes:
            if outcome.statement is not None:
                access.note(f"statement {outcome.statement}")
        return {"outcomes": [asdict(outcome) for outcome in outcomes], "settings": settings}

    return router
