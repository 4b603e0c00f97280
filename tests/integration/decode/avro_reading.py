"""Messages written by fastavro, read by `AvroReader` in one Spark job, however many schemas they have."""

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import fastavro
import pyarrow
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

from headgate.decode.avro import AvroReader
from headgate.decode.project import same_type


@dataclass(frozen=True)
class Read:
    """What became of one message."""

    exact: bool
    value: dict[str, Any] | None
    problem: str | None


def encoded(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema, named_schemas={}), value)
    return out.getvalue()


def read_all(
    spark: SparkSession,
    cases: Sequence[tuple[Any, Sequence[bytes | None]]],
    why: bool = False,
    as_numbers: bool = False,
) -> list[list[Read]]:
    """For each schema its messages, and what is wrong with them if that is asked.

    Days and times can be had as numbers: Python's own end with the year 9999.
    """
    readers = [AvroReader(json.dumps(schema)) for schema, _ in cases]
    decoded = _decoded(spark, readers, cases)
    columns = [f.col("case")]
    for index, reader in enumerate(readers):
        raw, body = f.col(f"raw_{index}"), f.col("body")
        exact = reader.is_exact(raw, body)
        value = reader.value(raw)
        assert same_type(decoded.select(value.alias("v")).schema["v"].dataType, reader.type)
        if as_numbers:
            value = _numbers(value, reader.type)
        problem = reader.problem(raw, body) if why else f.lit(None)
        assert problem is not None
        columns.append(
            f.struct(
                exact.alias("exact"),
                f.when(exact, value).alias("value"),
                problem.cast("string").alias("problem"),
            ).alias(f"read_{index}")
        )
    frame = decoded.orderBy("number").select(*columns)
    found: list[list[Read]] = [[] for _ in cases]
    for row in frame.toArrow().to_pylist():
        read = row[f"read_{row['case']}"]
        found[row["case"]].append(Read(**read))
    return found


def read(spark: SparkSession, schema: Any, bodies: Sequence[bytes | None], why: bool = False) -> list[Read]:
    return read_all(spark, [(schema, bodies)], why)[0]


def rows(spark: SparkSession, schema: Any, values: Sequence[Any]) -> list[dict[str, Any] | None]:
    """What a table has of these values; all of them must be exact."""
    found = read(spark, schema, [encoded(schema, value) for value in values])
    assert all(one.exact for one in found)
    return [one.value for one in found]


def evaluate(spark: SparkSession, cases: Sequence[tuple[Any, Sequence[bytes | None]]]) -> None:
    """Every expression on every message, sound or not: none may raise."""
    readers = [AvroReader(json.dumps(schema)) for schema, _ in cases]
    columns: list[Column] = []
    for index, reader in enumerate(readers):
        raw, body = f.col(f"raw_{index}"), f.col("body")
        columns += [
            reader.is_exact(raw, body).alias(f"exact_{index}"),
            reader.value(raw).alias(f"value_{index}"),
        ]
    _decoded(spark, readers, cases).select(*columns).write.format("noop").mode("overwrite").save()


def _numbers(value: Column, kind: t.DataType) -> Column:
    match kind:
        case t.DateType():
            return f.unix_date(value)
        case t.TimestampType() | t.TimestampNTZType():
            # The session's zone is UTC.
            return f.unix_micros(value.cast("timestamp"))
        case t.StructType():
            inner = (_numbers(value[field.name], field.dataType).alias(field.name) for field in kind.fields)
            return f.when(value.isNotNull(), f.struct(*inner))
        case t.ArrayType():
            return f.transform(value, lambda item: _numbers(item, kind.elementType))
        case t.MapType():
            return f.transform_values(value, lambda _, item: _numbers(item, kind.valueType))
    return value


def _decoded(
    spark: SparkSession, readers: Sequence[AvroReader], cases: Sequence[tuple[Any, Sequence[bytes | None]]]
) -> DataFrame:
    messages = [(index, body) for index, (_, bodies) in enumerate(cases) for body in bodies]
    # By way of Arrow: rows of Python would start Python workers.
    table = pyarrow.table(
        {
            "number": pyarrow.array(range(len(messages)), pyarrow.int32()),
            "case": pyarrow.array([case for case, _ in messages], pyarrow.int32()),
            "body": pyarrow.array([body for _, body in messages], pyarrow.binary()),
        }
    )
    frame = spark.createDataFrame(table).coalesce(1)
    raws = [
        f.when(f.col("case") == index, reader.raw(f.col("body"))).alias(f"raw_{index}")
        for index, reader in enumerate(readers)
    ]
    return frame.select("number", "case", "body", *raws)
