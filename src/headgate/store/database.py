"""Opens a control database and brings its schema up to date."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import make_url

from headgate.errors import ConfigError, PrerequisiteMissing

BUSY_TIMEOUT_MS = 30_000


# Of Postgres, one for each kind of state: they may share a database.
CONTROL_LOCK, CATALOG_LOCK = 7_246_001, 7_246_002
_POSTGRES_SETTINGS = {
    "lock_timeout": BUSY_TIMEOUT_MS,
    # Of a process that was stopped in the middle: others wait for it no longer than this.
    "idle_in_transaction_session_timeout": 2 * BUSY_TIMEOUT_MS,
}


def open_database(url: str, lock: int = CONTROL_LOCK) -> Engine:
    """An engine on `url`. SQLite gets WAL, full durability, and waits for other processes' locks.

    In Postgres those that write take a lock first, as SQLite's do: one writes at a time, in all processes.
    """
    parsed = make_url(url)
    if parsed.get_backend_name() == "sqlite":
        if parsed.database and parsed.database != ":memory:":
            _make_private(Path(parsed.database))
        engine = create_engine(url, hide_parameters=True)
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_immediate)
        return engine
    if parsed.get_backend_name() != "postgresql":
        raise ConfigError(
            f"State cannot be kept in {parsed.get_backend_name()}.",
            "Say postgresql+psycopg://HOST/DATABASE, or nothing for SQLite.",
        )
    settings = " ".join(f"-c {name}={value}" for name, value in _POSTGRES_SETTINGS.items())
    try:
        made = create_engine(
            parsed.set(drivername="postgresql+psycopg"),
            pool_pre_ping=True,
            # Among them are keys that sign tokens; errors are logged.
            hide_parameters=True,
            connect_args={"options": settings},
        )
    except ModuleNotFoundError as error:
        raise PrerequisiteMissing(
            "The package psycopg, for Postgres, is not installed.", "Install headgate[postgres]."
        ) from error

    def take_turn(connection: Connection) -> None:
        if connection.get_execution_options().get("read_only") is not True:
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({lock})")

    event.listen(made, "begin", take_turn)
    return made


def _make_private(file: Path) -> None:
    """Its owner's alone: it holds the keys that sign tokens. What SQLite puts beside it takes after it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch(mode=0o600)
    if file.stat().st_mode & 0o077:
        file.chmod(0o600)


def _prepare_sqlite(connection: Any, _: object) -> None:
    # We emit BEGIN ourselves: the driver's own is deferred, and a read that turns into a write then fails
    # with "locked" at once instead of waiting.
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")
    cursor.execute("PRAGMA journal_mode = WAL")
    cursor.execute("PRAGMA synchronous = FULL")
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.close()


def _begin_immediate(connection: Connection) -> None:
    immediate = connection.get_execution_options().get("read_only") is not True
    connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")


def migrate(engine: Engine) -> None:
    """Bring the schema to the newest version; nothing to do when it is there already."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """A transaction that only reads: it never waits for a writer."""
    with engine.connect().execution_options(read_only=True) as connection:
        yield connection
