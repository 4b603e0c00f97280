"""Outside catalogs that tables are published to. What is asked is written down; the engine carries it out."""

import time
from typing import Any

from fastapi import APIRouter, status
from pydantic import BaseModel, ConfigDict, Field

from headgate.access import Role
from headgate.config import Settings
from headgate.publication.options import as_place, format_of, parse_options, place
from headgate.publication.policy import policy
from headgate.server.access import Asking, needs
from headgate.storage import Storages
from headgate.store import IntegrationRecord, Integrations, PublicationRecord, Store

EVENTS = 50


class CatalogRequest(BaseModel):
    """A catalog, and how it is reached. Secrets are named: the configuration has them."""

    model_config = ConfigDict(extra="forbid")

    name: str
    kind: str = Field(description="`glue`, `unity` or `rest`")
    format: str | None = Field(None, description="`iceberg` or `delta`: what a catalog of this kind takes.")
    options: dict[str, Any] = Field(default_factory=dict)


# None of it is a question of topics.
ADMINS = needs(Role.ADMIN, "everything")


def catalogs_router(store: Store, settings: Settings) -> APIRouter:
    router = APIRouter(prefix="/catalogs", tags=["catalogs"])
    integrations = Integrations(store.engine)
    storages = Storages(store.engine)
    cluster = settings.cluster.name

    def shown(record: IntegrationRecord) -> dict[str, Any]:
        options = parse_options(record.kind, record.options)
        tables = integrations.publications(record.name)
        return {
            "name": record.name,
            "kind": record.kind,
            "format": record.format.value,
            "state": record.state.value,
            "reason": record.reason,
            "since": record.since,
            "desired": record.desired,
            "place": place(record.kind, options, cluster),
            "options": options.model_dump(
                mode="json", by_alias=True, exclude_none=True, exclude_defaults=True
            ),
            "created_at": record.created_at,
            "tables": [publication(one) for one in tables],
        }

    @router.post("", summary="Publish tables to a catalog", status_code=status.HTTP_201_CREATED, **ADMINS)
    def add(wanted: CatalogRequest, access: Asking) -> dict[str, Any]:
        """It is `Connected` once the first table of its format is there and the catalog has taken it."""
        access.note(f"catalog {wanted.name}")
        add_catalog(settings, storages, integrations, wanted)
        return shown(integrations.get(wanted.name))

    @router.get("", summary="List the catalogs", **ADMINS)
    def list_catalogs() -> list[dict[str, Any]]:
        return [shown(record) for record in integrations.all()]

    @router.get("/{name}", summary="Show a catalog with its tables and events", **ADMINS)
    def show(name: str) -> dict[str, Any]:
        now = time.time()
        events = store.events(f"catalog {name}", EVENTS)
        record = integrations.get(name)
        return shown(record) | {
            "age": now - record.since,
            "events": [event | {"age": now - event["at"]} for event in events],
        }

    @router.post("/{name}/retry", summary="Try again at once", status_code=status.HTTP_202_ACCEPTED, **ADMINS)
    def retry(name: str) -> dict[str, Any]:
        integrations.retry(name)
        return show(name)

    @router.delete("/{name}", summary="Take the tables out", status_code=status.HTTP_202_ACCEPTED, **ADMINS)
    def remove(name: str, force: bool = False) -> dict[str, Any]:
        """With `force` it is forgotten at once, and entries that are there stay there."""
        found = show(name)
        if force:
            integrations.forget(name)
        else:
            integrations.want_removed(name)
            found["desired"] = "removed"
        return found

    @router.get("/{name}/policy", summary="The least that AWS must allow", **ADMINS)
    def show_policy(name: str, purpose: str = "publisher", account: str | None = None) -> dict[str, Any]:
        record = integrations.get(name)
        return policy(record.kind, record.options, cluster, purpose, account, storages.get)

    return router


def add_catalog(
    settings: Settings, storages: Storages, integrations: Integrations, wanted: CatalogRequest
) -> None:
    """Keeps a catalog of which all that it names is known."""
    options = parse_options(wanted.kind, wanted.options)
    table_format = format_of(wanted.kind, wanted.format)
    if options.secret is not None:
        settings.secret(options.secret)  # a name that nobody knows is refused here
    as_place(options, storages.get)  # and so is a storage without a role
    said = options.model_dump(mode="json", by_alias=True, exclude_none=True)
    integrations.add(wanted.name, wanted.kind, table_format, said)


def publication(one: PublicationRecord) -> dict[str, Any]:
    return {
        "catalog": one.integration,
        "topic": one.topic,
        "name": one.outside_name,
        "state": one.state.value,
        "reason": one.reason,
        "since": one.since,
        "metadata_location": one.detail.get("metadata_location"),
        "published_at": one.detail.get("published_at"),
    }
