"""ProtobufReader in Spark jobs: what serializers write is read exactly, what nobody writes is named."""

import os
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from headgate.decode.protobuf import ProtobufReader
from tests.unit.decode.protobuf_messages import messages, schemas
from tests.unit.decode.protobuf_oracle import assert_same, expected
from tests.unit.decode.protobuf_samples import EVERYTHING, base64_of, message_class, path_of

SOAK = os.environ.get("HEADGATE_SOAK") == "1"
EVERY = message_class(EVERYTHING, "every.Every")
PATH = path_of(EVERYTHING, "every.Every")


def rows_of(spark: SparkSession, data: Sequence[bytes | None]) -> DataFrame:
    return spark.createDataFrame(list(enumerate(data)), "n int, body binary").repartition(3)


def read(spark: SparkSession, reader: ProtobufReader, data: Sequence[bytes | None]) -> list[Any]:
    """As the lane does it: `raw` in a column of its own, the rest made from it."""
    raw, body = f.col("raw"), f.col("body")
    problem = reader.problem(raw, body)
    assert problem is not None
    staged = rows_of(spark, data).select("n", "body", reader.raw(body).alias("raw"))
    exact = reader.is_exact(raw, body)
    found = staged.select(
        "n",
        exact.alias("exact"),
        f.when(exact, reader.value(raw)).alias("value"),
        f.when(~exact, problem).alias("problem"),
    )
    assert found.schema["value"].dataType == reader.type
    # Rows of PySpark's own have no times before the year 1 in any zone but UTC; Arrow's have all.
    return list(found.orderBy("n").toArrow().to_pylist())


def drawn(strategy: st.SearchStrategy[Any], count: int) -> list[Any]:
    """Many examples for one job: a job for each would take too long."""
    found: list[Any] = []

    @seed(20240229)
    @settings(max_examples=count, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(strategy)
    def gather(example: Any) -> None:
        found.append(example)

    gather()
    return found


@pytest.mark.soak
def test_random_messages_of_every_type(spark: SparkSession) -> None:
    sent = drawn(messages(EVERY), 2_000 if SOAK else 60)
    reader = ProtobufReader(base64_of(EVERYTHING), (), PATH)
    for row, message in zip(read(spark, reader, [m.SerializeToString() for m in sent]), sent, strict=True):
        assert row["exact"] is True
        assert_same(row["value"], expected(message))


@pytest.mark.soak
@pytest.mark.parametrize("syntax", ["proto2", "proto3"])
def test_random_schemas(spark: SparkSession, syntax: str) -> None:
    """One job for each schema."""
    for text in drawn(schemas(syntax), 40 if SOAK else 3):
        sent = drawn(messages(message_class(text, "t.M0")), 30)
        found = read(spark, ProtobufReader(text), [message.SerializeToString() for message in sent])
        for row, message in zip(found, sent, strict=True):
            assert row["exact"] is True
            assert_same(row["value"], expected(message))


def test_poison_beside_good_records(spark: SparkSession) -> None:
    good = EVERY(i32=1, st="good", m_st={"a": 1}).SerializeToString()
    poison = {
        b"\x08": "is no whole every.Every message",
        good[:-1]: "is no whole every.Every message",
        b"\xff" * 30: "is no whole every.Every message",
        b"\x72\x02\xc3\x28": "has text in field 'st' that is not UTF-8",
        b"\xf0\x07\x01": "has field number 126, which every.Every lacks",
        b"\x80\x01\x63": "has 99 in field 'co', which enum every.Color lacks",
        b"\x08\x80\x80\x80\x80\x80\x80\x01": "has a number in field 'i32' that is too long for its type",
        EVERY(
            ts={"nanos": 1}
        ).SerializeToString(): "has a time in field 'ts' that is finer than microseconds",
    }
    data: list[bytes | None] = [good, None] * 40
    for bad in poison:
        data += [bad, good, good]
    for row, sent in zip(read(spark, ProtobufReader(EVERYTHING, (), PATH), data), data, strict=True):
        assert row["exact"] is (sent == good)
        assert row["problem"] == (None if sent is None else poison.get(sent))
        assert (row["value"] is not None) is (sent == good)


def test_one_batch_of_several_types_and_schemas(spark: SparkSession) -> None:
    """Several readers in one job, each given its own rows and NULL for the others."""
    text = 'syntax = "proto3"; message A { string a = 1; } message B { int64 b = 1; }'
    other = 'syntax = "proto3"; message A { string a = 1; bool more = 2; }'
    readers = {"a": ProtobufReader(text), "b": ProtobufReader(text, (), (1,)), "c": ProtobufReader(other)}
    data = [b"\x0a\x01x", b"\x08\x05", b"\x10\x01"] * 20
    rows = rows_of(spark, data)
    for place, (name, reader) in enumerate(readers.items()):
        rows = rows.withColumn(name, reader.raw(f.when(f.col("n") % 3 == place, f.col("body"))))
    values = [
        f.when(r.is_exact(f.col(n), f.col("body")), r.value(f.col(n))).alias(n) for n, r in readers.items()
    ]
    found = sorted(rows.select("n", *values).collect(), key=lambda row: int(row.n))
    assert [[None if v is None else tuple(v) for v in row[1:]] for row in found[:3]] == [
        [("x",), None, None],
        [None, (5,), None],
        [None, None, ("", True)],
    ]
    assert len(found) == 60
