"""The server's application, put together from what it is given."""

import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from fastapi import APIRouter, FastAPI, Response, status
from prometheus_client import generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.concurrency import run_in_threadpool

from headgate import __version__
from headgate.access import Gate
from headgate.embedded.runtime import Runtime
from headgate.embedded.secrets import QUERY_KEY, secret
from headgate.kafka.offsets import Offsets
from headgate.kafka.topics import Topics
from headgate.registry.client import SchemaSource
from headgate.server.access import Asking, check_declared
from headgate.server.api.audit import audit_router
from headgate.server.api.catalogs import catalogs_router
from headgate.server.api.control import control_router
from headgate.server.api.credentials import credentials_router
from headgate.server.api.dead_letters import dead_letters_router
from headgate.server.api.desired import desired_router
from headgate.server.api.exports import ExportDesk, exports_router, files_router
from headgate.server.api.generators import generators_router
from headgate.server.api.history import history_router
from headgate.server.api.live import live_router
from headgate.server.api.maintenance import maintenance_router
from headgate.server.api.messages import messages_router
from headgate.server.api.metadata import LakeMetadata, metadata_router
from headgate.server.api.queries import queries_router
from headgate.server.api.reading import reading_router
from headgate.server.api.records import Readers, records_router
from headgate.server.api.session import session_router
from headgate.server.api.settings import settings_router
from headgate.server.api.sql import sql_router
from headgate.server.api.statements import statements_router
from headgate.server.api.storage import StorageDesk, storage_router
from headgate.server.api.tables import tables_router
from headgate.server.api.topics import topics_router
from headgate.server.callers import callers
from headgate.server.described import DescribedApp
from headgate.server.desired import installation_of
from headgate.server.doors import TOKENS, Doorkeeper, gate_of
from headgate.server.driver import QueryDriver
from headgate.server.failures import RESPONSES, answer_failures
from headgate.server.limits import BodyLimits
from headgate.server.live import Live
from headgate.server.metrics import metrics_registry
from headgate.server.origin import OwnOrigin
from headgate.server.overview import Overview
from headgate.server.pages import pages_router
from headgate.server.signin import signin_router
from headgate.server.standings import StandingsReader
from headgate.server.trail import Trail
from headgate.statements.declared import DeclaredTables
from headgate.statements.execute import Executor
from headgate.statements.tables import TopicTables
from headgate.storage import Places, Storages
from headgate.store import Generators, SqlObjects, Statements, Store
from headgate.store.audit import Audit
from headgate.store.queries import QueryHistory

API = "/api/v1"
log = logging.getLogger(__name__)

# Returns if a part works, raises if it does not.
Check = Callable[[], object]


