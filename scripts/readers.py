"""Engines that are not ours, pointed at the catalog: what a user would write."""

from typing import TYPE_CHECKING

import duckdb
import duckdb_extensions

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog


def duckdb_on(iceberg: str) -> duckdb.DuckDBPyConnection:
    """DuckDB with the catalog attached as `lake`."""
    connection = duckdb.connect()
    for extension in ("avro", "httpfs", "iceberg"):
        duckdb_extensions.import_extension(extension, con=connection)
        connection.execute(f"LOAD {extension}")
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute(
        f"ATTACH 'warehouse' AS lake (TYPE iceberg, ENDPOINT '{iceberg}', AUTHORIZATION_TYPE 'none')"
    )
    return connection


def pyiceberg_on(iceberg: str) -> "Catalog":
    """PyIceberg's client of the catalog."""
    from pyiceberg.catalog import load_catalog

    return load_catalog("lake", type="rest", uri=iceberg)
