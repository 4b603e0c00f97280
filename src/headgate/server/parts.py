"""The embedded registry and catalog with the JVM behind them, as far as no URL replaces them."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from fastapi import APIRouter

from headgate.access import LOCAL, Gate
from headgate.catalog.embedded import EmbeddedCatalog
from headgate.catalog.routes import catalog_router
from headgate.embedded.runtime import Runtime
from headgate.jvm import Jvm
from headgate.registry.compatibility import AvroCompatibility
from headgate.registry.routes import registry_router
from headgate.registry.service import RegistryService
from headgate.server.app import Check
from headgate.storage import Places, Storages
from headgate.store import Store


@dataclass(frozen=True)
class Parts:
    """What the application mounts, by path, and how to tell that each works."""

    mounts: Mapping[str, APIRouter]
    checks: Mapping[str, Check]
    # Whether the embedded catalog has tables in a place.
    used: Callable[[str], bool]
    # The embedded catalog's; None where the catalog is yours.
    catalog: EmbeddedCatalog | None = None


def _not_known(_: str) -> bool:
    """A catalog of yours keeps its own."""
    return False


@contextmanager
def embedded_parts(
    runtime: Runtime, store: Store, gate: Gate, places: Places | None = None
) -> Iterator[Parts]:
    """Open while the block lasts; the JVM ends with it."""
    settings = runtime.settings
    mounts: dict[str, APIRouter] = {}
    checks: dict[str, Check] = {}
    used: Callable[[str], bool] = _not_known
    catalog: EmbeddedCatalog | None = None
    with ExitStack() as opened:
        if settings.registry.url is None or settings.catalog.uri is None:
            jvm = opened.enter_context(Jvm(settings.jars_folder))
            checks["jvm"] = lambda: jvm.java.java.lang.System.currentTimeMillis()
        if settings.registry.url is None:
            service = RegistryService(store.engine, AvroCompatibility(jvm))
            mounts["/registry"] = registry_router(service)
            checks["registry"] = service.newest_id
        if settings.catalog.uri is None:
            catalog = opened.enter_context(
                EmbeddedCatalog(
                    jvm,
                    settings.catalog_db,
                    settings.warehouse,
                    (settings.namespace,),
                    settings.catalog.locations,
                    places or Places.of(settings, Storages(store.engine)),
                )
            )
            mounts["/iceberg"] = catalog_router(catalog, gate, settings.public.url)
            listing = catalog.namespaces.list
            checks["catalog"] = lambda: listing((), None, 1, LOCAL)
            used = catalog.has_tables_in
        yield Parts(mounts, checks, used, catalog)
