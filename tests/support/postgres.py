"""A Postgres of the tests' own, from `.jars/postgres`."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.exc import OperationalError

from headgate.config import Settings
from headgate.embedded.ports import LOOPBACK, free_port
from tests.support.services import wait_for

PASSWORD = "canary-51d0-password"
# Postgres does not run as root: nobody does it then.
NOBODY = 65534


def _installation(folder: Path, user: int | None) -> Path:
    """The folder that has `bin/initdb` and `bin/postgres`, such as `user` may run."""
    installed = Settings().jars_folder / "postgres"
    for program in ("initdb", "postgres"):
        if not (installed / "bin" / program).is_file():
            raise FileNotFoundError(
                f"{installed} has no bin/{program}: run `make test-setup`. If Postgres is not packaged for "
                "this platform, make that folder a link to an installed one (the folder that has bin/initdb)."
            )
    if user is None:
        return installed
    # A checkout may lie in a folder that only root may enter: a copy does not.
    copy = folder / "programs"
    shutil.copytree(installed, copy, symlinks=True)
    for path in (copy, *copy.rglob("*")):
        os.chown(path, user, user, follow_symlinks=False)
    return copy


@contextmanager
def postgres() -> Iterator[str]:
    """Its URL, with the password; one empty database."""
    folder = Path(tempfile.mkdtemp(prefix="headgate-postgres-"))
    user = NOBODY if os.geteuid() == 0 else None
    try:
        programs = _installation(folder, user) / "bin"
        secret = folder / "password"
        secret.write_text(PASSWORD)
        for path in (folder, secret):
            if user is not None:
                os.chown(path, user, user)
        data, port = folder / "data", free_port()
        settings = ("--username=headgate", "--auth=scram-sha-256", f"--pwfile={secret}", "--no-sync")
        subprocess.run(
            [programs / "initdb", *settings, "--encoding=UTF8", "--no-locale", f"--pgdata={data}"],
            user=user,
            cwd=folder,
            check=True,
            capture_output=True,
        )
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                [programs / "postgres", "-D", str(data), "-p", str(port), "-h", LOOPBACK, "-k", ""],
                user=user,
                cwd=folder,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                url = f"postgresql+psycopg://headgate:{PASSWORD}@{LOOPBACK}:{port}/postgres"
                wait_for("Postgres", lambda: _answers(url))
                yield url
            finally:
                process.terminate()
                process.wait(timeout=30)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _answers(url: str) -> bool:
    engine = sa.create_engine(url)
    try:
        with engine.connect() as connection:
            return bool(connection.scalar(sa.text("SELECT 1")))
    except OperationalError:
        return False
    finally:
        engine.dispose()
