"""How errors leave the control API: `{"error": …, "message": …, "remedy": …}` with a fitting status."""

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exception_handlers import http_exception_handler
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel
from sqlalchemy.exc import OperationalError
from starlette.exceptions import HTTPException

from headgate.errors import (
    AlreadyExists,
    ConfigError,
    HeadgateError,
    InvalidRequest,
    LimitReached,
    NotAllowed,
    NotAuthorized,
    NotFound,
    ServerUnavailable,
    TooManyFailures,
    TooManyRequests,
    TransientError,
)
from headgate.server.pages import page_of

# The first that fits; a TableStopped and its like are conflicts with the state of the table.
STATUSES: Mapping[type[HeadgateError], int] = {
    NotFound: 404,
    AlreadyExists: 409,
    InvalidRequest: 400,
    ConfigError: 400,
    NotAuthorized: 401,
    NotAllowed: 403,
    TooManyFailures: 429,
    TooManyRequests: 429,
    LimitReached: 413,
    TransientError: 503,
    HeadgateError: 409,
}


class Failure(BaseModel):
    """What went wrong, and what to do next."""

    error: str
    message: str
    remedy: str = ""


RESPONSES: dict[int | str, dict[str, Any]] = {
    "4XX": {"model": Failure, "description": "What was asked cannot be done."},
    "5XX": {"model": Failure, "description": "It cannot be done now."},
}


def answer_failures(app: FastAPI, prefix: str) -> None:
    """`prefix` of the control API: catalog and registry answer in the forms of their own protocols."""

    async def on_no_route(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        if not request.url.path.startswith(f"{prefix}/"):
            if error.status_code == 404 and "text/html" in request.headers.get("accept", ""):
                # Typed into a browser: the console says what there is instead.
                return page_of(status=404)
            return await http_exception_handler(request, error)
        kind = NotFound if error.status_code == 404 else InvalidRequest
        said = f"{request.method} {request.url.path}: {error.detail}."
        answer = _answer(
            error.status_code, kind.__name__, said, f"{prefix}/openapi.json describes the routes."
        )
        answer.headers.update(error.headers or {})
        return answer

    app.add_exception_handler(HTTPException, on_no_route)
    app.add_exception_handler(HeadgateError, _on_headgate_error)
    app.add_exception_handler(RequestValidationError, _on_invalid)
    app.add_exception_handler(OperationalError, _on_store_away)


def status_of(error: HeadgateError) -> int:
    return next(code for kind, code in STATUSES.items() if isinstance(error, kind))


async def _on_headgate_error(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HeadgateError)
    answer = _answer(status_of(error), type(error).__name__, error.message, error.remedy)
    if isinstance(error, TooManyFailures | TooManyRequests):
        answer.headers["Retry-After"] = str(error.wait)
    return answer


async def _on_invalid(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    problems = [f"{_path(problem['loc'])}: {problem['msg']}" for problem in error.errors()]
    return _answer(422, InvalidRequest.__name__, "; ".join(problems), "")


async def _on_store_away(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, OperationalError)
    return _answer(503, ServerUnavailable.__name__, f"The control state does not answer: {error.orig}", "")


def _path(location: tuple[int | str, ...]) -> str:
    """Where in the request: `body.formats.0` is `formats.0` to whoever wrote it."""
    where, *rest = location
    return ".".join(str(part) for part in rest) or str(where)


def _answer(status: int, error: str, message: str, remedy: str) -> JSONResponse:
    return JSONResponse(Failure(error=error, message=message, remedy=remedy).model_dump(), status)
