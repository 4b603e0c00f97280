"""A Delta table by its folder, in readers that are not ours."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder
from pyspark.sql import SparkSession

from tests.support.ledger import canonical, one_duckdb, rows_of


def read_delta_spark(
    spark: SparkSession,
    folder: str,
    version: int | None = None,
    at: str | None = None,
    where: str = "true",
) -> Iterable[dict[str, Any]]:
    reader = spark.read.format("delta")
    if version is not None:
        reader = reader.option("versionAsOf", version)
    if at is not None:
        reader = reader.option("timestampAsOf", at)
    return rows_of(reader.load(folder).where(where).toArrow())


def read_delta_duckdb(folder: str, version: int | None = None) -> Iterable[dict[str, Any]]:
    with one_duckdb().cursor() as connection:
        said = "" if version is None else f", version => {version}"
        return rows_of(connection.execute(f"SELECT * FROM delta_scan(?{said})", [folder]).to_arrow_table())


def read_delta_rs(folder: str, version: int | None = None) -> Iterable[dict[str, Any]]:
    found = DeltaTable(folder, version=version)
    result = QueryBuilder().register("t", found).execute("select * from t")
    return rows_of(pa.table(result.read_all()))


def counted(rows: Iterable[dict[str, Any]]) -> Counter[str]:
    return Counter(canonical(row) for row in rows)
