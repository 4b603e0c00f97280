"""Spark's Avro expressions, made without their names: a driver of queries has no function of these names."""

from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column
from pyspark.sql.classic.column import _to_java_column
from pyspark.sql.utils import get_active_spark_context


def from_avro(value: Column, schema: str, options: Mapping[str, str] | None = None) -> Column:
    """The value that Avro's binary form holds, by its writer's schema."""
    spark = _spark()
    options = spark.api.python.PythonUtils.toScalaMap(dict(options or {}))
    return _column(spark.sql.avro.AvroDataToCatalyst(_expression(value), schema, options))


def to_avro(value: Column, schema: str) -> Column:
    """A value in Avro's binary form."""
    jvm: Any = get_active_spark_context()._jvm
    return _column(_spark().sql.avro.CatalystDataToAvro(_expression(value), jvm.scala.Some(schema)))


def _spark() -> Any:
    jvm: Any = get_active_spark_context()._jvm
    return jvm.org.apache.spark


def _expression(column: Column) -> Any:
    return _spark().sql.classic.ExpressionUtils.expression(_to_java_column(column))


def _column(expression: Any) -> Column:
    return Column(_spark().sql.classic.ExpressionUtils.column(expression))
