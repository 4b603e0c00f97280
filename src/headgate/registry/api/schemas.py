"""/schemas: by id, by GUID, all of them."""

from typing import Annotated, Any

from fastapi import APIRouter, Query

from headgate.registry.api.bodies import schema_body, version_body
from headgate.registry.api.forms import text_in
from headgate.registry.api.protocol import new_router, page
from headgate.registry.api.rights import Rights
from headgate.registry.api.subjects import Form, SubjectPrefix
from headgate.registry.schemas import SchemaType, SchemaVersion, check_subject
from headgate.registry.service import RegistryService

FetchMaxId = Annotated[bool, Query(alias="fetchMaxId")]
DEFAULT_CONTEXT = "."
LatestOnly = Annotated[bool, Query(alias="latestOnly")]


def schemas_router(service: RegistryService) -> APIRouter:
    router = new_router()
    _add_lists(router, service)
    _add_schema(router, service)
    _add_places(router, service)
    return router


def _add_lists(router: APIRouter, service: RegistryService) -> None:
    @router.get("/schemas")
    def schemas(
        rights: Rights,
        prefix: SubjectPrefix = "",
        deleted: bool = False,
        latest_only: LatestOnly = False,
        offset: int = 0,
        limit: int = -1,
    ) -> list[dict[str, Any]]:
        found = rights.seen(service.schemas(prefix, deleted, latest_only))
        return [version_body(version) for version in page(found, offset, limit)]

    @router.get("/schemas/types")
    def types() -> list[str]:
        return [kind.value for kind in SchemaType]


def _add_schema(router: APIRouter, service: RegistryService) -> None:
    @router.get("/schemas/ids/{schema_id}")
    def schema(
        rights: Rights, schema_id: int, subject: str = "", form: Form = "", fetch_max_id: FetchMaxId = False
    ) -> dict[str, Any]:
        # An id means one schema whatever the subject; clients name one for the context that it may be in.
        if subject:
            check_subject(subject)
        rights.check_id(service, schema_id)
        stored = service.schema(schema_id)
        body = schema_body(stored, text_in(service, stored.schema, form))
        return {**body, "maxId": service.newest_id()} if fetch_max_id else body

    @router.get("/schemas/ids/{schema_id}/schema")
    def schema_text(rights: Rights, schema_id: int, form: Form = "") -> Any:
        rights.check_id(service, schema_id)
        return text_in(service, service.schema(schema_id).schema, form)

    @router.get("/schemas/guids/{guid}")
    def schema_by_guid(rights: Rights, guid: str, form: Form = "") -> dict[str, Any]:
        stored = service.schema_by_guid(guid)
        rights.check_id(service, stored.id, f"Schema {guid}")
        return {**schema_body(stored, text_in(service, stored.schema, form)), "id": stored.id}

    @router.get("/schemas/guids/{guid}/ids")
    def ids_of_guid(rights: Rights, guid: str) -> list[dict[str, Any]]:
        schema_id = service.schema_by_guid(guid).id
        rights.check_id(service, schema_id, f"Schema {guid}")
        return [{"context": DEFAULT_CONTEXT, "id": schema_id}]


def _add_places(router: APIRouter, service: RegistryService) -> None:
    def places(rights: Rights, schema_id: int, subject: str, deleted: bool) -> list[SchemaVersion]:
        rights.check_id(service, schema_id)
        versions = rights.seen(service.versions_of(schema_id, deleted))
        return [version for version in versions if subject in ("", version.subject)]

    @router.get("/schemas/ids/{schema_id}/subjects")
    def subjects(
        rights: Rights,
        schema_id: int,
        subject: str = "",
        deleted: bool = False,
        offset: int = 0,
        limit: int = -1,
    ) -> list[str]:
        found = sorted({version.subject for version in places(rights, schema_id, subject, deleted)})
        return page(found, offset, limit)

    @router.get("/schemas/ids/{schema_id}/versions")
    def versions(
        rights: Rights,
        schema_id: int,
        subject: str = "",
        deleted: bool = False,
        offset: int = 0,
        limit: int = -1,
    ) -> list[dict[str, Any]]:
        found = page(places(rights, schema_id, subject, deleted), offset, limit)
        return [{"subject": version.subject, "version": version.version} for version in found]
