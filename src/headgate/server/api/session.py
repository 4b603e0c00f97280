"""A browser's session: who is signed in, in with a credential, and out."""

from typing import Any

from fastapi import APIRouter, Request, Response, status
from pydantic import BaseModel, ConfigDict, Field, SecretStr

from headgate.access import Gate, Role
from headgate.access.gate import ADMISSION, Admission, Visit
from headgate.access.sessions import Sessions
from headgate.server.access import OPEN, needs
from headgate.server.answers.session import SessionAnswer
from headgate.server.answers.shape import answers
from headgate.server.cookies import forget_session, keep_session


class Login(BaseModel):
    """A credential, as `headgate credentials create` shows it once."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    client_id: str = Field(max_length=200)
    client_secret: SecretStr = Field(max_length=1000)


def session_router(gate: Gate, sessions: Sessions, public_url: str | None) -> APIRouter:
    """`public_url`: what browsers call the server at the public door, if that is another address."""
    router = APIRouter(prefix="/session", tags=["session"])

    @router.get(
        "",
        summary="Who is signed in, and what they may",
        **answers(SessionAnswer),
        **needs(Role.READER, "own"),
    )
    def get_session(request: Request, response: Response) -> dict[str, Any]:
        response.headers["Cache-Control"] = "no-store"
        return session_answer(request.scope[ADMISSION])

    @router.post("", summary="Sign a browser in with a credential", **answers(SessionAnswer), **OPEN)
    def sign_in(login: Login, request: Request, response: Response) -> dict[str, Any]:
        """The session is a cookie, which the credential's revocation ends too. With it, methods that change
        something need the header `X-Headgate-Console`."""
        visit = Visit.of(request.scope)
        credential = gate.client(login.client_id, login.client_secret.get_secret_value(), visit)
        # For the audit trail.
        request.state.caller = credential.principal
        if visit.session is not None:
            sessions.close(visit.session)
        secret = sessions.begin(credential.client_id, visit.uid)
        keep_session(request.scope, response, secret, sessions.lifetime, public_url)
        session = sessions.find(secret, visit.uid)
        return session_answer(
            Admission(credential.principal, "credential", None if session is None else session.expires)
        )

    @router.delete(
        "",
        summary="Sign out: end the browser's session",
        status_code=status.HTTP_204_NO_CONTENT,
        **needs(Role.READER, "own"),
    )
    def sign_out(request: Request, response: Response) -> None:
        visit = Visit.of(request.scope)
        if visit.session is not None:
            sessions.close(visit.session)
        forget_session(request.scope, response, public_url)

    return router


def session_answer(admission: Admission) -> dict[str, Any]:
    caller = admission.caller
    return {
        "name": caller.name.strip("'"),
        "roles": [
            {"role": str(grant.role), "namespace": grant.namespace, "table": grant.table}
            for grant in caller.grants
        ],
        "is_admin": caller.is_admin,
        "by": admission.by,
        "expires_at": admission.expires_at,
    }
