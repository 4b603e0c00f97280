"""/schemas: by id, by GUID, all of them."""

from typing import Annotated, Any

from fastapi import APIRouter, Query

from headgate.registry.api.bodies import schema_body, version_body
from headgate.registry.api.forms import text_in
from headgate.registry.api.protocol import new_router, page
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
        prefix: SubjectPrefix = "",
        deleted: bool = False,
        latest_only: LatestOnly = False,
        offset: int = 0,
        limit: int = -1,
    ) -> list[dict[str, Any]]:
        found = service.schemas(prefix, deleted, latest_only)
        return [version_body(version) for version in page(found, offset, limit)]

    @router.get("/schemas/types")
    def types() -> list[str]:
        return [kind.value for kind in SchemaType]


def _add_schema(router: APIRouter, service: RegistryService) -> None:
    @router.get("/schemas/ids/{schema_id}")
    def schema(
        schema_id: int, subject: str = "", form: Form = "", fetch_max_id: FetchMaxId = False
    ) -> dict[str, Any]:
        # An id means one schema whatever the subject; clients name one for the context that it may be in.
        if subject:
            check_subject(subject)
        stored = service.schema(schema_id)
        body = schema_body(stored, text_in(service, stored.schema, form))
        return {**body, "maxId": service.newest_id()} if fetch_max_id else body

    @router.get("/schemas/ids/{schema_id}/schema")
    def schema_text(schema_id: int, form: Form = "") -> Any:
        return text_in(service, service.schema(schema_id).schema, form)

    @router.get("/schemas/guids/{guid}")
    def schema_by_guid(guid: str, form: Form = "") -> dict[str, Any]:
        stored = service.schema_by_guid(guid)
        return {**schema_body(stored, text_in(service, stored.schema, form)), "id": stored.id}

    @router.get("/schemas/guids/{guid}/ids")
    def ids_of_guid(guid: str) -> list[dict[str, Any]]:
        return [{"context": DEFAULT_CONTEXT, "id": service.schema_by_guid(guid).id}]


def _add_places(router: APIRouter, service: RegistryService) -> None:
    def places(schema_id: int, subject: str, deleted: bool) -> list[SchemaVersion]:
        return [v for v in service.versions_of(schema_id, deleted) if subject in ("", v.subject)]

    @router.get("/schemas/ids/{schema_id}/subjects")
    def subjects(
        schema_id: int, subject: str = "", deleted: bool = False, offset: int = 0, limit: int = -1
    ) -> list[str]:
        found = sorted({version.subject for version in places(schema_id, subject, deleted)})
        return page(found, offset, limit)

    @router.get("/schemas/ids/{schema_id}/versions")
    def versions(
        schema_id: int, subject: str = "", deleted: bool = False, offset: int = 0, limit: int = -1
    ) -> list[dict[str, Any]]:
        found = page(places(schema_id, subject, deleted), offset, limit)
        return [{"subject": version.subject, "version": version.version} for version in found]
