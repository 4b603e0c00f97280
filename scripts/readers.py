"""Engines that are not ours, pointed at the catalog: what a user would write."""

from typing import TYPE_CHECKING

import duckdb
import duckdb_extensions

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog


def duckdb_on(iceberg: str) -> duckdb.DuckDBPyConnection:
    """DuckDB with the catalog attached as `lake`."""
    connection = duckdb_with("avro", "httpfs", "iceberg")
    attach(connection, iceberg, "lake")
    return connection


def duckdb_with(*extensions: str) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    for extension in extensions:
        duckdb_extensions.import_extension(extension, con=connection)
        connection.execute(f"LOAD {extension}")
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def attach(connection: duckdb.DuckDBPyConnection, iceberg: str, name: str) -> None:
    """The catalog as the database `name`."""
    connection.execute(
        f"ATTACH 'warehouse' AS {name} (TYPE iceberg, ENDPOINT '{iceberg}', AUTHORIZATION_TYPE 'none')"
    )


def pyiceberg_on(iceberg: str) -> "Catalog":
    """PyIceberg's client of the catalog."""
    from pyiceberg.catalog import load_catalog

    return load_catalog("lake", type="rest", uri=iceberg)
