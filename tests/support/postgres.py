"""A Postgres of the tests' own, where the machine has one."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import OperationalError

from headgate.embedded.ports import LOOPBACK, free_port
from tests.support.services import wait_for

PASSWORD = "canary-51d0-password"
# Postgres does not run as root: nobody does it then.
NOBODY = 65534


def _program(name: str) -> str:
    places = [*sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True), None]
    for place in places:
        found = shutil.which(name, path=None if place is None else str(place))
        if found is not None:
            return found
    pytest.skip(f"There is no Postgres on this machine: {name} was not found.")


@contextmanager
def postgres() -> Iterator[str]:
    """Its URL, with the password; one empty database."""
    programs = _program("initdb"), _program("postgres")
    folder = Path(tempfile.mkdtemp(prefix="headgate-postgres-"))
    user = NOBODY if os.geteuid() == 0 else None
    try:
        secret = folder / "password"
        secret.write_text(PASSWORD)
        for path in (folder, secret):
            if user is not None:
                os.chown(path, user, user)
        data, port = folder / "data", free_port()
        settings = ("--username=headgate", "--auth=scram-sha-256", f"--pwfile={secret}", "--no-sync")
        subprocess.run(
            [programs[0], *settings, "--encoding=UTF8", "--no-locale", f"--pgdata={data}"],
            user=user,
            cwd=folder,
            check=True,
            capture_output=True,
        )
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                [programs[1], "-D", str(data), "-p", str(port), "-h", LOOPBACK, "-k", ""],
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
