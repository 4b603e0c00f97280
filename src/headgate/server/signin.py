"""Where a browser is signed in by a link, and out again."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response, status
from fastapi.responses import RedirectResponse

from headgate.access.gate import PUBLIC_DOOR, Visit, session_cookie
from headgate.access.sessions import SIGN_IN, Sessions
from headgate.errors import NotAuthorized

SIGN_OUT = "/sign-out"


def signin_router(sessions: Sessions) -> APIRouter:
    router = APIRouter(include_in_schema=False)

    @router.get(SIGN_IN)
    def sign_in(request: Request, token: Annotated[str, Query(max_length=300)]) -> Response:
        if request.scope.get(PUBLIC_DOOR) is True:
            raise NotAuthorized("Links sign in on the machine itself only.", "Use a credential here.")
        secret = sessions.open(token, Visit.of(request.scope).uid)
        answer = RedirectResponse("/", status.HTTP_303_SEE_OTHER)
        # Nobody keeps the answer, and the link is not told to the pages that follow.
        answer.headers["Cache-Control"] = "no-store"
        answer.headers["Referrer-Policy"] = "no-referrer"
        answer.set_cookie(
            session_cookie(request.scope),
            secret,
            sessions.lifetime,
            path="/",
            httponly=True,
            samesite="strict",
        )
        return answer

    @router.post(SIGN_OUT, status_code=status.HTTP_204_NO_CONTENT)
    def sign_out(request: Request, response: Response) -> None:
        visit = Visit.of(request.scope)
        if visit.session is not None:
            sessions.close(visit.session)
        response.delete_cookie(session_cookie(request.scope), path="/", httponly=True, samesite="strict")

    return router
