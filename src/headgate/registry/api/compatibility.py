"""/compatibility: would this schema be accepted?"""

from typing import Any

from fastapi import APIRouter

from headgate.registry.api.bodies import SchemaBody, UnknownAllowed
from headgate.registry.api.protocol import new_router
from headgate.registry.api.rights import Rights
from headgate.registry.compatibility import Verdict
from headgate.registry.refusals import unprocessable
from headgate.registry.schemas import Schema
from headgate.registry.service import RegistryService


def compatibility_router(service: RegistryService) -> APIRouter:
    router = new_router()

    @router.post("/compatibility/subjects/{subject:path}/versions/{version}")
    def check_version(
        rights: Rights,
        subject: str,
        version: str,
        sent: SchemaBody,
        unknown_allowed: UnknownAllowed = False,
        verbose: bool = False,
    ) -> dict[str, Any]:
        rights.check_references(sent)
        schema = sent.schema_sent(unknown_allowed)
        return _body(schema, service.check(subject, schema, version), verbose)

    @router.post("/compatibility/subjects/{subject:path}/versions")
    def check_subject(
        rights: Rights,
        subject: str,
        sent: SchemaBody,
        unknown_allowed: UnknownAllowed = False,
        verbose: bool = False,
    ) -> dict[str, Any]:
        rights.check_references(sent)
        schema = sent.schema_sent(unknown_allowed)
        return _body(schema, service.check(subject, schema), verbose)

    return router


def _body(schema: Schema, verdict: Verdict, verbose: bool) -> dict[str, Any]:
    if verdict.unjudged and not verdict.problems:
        listed = ", ".join(str(version) for version in verdict.unjudged)
        raise unprocessable(
            f"Cannot judge: compatibility of {schema.type.value} schemas is not checked yet, and this one "
            f"differs from version {listed}."
        )
    body: dict[str, Any] = {"is_compatible": not verdict.problems}
    return {**body, "messages": list(verdict.problems)} if verbose else body
