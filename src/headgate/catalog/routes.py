"""The routes of the Iceberg REST spec, as plain functions: they wait for Java and SQL in threads.

Each says first what its caller must be allowed to do; where a name is in the body, the catalog does.
"""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Query, Request, Response
from fastapi.routing import APIRoute

from headgate.access import Gate
from headgate.access.gate import Visit
from headgate.catalog.embedded import EmbeddedCatalog
from headgate.catalog.errors import CatalogError
from headgate.catalog.idempotency import LIFETIME
from headgate.catalog.names import parse_namespace
from headgate.catalog.oauth import PATH as TOKENS
from headgate.catalog.oauth import token_router
from headgate.catalog.requests import (
    AskedFor,
    Caller,
    IcebergRoute,
    JsonBody,
    Levels,
    OnceKey,
    SeesAll,
    TableName,
    ViewName,
    authenticating,
    respond,
)

PageToken = Annotated[str | None, Query(alias="pageToken")]
PageSize = Annotated[int | None, Query(alias="pageSize", ge=1)]
EVERY_METHOD = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
CONFIG = "/v1/config"


def catalog_router(catalog: EmbeddedCatalog, gate: Gate, public_url: str | None = None) -> APIRouter:
    """Everything below `/v1`; the server mounts it at `/iceberg`. Only the token route asks for no token.

    `public_url` is what clients at the public door know the server by.
    """
    guarded = APIRouter(
        route_class=IcebergRoute, tags=["iceberg"], dependencies=[Depends(authenticating(gate))]
    )
    _namespace_routes(guarded, catalog)
    _table_routes(guarded, catalog)
    _commit_routes(guarded, catalog)
    _view_routes(guarded, catalog)
    endpoints = _endpoints(guarded)

    @guarded.get(CONFIG)
    def config(request: Request, warehouse: str | None = None) -> dict[str, Any]:
        """There is one warehouse: whatever a client calls it, it is this one."""
        return {
            "defaults": {"oauth2-server-uri": _token_url(gate, request, public_url)},
            "overrides": {},
            "endpoints": endpoints,
            "idempotency-key-lifetime": LIFETIME,
        }

    # Last: it takes what no route above did.
    guarded.api_route("/v1/{rest:path}", methods=EVERY_METHOD, include_in_schema=False)(_no_such_route)
    router = APIRouter()
    router.include_router(token_router(gate))
    router.include_router(guarded)
    return router


def _token_url(gate: Gate, request: Request, public_url: str | None) -> str:
    """Where tokens are to be had: another issuer's address, or ours as this client knows it."""
    if gate.issuer is not None and gate.issuer.token_url is not None:
        return gate.issuer.token_url
    here = str(request.base_url).rstrip("/")
    base = public_url.rstrip("/") if public_url and Visit.of(request.scope).public else here
    return base + request.url.path.removesuffix(CONFIG) + TOKENS


def _endpoints(router: APIRouter) -> list[str]:
    """What the configuration route advertises: the routes that there are, in the spec's spelling."""
    routes = [route for route in router.routes if isinstance(route, APIRoute)]
    return [
        f"{method} {route.path.replace('/v1/', '/v1/{prefix}/', 1)}"
        for route in routes
        for method in sorted(route.methods or ())
    ]


async def _no_such_route(request: Request) -> Response:
    raise CatalogError(404, "NoSuchEndpointException", f"No such route: {request.method} {request.url.path}")


def _namespace_routes(router: APIRouter, catalog: EmbeddedCatalog) -> None:
    rights = catalog.rights

    @router.get("/v1/namespaces")
    def list_namespaces(
        caller: Caller, parent: str | None = None, page_token: PageToken = None, page_size: PageSize = None
    ) -> Response:
        levels = parse_namespace(parent) if parent else ()
        if levels:
            rights.check_sees_namespace(caller, levels)
        return respond(catalog.namespaces.list(levels, page_token, page_size, caller))

    @router.post("/v1/namespaces")
    def create_namespace(caller: Caller, body: JsonBody) -> Response:
        return respond(catalog.namespaces.create(body.document, body.once, caller))

    @router.get("/v1/namespaces/{namespace}")
    def load_namespace(caller: Caller, levels: Levels) -> Response:
        rights.check_sees_namespace(caller, levels)
        return respond(catalog.namespaces.load(levels))

    @router.head("/v1/namespaces/{namespace}")
    def namespace_exists(caller: Caller, levels: Levels) -> Response:
        rights.check_sees_namespace(caller, levels)
        return respond(catalog.namespaces.exists(levels))

    @router.delete("/v1/namespaces/{namespace}")
    def drop_namespace(caller: Caller, levels: Levels, once: OnceKey) -> Response:
        rights.check_sees_namespace(caller, levels)
        rights.check_changes_namespace(caller, levels)
        return respond(catalog.namespaces.drop(levels, once))

    @router.post("/v1/namespaces/{namespace}/properties")
    def update_namespace(caller: Caller, levels: Levels, body: JsonBody) -> Response:
        rights.check_sees_namespace(caller, levels)
        rights.check_changes_namespace(caller, levels)
        return respond(catalog.namespaces.update(levels, body.document, body.once))