def create_app(
    runtime: Runtime,
    store: Store,
    *,
    mounts: Mapping[str, APIRouter] | None = None,
    checks: Mapping[str, Check] | None = None,
    instance: str = "",
    gate: Gate | None = None,
    places: Places | None = None,
    used: Callable[[str], bool] = lambda _: False,
    lake: LakeMetadata | None = None,
) -> FastAPI:
    """`mounts` are the embedded registry and catalog, by path; `/healthz` asks all `checks` and the store.

    `gate` is made as the settings say where none is given, and so are `places`; `used` tells whether the
    embedded catalog has tables in a place; `lake` has the metadata of tables, where the catalog is ours.
    """
    found = Overview(runtime, store)
    embedded = runtime.settings.catalog.uri is None
    places = places or Places.of(runtime.settings, Storages(store.engine))
    topics = Topics(runtime.kafka_access)
    gate = gate or gate_of(runtime, store)
    live = Live(runtime, StandingsReader(runtime, store), gate, runtime.settings.limits.streams)
    app = DescribedApp(
        title="Headgate",
        version=__version__,
        summary="Turns Kafka topics into Iceberg tables, exactly once.",
        openapi_url=f"{API}/openapi.json",
        # Its pages would load scripts from elsewhere.
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan_of(live),
    )
    app.state.live = live
    app.add_middleware(BodyLimits, limits=runtime.settings.limits, own_limits=frozenset({TOKENS}))
    public_url = runtime.settings.public.url
    app.add_middleware(Doorkeeper, gate=gate, cluster=runtime.settings.namespace, public_url=public_url)
    app.add_middleware(OwnOrigin, public_url=public_url)
    audit = Audit(store.engine)
    app.add_middleware(Trail, audit=audit, keep=runtime.settings.audit.keep)
    answer_failures(app, API)
    offsets = Offsets(runtime.kafka_access)
    tables = tables_router(store, topics, offsets, embedded)
    schemas = SchemaSource(runtime.registry_access)
    declared = DeclaredTables(SqlObjects(store.engine), TopicTables(topics, schemas))
    scripts = Executor(declared, Statements(store.engine), topics, schemas, runtime.settings.secret)
    desk = StorageDesk(store, runtime.warehouse if embedded else None, used, places.forget)
    exports = ExportDesk(runtime, store)
    installation = installation_of(
        runtime.settings, store, topics, offsets, schemas, declared, scripts, desk, exports
    )
    driver = QueryDriver(store, secret(runtime.data, QUERY_KEY))
    history = QueryHistory(store.engine)
    readers = Readers()
    describe_caller = callers(runtime.settings.limits, gate, embedded)
    routers: tuple[APIRouter, ...] = (
        control_router(found),
        tables,
        maintenance_router(store),
        metadata_router(store, lake, runtime.settings.namespace),
        topics_router(store, topics, offsets, schemas),
        statements_router(store, found.records, runtime.kafka_access, topics, offsets),
        sql_router(scripts),
        queries_router(scripts, driver, store, history, describe_caller, gate.check_stands),
        history_router(history, store, driver),
        records_router(runtime.kafka_access, schemas, readers, describe_caller, gate.check_stands),
        messages_router(
            runtime.kafka_access, topics, offsets, schemas, readers, describe_caller, gate.check_stands
        ),
        dead_letters_router(store, runtime.kafka_access, topics, offsets, schemas, readers, describe_caller),
        reading_router(store, runtime, places),
        credentials_router(store),
        audit_router(audit),
        storage_router(desk),
        catalogs_router(store, runtime.settings),
        exports_router(exports),
        desired_router(installation, found),
        generators_router(Generators(store.engine)),
        live_router(live, store),
        settings_router(runtime),
    )
    if gate.sessions is not None:
        routers = (*routers, session_router(gate, gate.sessions, public_url))
    check_declared(routers)
    # Routes are tried in their order: engines ask the catalog and the registry with every batch.
    for path, router in (mounts or {}).items():
        app.include_router(router, prefix=path)
    for router in routers:
        app.include_router(router, prefix=API, responses=RESPONSES)
    if gate.sessions is not None:
        app.include_router(signin_router(gate.sessions, public_url))
    app.include_router(files_router(runtime, store))
    app.include_router(operations_router(found, {"store": store.tables, **(checks or {})}, instance))
    app.include_router(pages_router())
    return app


def lifespan_of(live: Live) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    """Live state is looked at while the server serves."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        live.start()
        try:
            yield
        finally:
            await run_in_threadpool(live.stop)

    return lifespan


def operations_router(found: Overview, checks: Mapping[str, Check], instance: str) -> APIRouter:
    router = APIRouter(tags=["operations"])
    logged: dict[str, str] = {}

    @router.get("/healthz", summary="Whether every part answers")
    def healthz(response: Response) -> dict[str, Any]:
        results = {name: _try(name, check, logged) for name, check in checks.items()}
        well = all(result == "ok" for result in results.values())
        response.status_code = status.HTTP_200_OK if well else status.HTTP_503_SERVICE_UNAVAILABLE
        return {"status": "ok" if well else "failing", "instance": instance, "checks": results}

    @router.get("/metrics", summary="Metrics for Prometheus", response_class=Response)
    def metrics(access: Asking) -> Response:
        registry = metrics_registry(found.seen_by(access))
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)

    return router


def _try(name: str, check: Check, logged: dict[str, str]) -> str:
    """What is told to everybody. The error's text is not: it is logged, once as long as it is the same."""
    try:
        check()
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the answer
        told = f"{type(error).__name__}: {error}"
        if logged.get(name) != told:
            log.warning("%s does not answer: %s", name, told)
        logged[name] = told
        return type(error).__name__
    logged.pop(name, None)
    return "ok"
