"""What keeps other users of the machine out of the files, core images and environments of Headgate."""

import os
import resource
import stat
from collections.abc import Mapping
from pathlib import Path

from headgate.config import CLIENT_VARIABLES, PREFIX
from headgate.errors import ConfigError

OWNER_ONLY = 0o077
# What a program that reads no settings of Headgate's may need; keys of clouds are not among them.
HARMLESS = frozenset(
    {
        "HOME", "JAVA_HOME", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "LANG", "LANGUAGE", "LD_LIBRARY_PATH",
        "LOGNAME", "PATH", "PYTHONHOME", "PYTHONPATH", "PYTHONUNBUFFERED", "SHELL", "TEMP", "TMP", "TMPDIR",
        "TZ", "USER", "VIRTUAL_ENV",
    }
)  # fmt: skip


def keep_private() -> None:
    """From now on this process and those it starts make files for their own user only, and no core files."""
    os.umask(OWNER_ONLY)
    # Of one byte: Linux asks a program that takes core files to take this one too where the limit is 0.
    most = resource.getrlimit(resource.RLIMIT_CORE)[1]
    limit = 0 if most == 0 else 1
    resource.setrlimit(resource.RLIMIT_CORE, (limit, limit))


def forget_settings() -> None:
    """Removes the settings, once they are read, from the environment of what is started later."""
    for name in list(os.environ):
        if name.startswith(PREFIX) and (name not in CLIENT_VARIABLES or name == "HEADGATE_CLIENT_SECRET"):
            del os.environ[name]


def harmless(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that any program may have."""
    return {name: value for name, value in environment.items() if name in HARMLESS or name.startswith("LC_")}


def write_private(file: Path, text: str) -> None:
    """Replaces a file by one that its owner alone can read."""
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:  # noqa: PTH123
        out.write(text)
    draft.replace(file)


def make_private(folder: Path) -> None:
    """A folder of this user that nobody else enters: made so, or tightened with all that is in it."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    seen = folder.stat()
    if seen.st_uid != os.geteuid():
        raise ConfigError(
            f"The data folder {folder} belongs to the user {seen.st_uid}, and this is {os.geteuid()}: "
            "its owner could read and change all that Headgate keeps there.",
            "Run Headgate as that user, or name another folder with --data.",
        )
    if not stat.S_IMODE(seen.st_mode) & OWNER_ONLY:
        # Who is not let in reaches nothing inside.
        return
    folder.chmod(0o700)
    for inside, folders, files in os.walk(folder):
        for name in (*folders, *files):
            _tighten(Path(inside) / name)


def _tighten(path: Path) -> None:
    """Not through links, which lead elsewhere."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        # A link, a socket, or gone meanwhile: nothing that others could open here.
        return
    try:
        mode = stat.S_IMODE(os.fstat(handle).st_mode)
        if mode & OWNER_ONLY and os.fstat(handle).st_uid == os.geteuid():
            os.fchmod(handle, mode & ~OWNER_ONLY)
    finally:
        os.close(handle)