def _table_routes(router: APIRouter, catalog: EmbeddedCatalog) -> None:
    rights = catalog.rights

    @router.get("/v1/namespaces/{namespace}/tables")
    def list_tables(
        caller: Caller,
        levels: Levels,
        everything: SeesAll,
        page_token: PageToken = None,
        page_size: PageSize = None,
    ) -> Response:
        rights.check_sees_namespace(caller, levels)
        return respond(catalog.tables.list(levels, page_token, page_size, everything, caller))

    @router.post("/v1/namespaces/{namespace}/tables")
    def create_table(caller: Caller, levels: Levels, body: JsonBody, asked: AskedFor) -> Response:
        rights.check_sees_namespace(caller, levels)
        return respond(catalog.tables.create(levels, body.document, body.once, asked))

    @router.get("/v1/namespaces/{namespace}/tables/{table}")
    def load_table(
        caller: Caller,
        name: TableName,
        everything: SeesAll,
        asked: AskedFor,
        snapshots: str = "all",
        if_none_match: Annotated[str | None, Header()] = None,
    ) -> Response:
        rights.check_sees_table(caller, name)
        return respond(catalog.tables.load(name, snapshots.lower(), if_none_match, everything, asked))

    @router.get("/v1/namespaces/{namespace}/tables/{table}/credentials")
    def load_credentials(caller: Caller, name: TableName, everything: SeesAll) -> Response:
        rights.check_sees_table(caller, name)
        return respond(catalog.tables.credentials(name, everything, caller))

    @router.head("/v1/namespaces/{namespace}/tables/{table}")
    def table_exists(caller: Caller, name: TableName, everything: SeesAll) -> Response:
        rights.check_sees_table(caller, name)
        return respond(catalog.tables.exists(name, everything))

    @router.delete("/v1/namespaces/{namespace}/tables/{table}")
    def drop_table(
        caller: Caller,
        name: TableName,
        once: OnceKey,
        purge: Annotated[bool, Query(alias="purgeRequested")] = False,
    ) -> Response:
        rights.check_writes(caller, name)
        return respond(catalog.tables.drop(name, purge, once, caller))

    @router.post("/v1/namespaces/{namespace}/register")
    def register_table(caller: Caller, levels: Levels, body: JsonBody, asked: AskedFor) -> Response:
        rights.check_sees_namespace(caller, levels)
        return respond(catalog.tables.register(levels, body.document, body.once, asked))

    @router.post("/v1/tables/rename")
    def rename_table(caller: Caller, body: JsonBody) -> Response:
        return respond(catalog.tables.rename(body.document, body.once, caller))

    @router.post("/v1/namespaces/{namespace}/tables/{table}/metrics")
    def report_metrics(caller: Caller, name: TableName, body: JsonBody) -> Response:
        rights.check_sees_table(caller, name)
        return respond(catalog.tables.report(body.document))


def _commit_routes(router: APIRouter, catalog: EmbeddedCatalog) -> None:
    @router.post("/v1/namespaces/{namespace}/tables/{table}")
    def commit_table(caller: Caller, name: TableName, body: JsonBody) -> Response:
        catalog.rights.check_writes(caller, name)
        return respond(catalog.tables.commit(name, body.document, body.once, caller))

    @router.post("/v1/transactions/commit")
    def commit_transaction(caller: Caller, body: JsonBody) -> Response:
        return respond(catalog.tables.commit_all(body.document, body.once, caller))


def _view_routes(router: APIRouter, catalog: EmbeddedCatalog) -> None:
    rights = catalog.rights

    @router.get("/v1/namespaces/{namespace}/views")
    def list_views(
        caller: Caller, levels: Levels, page_token: PageToken = None, page_size: PageSize = None
    ) -> Response:
        rights.check_sees_namespace(caller, levels)
        return respond(catalog.views.list(levels, page_token, page_size, caller))

    @router.post("/v1/namespaces/{namespace}/views")
    def create_view(caller: Caller, levels: Levels, body: JsonBody) -> Response:
        rights.check_sees_namespace(caller, levels)
        return respond(catalog.views.create(levels, body.document, body.once, caller))

    @router.get("/v1/namespaces/{namespace}/views/{view}")
    def load_view(caller: Caller, name: ViewName) -> Response:
        rights.check_sees_view(caller, name)
        return respond(catalog.views.load(name))

    @router.head("/v1/namespaces/{namespace}/views/{view}")
    def view_exists(caller: Caller, name: ViewName) -> Response:
        rights.check_sees_view(caller, name)
        return respond(catalog.views.exists(name))

    @router.post("/v1/namespaces/{namespace}/views/{view}")
    def update_view(caller: Caller, name: ViewName, body: JsonBody) -> Response:
        rights.check_writes_view(caller, name)
        return respond(catalog.views.update(name, body.document, body.once))

    @router.delete("/v1/namespaces/{namespace}/views/{view}")
    def drop_view(caller: Caller, name: ViewName, once: OnceKey) -> Response:
        rights.check_writes_view(caller, name)
        return respond(catalog.views.drop(name, once))

    @router.post("/v1/namespaces/{namespace}/register-view")
    def register_view(caller: Caller, levels: Levels, body: JsonBody) -> Response:
        rights.check_sees_namespace(caller, levels)
        return respond(catalog.views.register(levels, body.document, body.once, caller))

    @router.post("/v1/views/rename")
    def rename_view(caller: Caller, body: JsonBody) -> Response:
        return respond(catalog.views.rename(body.document, body.once, caller))
