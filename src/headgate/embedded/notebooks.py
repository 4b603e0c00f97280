"""The folder of the notebooks' driver: all that it is told, and the token that opens it."""

import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from headgate.access import Grant, Role
from headgate.access.credentials import Credentials
from headgate.embedded.privacy import harmless
from headgate.embedded.runtime import Runtime
from headgate.errors import NotFound
from headgate.store import Store

NAME = "connect"
# The credential by which the driver reads and writes the catalog; another at each start.
CREDENTIAL = "headgate-connect"
TOKEN_BYTES = 32


@dataclass(frozen=True)
class Told:
    """What the driver is told: where it listens, where the catalog is, and what it shows there."""

    port: int
    memory: str
    namespace: str
    jars: str
    iceberg: str
    warehouse: str | None
    # Client id and secret for the embedded catalog.
    credential: str | None
    # Of a catalog of yours.
    properties: Mapping[str, str]

    def write(self, folder: Path) -> None:
        _write(folder / "settings.json", json.dumps(asdict(self)))

    @classmethod
    def read(cls, folder: Path) -> Self:
        return cls(**json.loads((folder / "settings.json").read_text()))


def folder_of(data: Path) -> Path:
    return data / NAME


def token_of(data: Path) -> str:
    """What a client of Spark Connect shows."""
    try:
        return (folder_of(data) / "token").read_text()
    except FileNotFoundError as error:
        raise NotFound(
            "Spark Connect was never started on this data folder.",
            "Set connect.enabled, and start Headgate.",
        ) from error


def prepare(runtime: Runtime, store: Store) -> list[str]:
    """The command that starts the driver, with its folder made ready: nothing secret is in the command."""
    settings = runtime.settings
    folder = folder_of(runtime.data)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    folder.chmod(0o700)
    if not (folder / "token").exists():
        _write(folder / "token", secrets.token_urlsafe(TOKEN_BYTES))
    told = Told(
        runtime.connect_port,
        settings.connect.memory,
        settings.namespace,
        str(settings.jars_folder),
        runtime.iceberg,
        settings.catalog.warehouse,
        _lent(store) if settings.catalog.uri is None else None,
        settings.catalog.properties,
    )
    told.write(folder)
    return [str(folder)]


def environment(data: Path, given: Mapping[str, str]) -> dict[str, str]:
    """That of the driver: no setting of ours is in it, nor a key of anything."""
    return {**harmless(given), "HOME": str(folder_of(data))}


def revoke(store: Store) -> None:
    """The credential of an earlier run opens nothing any more."""
    credentials = Credentials(store.engine)
    for credential in credentials.list():
        if credential.name == CREDENTIAL and credential.revoked_at is None:
            credentials.revoke(credential.client_id)


def _lent(store: Store) -> str:
    revoke(store)
    made, secret = Credentials(store.engine).create(CREDENTIAL, [Grant(Role.WRITER)])
    return f"{made.client_id}:{secret}"


def _write(file: Path, text: str) -> None:
    """For its owner alone, whole or not at all."""
    draft = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:  # noqa: PTH123
        out.write(text)
    draft.replace(file)
