"""/subjects: registering, finding and deleting."""

from typing import Annotated, Any
from urllib.parse import unquote

from fastapi import APIRouter, Query

from headgate.registry.api.bodies import SchemaBody, UnknownAllowed, version_body
from headgate.registry.api.forms import text_in
from headgate.registry.api.protocol import new_router, page
from headgate.registry.api.rights import Rights
from headgate.registry.refusals import unprocessable
from headgate.registry.schemas import SchemaVersion
from headgate.registry.service import RegistryService

DeletedOnly = Annotated[bool, Query(alias="deletedOnly")]
SubjectPrefix = Annotated[str, Query(alias="subjectPrefix")]
Form = Annotated[str, Query(alias="format")]
# The Python client spells it so.
DeletedOnlyToo = Annotated[bool, Query(alias="deleted_only")]


def subjects_router(service: RegistryService) -> APIRouter:
    """Longer paths first: a subject takes all that is left of a path."""
    router = new_router()
    _add_versions(router, service)
    _add_subjects(router, service)
    return router


def _add_versions(router: APIRouter, service: RegistryService) -> None:
    def body(version: SchemaVersion, form: str) -> dict[str, Any]:
        return version_body(version, text_in(service, version.schema, form))

    @router.get("/subjects/{subject:path}/versions/{version}/schema")
    def version_schema(subject: str, version: str, deleted: bool = False, form: Form = "") -> Any:
        return text_in(service, service.version(subject, version, deleted).schema, form)

    @router.get("/subjects/{subject:path}/versions/{version}/referencedby")
    def referenced_by(subject: str, version: str, offset: int = 0, limit: int = -1) -> list[int]:
        return page(service.referenced_by(subject, version), offset, limit)

    @router.get("/subjects/{subject:path}/versions/{version}")
    def version(subject: str, version: str, deleted: bool = False, form: Form = "") -> dict[str, Any]:
        return body(service.version(subject, version, deleted), form)

    @router.delete("/subjects/{subject:path}/versions/{version}")
    def delete_version(subject: str, version: str, permanent: bool = False) -> int:
        return service.delete_version(subject, version, permanent)

    @router.get("/subjects/{subject:path}/versions")
    def versions(
        subject: str,
        deleted: bool = False,
        deleted_only: DeletedOnly = False,
        deleted_only_too: DeletedOnlyToo = False,
        offset: int = 0,
        limit: int = -1,
    ) -> list[int]:
        found = service.versions(subject, deleted, deleted_only or deleted_only_too)
        return page(found, offset, limit)

    @router.post("/subjects/{subject:path}/versions")
    def register(
        rights: Rights,
        subject: str,
        sent: SchemaBody,
        unknown_allowed: UnknownAllowed = False,
        normalize: bool = False,
    ) -> dict[str, Any]:
        rights.check_references(sent)
        schema = sent.schema_sent(unknown_allowed)
        version = service.register(subject, schema, normalize, sent.imported)
        return {"id": version.id, "version": version.version, "guid": version.stored.guid}

    @router.get("/subjects/{subject:path}/metadata")
    def latest_with_metadata(
        subject: str,
        key: Annotated[list[str] | None, Query()] = None,
        value: Annotated[list[str] | None, Query()] = None,
        deleted: bool = False,
        form: Form = "",
    ) -> dict[str, Any]:
        if len(key or []) != len(value or []):
            raise unprocessable("There must be as many values as keys.")
        # The Python client encodes them twice.
        properties = {unquote(k): unquote(v) for k, v in zip(key or [], value or [], strict=True)}
        return body(service.latest_with_metadata(subject, properties, deleted), form)


def _add_subjects(router: APIRouter, service: RegistryService) -> None:
    @router.get("/subjects")
    def subjects(
        rights: Rights,
        prefix: SubjectPrefix = "",
        deleted: bool = False,
        deleted_only: DeletedOnly = False,
        deleted_only_too: DeletedOnlyToo = False,
        offset: int = 0,
        limit: int = -1,
    ) -> list[str]:
        found = service.subjects(prefix, deleted, deleted_only or deleted_only_too)
        return page([subject for subject in found if rights.sees(subject)], offset, limit)

    @router.post("/subjects/{subject:path}")
    def lookup(
        rights: Rights,
        subject: str,
        sent: SchemaBody,
        unknown_allowed: UnknownAllowed = False,
        normalize: bool = False,
        deleted: bool = False,
        form: Form = "",
    ) -> dict[str, Any]:
        rights.check_references(sent)
        found = service.lookup(subject, sent.schema_sent(unknown_allowed), normalize, deleted)
        return version_body(found, text_in(service, found.schema, form))

    @router.delete("/subjects/{subject:path}")
    def delete_subject(subject: str, permanent: bool = False) -> list[int]:
        return service.delete_subject(subject, permanent)
