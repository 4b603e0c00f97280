"""Outside catalogs that tables are published to. What is asked is written down; the engine carries it out."""

import time
import uuid
from dataclasses import replace
from typing import Any

from fastapi import APIRouter, status
from pydantic import BaseModel, ConfigDict, Field

from headgate.access import Role
from headgate.config import Settings
from headgate.errors import HeadgateError, InvalidRequest
from headgate.publication.glue import caller_arn
from headgate.publication.options import GlueOptions, as_place, format_of, parse_options, place
from headgate.publication.policy import Around, policy
from headgate.server.access import Asking, needs
from headgate.server.answers import answers
from headgate.server.answers.catalogs import CatalogAnswer, PolicyAnswer, ShownCatalogAnswer
from headgate.storage import Place, Places, Storages
from headgate.storage.place import split
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

    @router.post(
        "",
        summary="Publish tables to a catalog",
        status_code=status.HTTP_201_CREATED,
        **ADMINS,
        **answers(CatalogAnswer, 201),
    )
    def add(wanted: CatalogRequest, access: Asking) -> dict[str, Any]:
        """Glue and REST catalogs are `Connected` as soon as they answer; Unity Catalog with its first table.
        A role that is given without an external id gets one, which its trust policy can ask for."""
        access.note(f"catalog {wanted.name}")
        options = wanted.options
        if options.get("role_arn") and not options.get("external_id"):
            options = {**options, "external_id": f"headgate-{uuid.uuid4()}"}
        add_catalog(settings, storages, integrations, wanted.model_copy(update={"options": options}))
        return shown(integrations.get(wanted.name))

    @router.get("", summary="List the catalogs", **ADMINS, **answers(list[CatalogAnswer]))
    def list_catalogs() -> list[dict[str, Any]]:
        return [shown(record) for record in integrations.all()]

    @router.get(
        "/{name}",
        summary="Show a catalog with its tables and events",
        **ADMINS,
        **answers(ShownCatalogAnswer),
    )
    def show(name: str) -> dict[str, Any]:
        now = time.time()
        events = store.events(f"catalog {name}", EVENTS)
        record = integrations.get(name)
        return shown(record) | {
            "age": now - record.since,
            "events": [event | {"age": now - event["at"]} for event in events],
        }

    @router.post(
        "/{name}/retry",
        summary="Try again at once",
        status_code=status.HTTP_202_ACCEPTED,
        **ADMINS,
        **answers(ShownCatalogAnswer, 202),
    )
    def retry(name: str) -> dict[str, Any]:
        integrations.retry(name)
        return show(name)

    @router.delete(
        "/{name}",
        summary="Take the tables out",
        status_code=status.HTTP_202_ACCEPTED,
        **ADMINS,
        **answers(ShownCatalogAnswer, 202),
    )
    def remove(name: str, force: bool = False) -> dict[str, Any]:
        """With `force` it is forgotten at once, and entries that are there stay there."""
        found = show(name)
        if force:
            integrations.forget(name)
        else:
            integrations.want_removed(name)
            found["desired"] = "removed"
        return found

    @router.get("/{name}/policy", summary="The least that AWS must allow", **ADMINS, **answers(PolicyAnswer))
    def show_policy(name: str, purpose: str = "publisher", account: str | None = None) -> dict[str, Any]:
        """Without an account, AWS is asked who Headgate is."""
        record = integrations.get(name)
        around = Around(cluster, storages.get, table_places(settings, storages), caller)
        return policy(record.kind, record.options, purpose, account, around)

    def caller(options: GlueOptions) -> str:
        secret = None if options.secret is None else settings.secret(options.secret)
        try:
            return caller_arn(options, secret)
        except HeadgateError as error:
            raise InvalidRequest(
                f"AWS does not tell who Headgate is: {error.message}",
                "Say it: --account 123456789012.",
            ) from error

    return router


def table_places(settings: Settings, storages: Storages) -> list[Place]:
    """The buckets where tables may lie: the warehouse, if it is in one, and named places."""
    places = Places.of(settings, storages)
    warehouse = places.at(settings.warehouse) if settings.catalog.uri is None else None
    if warehouse is not None and warehouse.name is None:
        _, prefix = split(settings.warehouse)
        warehouse = replace(warehouse, prefix=prefix)
    return [*([] if warehouse is None else [warehouse]), *storages.list()]


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
