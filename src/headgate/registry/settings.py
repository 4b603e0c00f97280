"""Compatibility and mode, for the whole registry and by subject. All within the caller's transaction."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from headgate.registry.compatibility import Level
from headgate.registry.refusals import not_permitted

# No subject has an empty name: these settings are everybody's.
GLOBAL = ""

_metadata = sa.MetaData()
_config = sa.Table(
    "registry_config",
    _metadata,
    sa.Column("scope", sa.String, primary_key=True),
    sa.Column("config", sa.JSON),
)
_mode = sa.Table(
    "registry_mode",
    _metadata,
    sa.Column("scope", sa.String, primary_key=True),
    sa.Column("mode", sa.String),
)


class Mode(StrEnum):
    READWRITE = "READWRITE"
    READONLY = "READONLY"
    READONLY_OVERRIDE = "READONLY_OVERRIDE"
    IMPORT = "IMPORT"


# -- configuration


def own_config(connection: Connection, scope: str) -> dict[str, Any] | None:
    """What was set for this very scope."""
    query = sa.select(_config.c.config).where(_config.c.scope == scope)
    found = connection.execute(query).scalar_one_or_none()
    return None if found is None else dict(found)


def effective_config(connection: Connection, subject: str) -> dict[str, Any]:
    """What applies to a subject: its own settings over everybody's over the defaults."""
    below = {"compatibility": Level.BACKWARD.value, **(own_config(connection, GLOBAL) or {})}
    return {**below, **(own_config(connection, subject) or {})}


def put_config(connection: Connection, scope: str, config: Mapping[str, Any]) -> None:
    """Settings that are not named keep their value."""
    before = own_config(connection, scope)
    if before is None:
        connection.execute(_config.insert().values(scope=scope, config=dict(config)))
    else:
        merged = {**before, **config}
        connection.execute(_config.update().where(_config.c.scope == scope).values(config=merged))


def drop_config(connection: Connection, scope: str) -> None:
    connection.execute(_config.delete().where(_config.c.scope == scope))


# -- mode


def own_mode(connection: Connection, scope: str) -> Mode | None:
    found = connection.execute(sa.select(_mode.c.mode).where(_mode.c.scope == scope)).scalar_one_or_none()
    return None if found is None else Mode(found)


def effective_mode(connection: Connection, subject: str) -> Mode:
    everybody = own_mode(connection, GLOBAL) or Mode.READWRITE
    if everybody is Mode.READONLY_OVERRIDE:
        return everybody
    return own_mode(connection, subject) or everybody


def put_mode(connection: Connection, scope: str, mode: Mode) -> None:
    drop_mode(connection, scope)
    connection.execute(_mode.insert().values(scope=scope, mode=mode.value))


def drop_mode(connection: Connection, scope: str) -> None:
    connection.execute(_mode.delete().where(_mode.c.scope == scope))


def refuse_when_read_only(connection: Connection, subject: str) -> None:
    mode = effective_mode(connection, subject)
    if mode in (Mode.READONLY, Mode.READONLY_OVERRIDE):
        named = f"Subject '{subject}'" if subject != GLOBAL else "The registry"
        raise not_permitted(f"{named} is in read-only mode.", "Set its mode to READWRITE first.")
