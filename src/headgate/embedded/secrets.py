"""Random tokens that the parts of one Headgate share, each made once and kept in a file of its own."""

import os
import secrets
from pathlib import Path

TOKEN_BYTES = 32
# What the engine shows to the catalog and the registry, and commands to the control API.
ENGINE_KEY, OPERATOR_KEY = "engine", "operator"
# What clients of the embedded broker log in with, where it asks.
BROKER_KEY = "broker"
# What the server shows to the query driver.
QUERY_KEY = "query"
# What links to the files of exports are signed with.
EXPORT_KEY = "export"


def secret(data: Path, name: str) -> str:
    """The token `name` of this data folder; made on first use, readable by its owner only."""
    folder = data / "secrets"
    file = folder / name
    if not file.exists():
        _make(folder, file)
    return file.read_text()


def known_secret(data: Path, name: str) -> str | None:
    """The token, if it is there and this user may read it."""
    try:
        return (data / "secrets" / name).read_text()
    except (FileNotFoundError, PermissionError):
        return None


def _make(folder: Path, file: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    # mkdir's mode passes through the umask and does nothing to a folder that is there already.
    folder.chmod(0o700)
    draft = folder / f".{file.name}.{secrets.token_hex(8)}"
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:  # noqa: PTH123
        out.write(secrets.token_urlsafe(TOKEN_BYTES))
    try:
        # A link fails where a rename would replace: of two processes that make it at once, one wins for both.
        file.hardlink_to(draft)
    except FileExistsError:
        return
    finally:
        draft.unlink()
