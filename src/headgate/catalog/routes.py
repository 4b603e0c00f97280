"""The routes of the Iceberg REST spec, as plain functions: they wait for Java and SQL in threads."""

import secrets
from typing import Annotated, Any
from urllib.parse import parse_qs

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute

from headgate.catalog.embedded import EmbeddedCatalog
from headgate.catalog.errors import CatalogError
from headgate.catalog.idempotency import LIFETIME
from headgate.catalog.names import parse_namespace
from headgate.catalog.requests import (
    IcebergRoute,
    JsonBody,
    Levels,
    OnceKey,
    SeesAll,
    TableName,
    ViewName,
    respond,
)

PageToken = Annotated[str | None, Query(alias="pageToken")]
PageSize = Annotated[int | None, Query(alias="pageSize", ge=1)]
EVERY_METHOD = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
TOKEN_SECONDS = 3600


def catalog_router(catalog: EmbeddedCatalog) -> APIRouter:
    """Everything below `/v1`; the server mounts it at `/iceberg`."""
    router = APIRouter(route_class=IcebergRoute, tags=["iceberg"])
    _namespace_routes(router, catalog)
    _table_routes(router, catalog)
    _commit_routes(router, catalog)
    _view_routes(router, catalog)
    endpoints = _endpoints(router)

    @router.get("/v1/config")
    def config(warehouse: str | None = None) -> dict[str, Any]:
        """There is one warehouse: whatever a client calls it, it is this one."""
        return {
            "defaults": {},
            "overrides": {},
            "endpoints": endpoints,
            "idempotency-key-lifetime": LIFETIME,
        }

    router.post("/v1/oauth/tokens")(_issue_token)
    # Last: it takes what no route above did.
    router.api_route("/v1/{rest:path}", methods=EVERY_METHOD, include_in_schema=False)(_no_such_route)
    return router


def _endpoints(router: APIRouter) -> list[str]:
    """What the configuration route advertises: the routes that there are, in the spec's spelling."""
    routes = [route for route in router.routes if isinstance(route, APIRoute)]
    return [
        f"{method} {route.path.replace('/v1/', '/v1/{prefix}/', 1)}"
        for route in routes
        for method in sorted(route.methods or ())
    ]


async def _issue_token(request: Request) -> Response:
    """For clients that insist on asking for a token. It opens nothing: the server is on loopback only."""
    form = parse_qs((await request.body()).decode("utf-8", errors="replace"))
    grant = form.get("grant_type", [""])[0]
    if grant not in ("client_credentials", "urn:ietf:params:oauth:grant-type:token-exchange"):
        refusal = {"error": "unsupported_grant_type", "error_description": f"Unknown grant type {grant!r}."}
        return JSONResponse(refusal, 400)
    token = {
        "access_token": secrets.token_urlsafe(32),
        "token_type": "bearer",
        "issued_token_type": "urn:ietf:params:oauth:token-type:access_token",
        "expires_in": TOKEN_SECONDS,
    }
    return JSONResponse(token)


async def _no_such_route(request: Request) -> Response:
    raise CatalogError(404, "NoSuchEndpointException", f"No such route: {request.method} {request.url.path}")


def _namespace_routes(router: APIRouter, catalog: EmbeddedCatalog) -> None:
    @router.get("/v1/namespaces")
    def list_namespaces(
        parent: str | None = None, page_token: PageToken = None, page_size: PageSize = None
    ) -> Response:
        levels = parse_namespace(parent) if parent else ()
        return respond(catalog.namespaces.list(levels, page_token, page_size))

    @router.post("/v1/namespaces")
    def create_namespace(body: JsonBody) -> Response:
        return respond(catalog.namespaces.create(body.document, body.once))

    @router.get("/v1/namespaces/{namespace}")
    def load_namespace(levels: Levels) -> Response:
        return respond(catalog.namespaces.load(levels))

    @router.head("/v1/namespaces/{namespace}")
    def namespace_exists(levels: Levels) -> Response:
        return respond(catalog.namespaces.exists(levels))

    @router.delete("/v1/namespaces/{namespace}")
    def drop_namespace(levels: Levels, once: OnceKey) -> Response:
        return respond(catalog.namespaces.drop(levels, once))

    @router.post("/v1/namespaces/{namespace}/properties")
    def update_namespace(levels: Levels, body: JsonBody) -> Response:
        return respond(catalog.namespaces.update(levels, body.document, body.once))


