"""HTTP on the way in and out: path segments, bodies, and an error body for whatever fails."""

import json
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import unquote_plus

from fastapi import Depends, Header, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from py4j.protocol import Py4JJavaError
from sqlalchemy.exc import OperationalError
from starlette.routing import Match
from starlette.types import Scope

from headgate.access import Gate, Principal
from headgate.access.gate import Visit
from headgate.catalog.client import VIEW_ALL, VIEW_HEADER
from headgate.catalog.delegation import HEADER as DELEGATION
from headgate.catalog.delegation import Asked
from headgate.catalog.errors import CatalogError, bad_request, forbidden, from_java, unavailable
from headgate.catalog.idempotency import Once, once
from headgate.catalog.names import Identifier, parse_namespace
from headgate.catalog.once import Answer
from headgate.errors import IssuerUnavailable, NotAuthorized, StorageUnavailable, TooManyFailures

log = logging.getLogger(__name__)

# Stands for a slash inside a segment while routes are matched. No decoded UTF-8 text contains it.
INNER_SLASH = "\udc2f"
READING = frozenset({"GET", "HEAD"})


def authenticating(gate: Gate) -> Callable[[Request], None]:
    """What every guarded route depends on, before anything of the request is looked at."""

    def authenticate(request: Request) -> None:
        caller = gate.caller(Visit.of(request.scope))
        if caller.reads_only and request.method not in READING and not _is_report(request):
            raise forbidden(f"{caller.name} asks a query, which changes nothing.")
        request.state.caller = caller

    return authenticate


def _is_report(request: Request) -> bool:
    """What a client tells of its scan, which it does by POST. By the route: a table may be called metrics."""
    return str(request.scope["route"].path).endswith("/tables/{table}/metrics")


async def _caller(request: Request) -> Principal:
    caller: Principal = request.state.caller
    return caller


Caller = Annotated[Principal, Depends(_caller)]


async def _sees_all(request: Request, caller: Caller) -> bool:
    return request.headers.get(VIEW_HEADER) == VIEW_ALL and caller.is_admin


# Whether a client sees internal tables too: Headgate's own do, if they show who they are.
SeesAll = Annotated[bool, Depends(_sees_all)]


class IcebergRoute(APIRoute):
    """A route whose path is split before it is decoded, and whose every error has the body of the spec."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """A table may be called `a/b`: `a%2Fb` is one segment, which the decoded path no longer shows."""
        match, child = super().matches({**scope, "path": _path(scope)} if scope["type"] == "http" else scope)
        if "path_params" in child:
            child["path_params"] = {k: _slashed(v) for k, v in child["path_params"].items()}
        return match, child

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handle_or_explain(request: Request) -> Response:
            try:
                return await handle(request)
            except Exception as error:  # noqa: BLE001 every failure has a body that clients understand
                return error_response(error)

        return handle_or_explain


def _path(scope: Scope) -> str:
    raw: bytes | None = scope.get("raw_path")
    if raw is None:
        path: str = scope["path"]
        return path
    # Iceberg's Java client encodes segments as forms are: a space is a plus.
    segments = (unquote_plus(s, errors="replace") for s in raw.decode("latin-1").split("?")[0].split("/"))
    return "/".join(segment.replace("/", INNER_SLASH) for segment in segments)


def _slashed(value: Any) -> Any:
    return value.replace(INNER_SLASH, "/") if isinstance(value, str) else value


def error_response(error: Exception) -> Response:
    """What the spec has a client expect."""
    found = _explained(error)
    if found.status >= 500:
        log.error("%s: %s", found.kind, found.message, exc_info=error)
    return JSONResponse(found.body(), found.status, _headers(error, found.status))


def _headers(error: Exception, status: int) -> dict[str, str]:
    match error:
        case NotAuthorized():
            return {"WWW-Authenticate": 'Bearer realm="headgate", error="invalid_token"'}
        case TooManyFailures():
            return {"Retry-After": str(error.wait)}
    return {"Retry-After": "1"} if status == 503 else {}


def _explained(error: Exception) -> CatalogError:
    match error:
        case CatalogError():
            return error
        case NotAuthorized():
            return CatalogError(401, "NotAuthorizedException", str(error))
        case TooManyFailures():
            return CatalogError(429, "TooManyRequestsException", str(error))
        case IssuerUnavailable() | StorageUnavailable():
            return unavailable(str(error))
        case Py4JJavaError():
            return from_java(error)
        case RequestValidationError():
            problems = (f"{'.'.join(str(p) for p in e['loc'])}: {e['msg']}" for e in error.errors())
            return bad_request("; ".join(problems))
        case OperationalError():
            return unavailable(f"The catalog's database does not answer: {error.orig}")
        case _:
            return CatalogError(500, "InternalServerError", f"{type(error).__name__}: {error}")


@dataclass(frozen=True)
class Body:
    """A JSON object that a client sent, and the key under which it may send it again."""

    document: dict[str, Any]
    once: Once | None


async def _once(request: Request, idempotency_key: Annotated[str | None, Header()] = None) -> Once | None:
    target = f"{request.method} {_path(request.scope)}?{request.url.query}"
    return once(idempotency_key, target, await request.body())


async def _body(request: Request, once: Annotated[Once | None, Depends(_once)]) -> Body:
    try:
        document = json.loads(await request.body())
    except (ValueError, RecursionError) as error:
        raise bad_request(f"Malformed JSON: {error}") from error
    if not isinstance(document, dict):
        raise bad_request("The body must be a JSON object.")
    return Body(document, once)


async def _levels(namespace: str) -> tuple[str, ...]:
    return parse_namespace(namespace)


async def _table(namespace: str, table: str) -> Identifier:
    return Identifier(parse_namespace(namespace), table)


async def _view(namespace: str, view: str) -> Identifier:
    return Identifier(parse_namespace(namespace), view)


async def _asked(request: Request, caller: Caller) -> Asked:
    return Asked.of(caller, request.headers.get(DELEGATION))


AskedFor = Annotated[Asked, Depends(_asked)]
OnceKey = Annotated[Once | None, Depends(_once)]
JsonBody = Annotated[Body, Depends(_body)]
Levels = Annotated[tuple[str, ...], Depends(_levels)]
TableName = Annotated[Identifier, Depends(_table)]
ViewName = Annotated[Identifier, Depends(_view)]


def respond(answer: Answer) -> Response:
    headers = {} if answer.etag is None else {"ETag": answer.etag}
    if answer.body is None:
        return Response(status_code=answer.status, headers=headers)
    return Response(answer.body, answer.status, headers, media_type="application/json")
