"""Where a browser is signed in by a link, and out again."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response, status
from fastapi.responses import RedirectResponse

from headgate.access import LOCAL
from headgate.access.gate import PUBLIC_DOOR, Visit
from headgate.access.sessions import SIGN_IN, SIGN_OUT, Sessions
from headgate.errors import NotAuthorized
from headgate.server.cookies import forget_session, keep_session
from headgate.server.pages import page_of

# Where the console says that a link did not open anything.
LINK_FAILED = f"{SIGN_IN}?link=failed"


def signin_router(sessions: Sessions, public_url: str | None) -> APIRouter:
    router = APIRouter(include_in_schema=False)

    @router.get(SIGN_IN)
    def sign_in(request: Request, token: Annotated[str | None, Query(max_length=300)] = None) -> Response:
        """Without a token, the console's own page for it."""
        if token is None:
            return page_of()
        try:
            secret = _open(request, token)
        except NotAuthorized:
            if "text/html" not in request.headers.get("accept", ""):
                raise
            return RedirectResponse(LINK_FAILED, status.HTTP_303_SEE_OTHER)
        # For the audit trail.
        request.state.caller = LOCAL
        answer = RedirectResponse("/", status.HTTP_303_SEE_OTHER)
        keep_session(request.scope, answer, secret, sessions.lifetime, public_url)
        return answer

    def _open(request: Request, token: str) -> str:
        if request.scope.get(PUBLIC_DOOR) is True:
            raise NotAuthorized("Links sign in on the machine itself only.", "Use a credential here.")
        visit = Visit.of(request.scope)
        secret = sessions.open(token, visit.uid)
        if visit.session is not None:
            sessions.close(visit.session)
        return secret

    @router.post(SIGN_OUT, status_code=status.HTTP_204_NO_CONTENT)
    def sign_out(request: Request, response: Response) -> None:
        visit = Visit.of(request.scope)
        if visit.session is not None:
            sessions.close(visit.session)
        forget_session(request.scope, response, public_url)

    return router