def _table_routes(router: APIRouter, catalog: EmbeddedCatalog) -> None:
    @router.get("/v1/namespaces/{namespace}/tables")
    def list_tables(
        levels: Levels, everything: SeesAll, page_token: PageToken = None, page_size: PageSize = None
    ) -> Response:
        return respond(catalog.tables.list(levels, page_token, page_size, everything))

    @router.post("/v1/namespaces/{namespace}/tables")
    def create_table(levels: Levels, body: JsonBody) -> Response:
        return respond(catalog.tables.create(levels, body.document, body.once))

    @router.get("/v1/namespaces/{namespace}/tables/{table}")
    def load_table(
        name: TableName,
        everything: SeesAll,
        snapshots: str = "all",
        if_none_match: Annotated[str | None, Header()] = None,
    ) -> Response:
        return respond(catalog.tables.load(name, snapshots.lower(), if_none_match, everything))

    @router.head("/v1/namespaces/{namespace}/tables/{table}")
    def table_exists(name: TableName, everything: SeesAll) -> Response:
        return respond(catalog.tables.exists(name, everything))

    @router.delete("/v1/namespaces/{namespace}/tables/{table}")
    def drop_table(
        name: TableName, once: OnceKey, purge: Annotated[bool, Query(alias="purgeRequested")] = False
    ) -> Response:
        return respond(catalog.tables.drop(name, purge, once))

    @router.post("/v1/namespaces/{namespace}/register")
    def register_table(levels: Levels, body: JsonBody) -> Response:
        return respond(catalog.tables.register(levels, body.document, body.once))

    @router.post("/v1/tables/rename")
    def rename_table(body: JsonBody) -> Response:
        return respond(catalog.tables.rename(body.document, body.once))

    @router.post("/v1/namespaces/{namespace}/tables/{table}/metrics")
    def report_metrics(name: TableName, body: JsonBody) -> Response:
        return respond(catalog.tables.report(body.document))


def _commit_routes(router: APIRouter, catalog: EmbeddedCatalog) -> None:
    @router.post("/v1/namespaces/{namespace}/tables/{table}")
    def commit_table(name: TableName, body: JsonBody) -> Response:
        return respond(catalog.tables.commit(name, body.document, body.once))

    @router.post("/v1/transactions/commit")
    def commit_transaction(body: JsonBody) -> Response:
        return respond(catalog.tables.commit_all(body.document, body.once))


def _view_routes(router: APIRouter, catalog: EmbeddedCatalog) -> None:
    @router.get("/v1/namespaces/{namespace}/views")
    def list_views(levels: Levels, page_token: PageToken = None, page_size: PageSize = None) -> Response:
        return respond(catalog.views.list(levels, page_token, page_size))

    @router.post("/v1/namespaces/{namespace}/views")
    def create_view(levels: Levels, body: JsonBody) -> Response:
        return respond(catalog.views.create(levels, body.document, body.once))

    @router.get("/v1/namespaces/{namespace}/views/{view}")
    def load_view(name: ViewName) -> Response:
        return respond(catalog.views.load(name))

    @router.head("/v1/namespaces/{namespace}/views/{view}")
    def view_exists(name: ViewName) -> Response:
        return respond(catalog.views.exists(name))

    @router.post("/v1/namespaces/{namespace}/views/{view}")
    def update_view(name: ViewName, body: JsonBody) -> Response:
        return respond(catalog.views.update(name, body.document, body.once))

    @router.delete("/v1/namespaces/{namespace}/views/{view}")
    def drop_view(name: ViewName, once: OnceKey) -> Response:
        return respond(catalog.views.drop(name, once))

    @router.post("/v1/namespaces/{namespace}/register-view")
    def register_view(levels: Levels, body: JsonBody) -> Response:
        return respond(catalog.views.register(levels, body.document, body.once))

    @router.post("/v1/views/rename")
    def rename_view(body: JsonBody) -> Response:
        return respond(catalog.views.rename(body.document, body.once))
