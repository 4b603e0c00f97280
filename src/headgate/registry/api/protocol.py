"""How the registry speaks HTTP: content type, error bodies, and subjects of any characters in paths."""

import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar
from urllib.parse import quote, unquote

from fastapi import APIRouter, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from sqlalchemy.exc import SQLAlchemyError
from starlette.exceptions import HTTPException
from starlette.routing import Match
from starlette.types import Scope

from headgate.errors import TransientError
from headgate.registry.api.rights import rights_of
from headgate.registry.refusals import Refusal

MEDIA_TYPE = "application/vnd.schemaregistry.v1+json"
BACKEND_FAILED = 50001
_log = logging.getLogger(__name__)
_T = TypeVar("_T")


class RegistryResponse(JSONResponse):
    media_type = MEDIA_TYPE


class RegistryRoute(APIRoute):
    """Answers errors with the registry's bodies wherever the router is mounted."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def answer(request: Request) -> Response:
            try:
                rights_of(request).check_request(request, self.path)
                return await handle(request)
            except Refusal as refusal:
                return error_response(refusal.status, refusal.code, str(refusal))
            except RequestValidationError as error:
                return _invalid_request(request, error)
            except HTTPException as error:
                return error_response(error.status_code, error.status_code, str(error.detail))
            except TransientError as error:
                _log.warning("registry: %s %s: %s", request.method, request.url.path, error)
                return error_response(503, 503, str(error))
            except SQLAlchemyError:
                # The details are for the log: a database's message can hold statements and addresses.
                _log.exception("registry: %s %s: the database failed", request.method, request.url.path)
                return error_response(500, BACKEND_FAILED, "Error in the backend data store.")

        return answer

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Matches the path as it was sent: `%2F` is part of a subject's name, `/` divides the path."""
        raw = scope.get("raw_path")
        path = raw.decode("ascii", "replace") if raw else quote(scope["path"])
        match, child = super().matches({**scope, "path": path})
        if match is not Match.NONE:
            child["path_params"] = {
                name: unquote(value) if isinstance(value, str) else value
                for name, value in child["path_params"].items()
            }
        return match, child


def new_router() -> APIRouter:
    return APIRouter(route_class=RegistryRoute, default_response_class=RegistryResponse)


def error_response(status: int, code: int, message: str) -> Response:
    return RegistryResponse({"error_code": code, "message": message}, status_code=status)


def page(found: Sequence[_T], offset: int, limit: int) -> list[_T]:
    """A negative limit is none."""
    start = max(offset, 0)
    return list(found[start:] if limit < 0 else found[start : start + limit])


def _invalid_request(request: Request, error: RequestValidationError) -> Response:
    problems = error.errors()
    if any(problem["type"] == "json_invalid" for problem in problems):
        return error_response(400, 400, "The request's body is not JSON.")
    if request.method in ("POST", "PUT") and "json" not in request.headers.get("content-type", ""):
        return error_response(415, 415, f"Send the body as {MEDIA_TYPE} or application/json.")
    listed = "; ".join(
        f"{'.'.join(str(p) for p in problem['loc'])}: {problem['msg']}" for problem in problems
    )
    about_schema = any(problem["loc"][:2] == ("body", "schema") for problem in problems)
    return error_response(422, 42201 if about_schema else 422, f"Invalid request: {listed}")
