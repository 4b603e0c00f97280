"""/config and /mode, of the registry and of subjects."""

from typing import Annotated, Any

from fastapi import APIRouter, Query

from headgate.registry.api.bodies import ConfigBody, ModeBody, config_body
from headgate.registry.api.protocol import new_router
from headgate.registry.service import RegistryService

DefaultToGlobal = Annotated[bool, Query(alias="defaultToGlobal")]


def settings_router(service: RegistryService) -> APIRouter:
    router = new_router()
    _add_config(router, service)
    _add_mode(router, service)
    return router


def _add_config(router: APIRouter, service: RegistryService) -> None:
    @router.get("/config")
    def config() -> dict[str, Any]:
        return config_body(service.config(None))

    @router.put("/config")
    def put_config(sent: ConfigBody) -> dict[str, Any]:
        config = sent.config_sent()
        service.put_config(None, config)
        return config

    @router.delete("/config")
    def delete_config() -> dict[str, Any]:
        return config_body(service.delete_config(None))

    @router.get("/config/{subject:path}")
    def subject_config(subject: str, default_to_global: DefaultToGlobal = False) -> dict[str, Any]:
        return config_body(service.config(subject, default_to_global))

    @router.put("/config/{subject:path}")
    def put_subject_config(subject: str, sent: ConfigBody) -> dict[str, Any]:
        config = sent.config_sent()
        service.put_config(subject, config)
        return config

    @router.delete("/config/{subject:path}")
    def delete_subject_config(subject: str) -> dict[str, Any]:
        return config_body(service.delete_config(subject))


def _add_mode(router: APIRouter, service: RegistryService) -> None:
    @router.get("/mode")
    def mode() -> dict[str, str]:
        return {"mode": service.mode(None).value}

    @router.put("/mode")
    def put_mode(sent: ModeBody, force: bool = False) -> dict[str, str]:
        wanted = sent.mode_sent()
        service.put_mode(None, wanted, force)
        return {"mode": wanted.value}

    @router.delete("/mode")
    def delete_mode() -> dict[str, str]:
        return {"mode": service.delete_mode(None).value}

    @router.get("/mode/{subject:path}")
    def subject_mode(subject: str, default_to_global: DefaultToGlobal = False) -> dict[str, str]:
        return {"mode": service.mode(subject, default_to_global).value}

    @router.put("/mode/{subject:path}")
    def put_subject_mode(subject: str, sent: ModeBody, force: bool = False) -> dict[str, str]:
        wanted = sent.mode_sent()
        service.put_mode(subject, wanted, force)
        return {"mode": wanted.value}

    @router.delete("/mode/{subject:path}")
    def delete_subject_mode(subject: str) -> dict[str, str]:
        return {"mode": service.delete_mode(subject).value}
