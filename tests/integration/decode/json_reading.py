"""Bodies read by a reader in one Spark job, with every expression evaluated on every one of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

from headgate.decode.project import same_type
from headgate.decode.reader import Reader


@dataclass(frozen=True)
class Read:
    """What became of one message: its value if it is exact, else why it is not."""

    exact: bool
    value: dict[str, Any] | None
    problem: str | None


def read(spark: SparkSession, reader: Reader, bodies: Sequence[bytes | None]) -> list[Read]:
    """Variants are given as their text."""
    # By way of Arrow: rows of Python would start Python workers.
    table = pyarrow.table(
        {
            "number": pyarrow.array(range(len(bodies)), pyarrow.int32()),
            "body": pyarrow.array(bodies, pyarrow.binary()),
        }
    )
    raw, body = f.col("raw"), f.col("body")
    decoded = spark.createDataFrame(table).coalesce(1).select("number", "body", reader.raw(body).alias("raw"))
    value = reader.value(raw)
    assert same_type(decoded.select(value.alias("v")).schema["v"].dataType, reader.type)
    problem = reader.problem(raw, body)
    value = _readable(value, reader.type)
    exact = reader.is_exact(raw, body)
    columns = (
        exact.alias("exact"),
        f.when(exact, value).alias("value"),
        # A value that is not wanted must not raise either.
        f.length(f.to_json(value)).alias("evaluated"),
        f.lit(None if problem is None else problem).cast("string").alias("problem"),
    )
    return [
        Read(True, row["value"], None) if row["exact"] else Read(False, None, row["problem"])
        for row in decoded.orderBy("number").select(*columns).toArrow().to_pylist()
    ]


def _readable(value: Column, kind: t.DataType) -> Column:
    """Arrow has no variants."""
    match kind:
        case t.VariantType():
            return f.to_json(value)
        case t.StructType():
            inner = (_readable(value[field.name], field.dataType).alias(field.name) for field in kind.fields)
            return f.when(value.isNotNull(), f.struct(*inner))
    return value
