"""Confluent's Schema Registry API on a RegistryService."""

from typing import Any

from fastapi import APIRouter

from headgate.registry.api.compatibility import compatibility_router
from headgate.registry.api.protocol import new_router
from headgate.registry.api.schemas import schemas_router
from headgate.registry.api.settings import settings_router
from headgate.registry.api.subjects import subjects_router
from headgate.registry.refusals import contexts_unsupported
from headgate.registry.service import RegistryService


def registry_router(service: RegistryService) -> APIRouter:
    """All routes, without a prefix: the server mounts them where it likes."""
    router = new_router()
    router.include_router(subjects_router(service))
    router.include_router(schemas_router(service))
    router.include_router(settings_router(service))
    router.include_router(compatibility_router(service))
    _add_rest(router)
    return router


def _add_rest(router: APIRouter) -> None:
    @router.get("/")
    def root() -> dict[str, Any]:
        return {}

    @router.get("/associations/resources/{namespace}/{resource:path}")
    def associations(namespace: str, resource: str) -> list[Any]:
        # Serializers ask before they fall back on the topic's name. There are none: nothing makes them.
        return []

    @router.get("/contexts")
    def contexts() -> None:
        raise contexts_unsupported("/contexts")

    @router.api_route(
        "/contexts/{rest:path}", methods=["GET", "POST", "PUT", "DELETE"], include_in_schema=False
    )
    def in_context(rest: str) -> None:
        raise contexts_unsupported(f"/contexts/{rest}")
