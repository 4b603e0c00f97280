"""Engines that are not ours, pointed at the catalog: what a user would write."""

from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import duckdb
    from pyiceberg.catalog import Catalog

Answer = tuple[int, int, Decimal]


def duckdb_on(iceberg: str) -> "duckdb.DuckDBPyConnection":
    """DuckDB with the catalog attached as `lake`."""
    connection = duckdb_with("avro", "httpfs", "iceberg")
    attach(connection, iceberg, "lake")
    return connection


def duckdb_with(*extensions: str) -> "duckdb.DuckDBPyConnection":
    import duckdb
    import duckdb_extensions

    connection = duckdb.connect()
    for extension in extensions:
        duckdb_extensions.import_extension(extension, con=connection)
        connection.execute(f"LOAD {extension}")
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def attach(connection: "duckdb.DuckDBPyConnection", iceberg: str, name: str) -> None:
    """The catalog as the database `name`."""
    connection.execute(
        f"ATTACH 'warehouse' AS {name} (TYPE iceberg, ENDPOINT '{iceberg}', AUTHORIZATION_TYPE 'none')"
    )


def pyiceberg_on(iceberg: str) -> "Catalog":
    """PyIceberg's client of the catalog."""
    from pyiceberg.catalog import load_catalog

    return load_catalog("lake", type="rest", uri=iceberg)


def outside_answers(iceberg: str, namespace: str, folder: str) -> dict[str, Callable[[], Answer]]:
    """What engines say of the completed orders: how many, of how many customers, and for how much.

    `folder` has the same table in Delta's format.
    """
    columns = "count(*), count(DISTINCT customer_id), sum(amount)"

    def by_duckdb() -> Answer:
        with duckdb_on(iceberg) as connection:
            return _answer(
                connection.execute(f'SELECT {columns} FROM lake."{namespace}".completed_orders').fetchone()
            )

    def by_delta() -> Answer:
        with duckdb_with("delta") as connection:
            return _answer(connection.execute(f"SELECT {columns} FROM delta_scan(?)", [folder]).fetchone())

    def by_pyiceberg() -> Answer:
        rows = pyiceberg_on(iceberg).load_table((namespace, "completed_orders")).scan().to_arrow()
        spent = sum(rows["amount"].to_pylist(), Decimal(0))
        return rows.num_rows, len(set(rows["customer_id"].to_pylist())), spent

    return {"DuckDB, Iceberg": by_duckdb, "DuckDB, Delta Lake": by_delta, "PyIceberg": by_pyiceberg}


def _answer(row: Any) -> Answer:
    return int(row[0]), int(row[1]), Decimal(row[2])


def missing_readers() -> list[str]:
    """The packages of other engines that are not installed."""
    from importlib.util import find_spec

    return [name for name in ("duckdb", "duckdb_extensions", "pyiceberg") if find_spec(name) is None]
