"""Where the catalog keeps its pointers: a SQLite file, or Postgres by URL; for Python, and for Java."""

import os
from pathlib import Path

from sqlalchemy import URL
from sqlalchemy.engine import make_url

from headgate.errors import ConfigError
from headgate.store.database import BUSY_TIMEOUT_MS

# A file, or a URL as SQLAlchemy writes them.
Database = Path | str


def sql_url(database: Database) -> URL:
    if isinstance(database, Path):
        return URL.create("sqlite", database=str(database))
    url = make_url(database)
    if url.get_backend_name() not in ("sqlite", "postgresql"):
        raise ConfigError(
            f"The catalog cannot be kept in {url.get_backend_name()}.",
            "Say postgresql+psycopg://HOST/DATABASE, or nothing for SQLite.",
        )
    return url


def jdbc_properties(database: Database) -> dict[str, str]:
    """For Iceberg's JdbcCatalog."""
    url = sql_url(database)
    if url.get_backend_name() == "sqlite":
        return {
            "uri": f"jdbc:sqlite:{url.database}",
            "jdbc.journal_mode": "WAL",
            "jdbc.synchronous": "FULL",
            "jdbc.busy_timeout": str(BUSY_TIMEOUT_MS),
            # JdbcCatalog looks for child namespaces with LIKE, which SQLite compares without case otherwise.
            "jdbc.case_sensitive_like": "true",
        }
    port = "" if url.port is None else f":{url.port}"
    # libpq's variable, which Java's driver does not know.
    password = url.password if url.password is not None else os.environ.get("PGPASSWORD")
    return {
        "uri": f"jdbc:postgresql://{url.host or 'localhost'}{port}/{url.database or ''}",
        **({} if url.username is None else {"jdbc.user": url.username}),
        **({} if password is None else {"jdbc.password": str(password)}),
    }
