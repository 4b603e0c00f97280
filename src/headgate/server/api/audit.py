"""The audit trail, for admins."""

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query

from headgate.access import Role
from headgate.server.access import needs
from headgate.server.answers import answers
from headgate.server.answers.events import AuditEntryAnswer
from headgate.store.audit import Audit, AuditFilter

MOST = 1000


def audit_router(audit: Audit) -> APIRouter:
    router = APIRouter(prefix="/audit", tags=["headgate"])

    @router.get(
        "",
        summary="Who did what, the newest first",
        **needs(Role.ADMIN, "everything"),
        **answers(list[AuditEntryAnswer]),
    )
    def entries(
        who: Annotated[str | None, Query(description="A name, or a client id.")] = None,
        about: Annotated[str | None, Query(description="A thing's name: `shop.orders`.")] = None,
        since: Annotated[float | None, Query(description="Seconds since 1970.")] = None,
        until: Annotated[float | None, Query(description="Seconds since 1970.")] = None,
        refused: Annotated[bool, Query(description="Only what was refused or has failed.")] = False,
        before: Annotated[int | None, Query(description="Older than this entry.", ge=0, le=2**62)] = None,
        limit: Annotated[int, Query(ge=1, le=MOST)] = 100,
    ) -> Sequence[dict[str, Any]]:
        return audit.list(AuditFilter(who, about, since, until, refused, before), limit)

    return router
