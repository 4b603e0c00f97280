"""How a table is read from elsewhere: its names, and the addresses that engines need."""

from typing import Any

from fastapi import APIRouter

from headgate.access import Role
from headgate.catalog.oauth import PATH
from headgate.embedded.runtime import Runtime
from headgate.server.access import needs
from headgate.server.answers import answers
from headgate.server.answers.dead_letters import ReadingAnswer
from headgate.storage import Places
from headgate.store import Store

# What tokens of the catalog are for.
SCOPE = "catalog"


def reading_router(store: Store, runtime: Runtime, places: Places) -> APIRouter:
    router = APIRouter(prefix="/tables", tags=["tables"])
    settings = runtime.settings
    embedded = settings.catalog.uri is None

    @router.get(
        "/{topic}/reading",
        summary="How a table is read from elsewhere",
        **needs(Role.READER, "table"),
        **answers(ReadingAnswer),
    )
    def reading(topic: str) -> dict[str, Any]:
        """Names and addresses for the engines that read it. No secret is among them."""
        record = store.table(topic)
        location = record.status.detail.get("location")
        uri, public = runtime.addresses["iceberg"], runtime.addresses.get("public")
        return {
            "namespace": settings.namespace,
            "table": topic,
            "formats": [one.value for one in record.spec.formats],
            "format_version": record.status.detail.get("format_version") or record.spec.format,
            "location": location,
            "storage": None if location is None else _storage(places, location),
            "catalog": {
                "uri": uri,
                "public_uri": f"{public.rstrip('/')}/iceberg" if embedded and public is not None else None,
                "warehouse": settings.catalog.warehouse,
                "token_uri": f"{uri}{PATH}" if embedded else None,
                "scope": SCOPE,
                "needs_credential": not embedded or settings.auth.required,
            },
        }

    return router


def _storage(places: Places, location: str) -> dict[str, Any] | None:
    """Of an object store; a folder needs nothing."""
    place = places.at(location)
    if place is None:
        return None
    return {"region": place.region, "endpoint": place.endpoint, "path_style": place.path_style}
