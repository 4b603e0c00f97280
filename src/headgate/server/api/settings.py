"""What this Headgate was told: settings with their values and where each comes from. To be read alone."""

from collections.abc import Iterator, Mapping
from typing import Any, get_args

from fastapi import APIRouter
from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from headgate.access import Role
from headgate.config import Settings, Source
from headgate.embedded.runtime import Runtime, without_password
from headgate.server.access import needs
from headgate.server.answers.settings import SettingAnswer
from headgate.server.answers.shape import answers

# What is in these is a program's own, and passwords and tokens are among it: names are shown alone.
FREE = frozenset({"catalog.properties", "spark.properties"})
# The command line's own option, which is always given.
DATA = "data"


def settings_router(runtime: Runtime) -> APIRouter:
    router = APIRouter(tags=["headgate"])
    shown = list(settings_shown(runtime.settings, runtime.sources))

    @router.get(
        "/settings",
        summary="Settings, and where each comes from",
        **answers(list[SettingAnswer]),
        **needs(Role.ADMIN, "everything"),
    )
    def settings() -> list[dict[str, Any]]:
        """As they were when the server started. Secrets are named and not shown."""
        return shown

    return router


def settings_shown(settings: Settings, sources: Mapping[str, Source]) -> Iterator[dict[str, Any]]:
    for key, field, value in _leaves(Settings, settings.model_dump(mode="json"), ""):
        source = "command" if key == DATA else sources.get(key, "default")
        said = {"key": key, "source": source, "description": field.description or ""}
        if _is_secret(field) or key in FREE:
            # Of secrets by name, and of free properties: each with its own name, none with its value.
            names = sorted(value) if isinstance(value, Mapping) else None
            for name in names or ():
                own = sources.get(f"{key}.{name}", source)
                yield {**said, "key": f"{key}.{name}", "value": None, "source": own, "secret": True}
            if names is None or (not names and key in FREE):
                yield {**said, "value": None, "secret": True}
        else:
            yield {**said, "value": _without_passwords(value), "secret": False}


def _leaves(
    section: type[BaseModel], values: Mapping[str, Any], within: str
) -> Iterator[tuple[str, FieldInfo, Any]]:
    for name, field in section.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from _leaves(kind, values[name], f"{within}{name}.")
        else:
            yield f"{within}{name}", field, values[name]


def _is_secret(field: FieldInfo) -> bool:
    return SecretStr in (field.annotation, *get_args(field.annotation))


def _without_passwords(value: Any) -> Any:
    """An address may have a user and a password in it, and a database's takes them as parameters too."""
    if isinstance(value, str):
        if "://" not in value:
            return value
        address, asked, _ = without_password(value).partition("?")
        return f"{address}?…" if asked else address
    if isinstance(value, list):
        return [_without_passwords(one) for one in value]
    if isinstance(value, dict):
        return {name: _without_passwords(one) for name, one in value.items()}
    return value
