"""What we say of a schema is what Spark decodes: a difference would change values silently."""

import json
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

from headgate.decode.avro import decode, table_type
from headgate.decode.project import fits
from tests.support.avro import TYPES, record


@pytest.mark.parametrize(("kind", "expected"), TYPES)
def test_spark_decodes_to_the_type_of_the_column(
    spark: SparkSession, kind: Any, expected: t.DataType
) -> None:
    schema = json.dumps(record(("c", kind)))
    frame = spark.range(1).select(decode(f.lit(b""), schema).alias("r"))
    found = frame.schema["r"].dataType
    assert fits(found, table_type(schema))
    assert fits(table_type(schema), found)
