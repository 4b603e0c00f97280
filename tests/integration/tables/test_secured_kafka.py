"""Spark's Kafka source on brokers that want to know who is there."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from headgate.kafka import Topics
from headgate.kafka.access import SPARK_REDACTION
from tests.integration.kafka.secured import (
    CLIENT_SECRET,
    KEY_PASSWORD,
    PASSWORD,
    WAYS,
    Secured,
    secured_broker,
)

TOPIC = "secured"


@pytest.fixture(scope="module")
def secured(jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with secured_broker(tmp_path_factory.mktemp("secured"), jars) as secured:
        Topics(secured.broker.bootstrap).create(TOPIC, 2)
        producer = Producer({"bootstrap.servers": secured.broker.bootstrap, "log_level": 0})
        for number in range(10):
            producer.produce(TOPIC, f"v{number}".encode(), partition=number % 2)
        assert producer.flush(10) == 0
        yield secured


@pytest.mark.parametrize("way", WAYS)
def test_a_batch_is_read(
    spark: SparkSession, secured: Secured, way: str, capfd: pytest.CaptureFixture[str]
) -> None:
    access = secured.access(way, options={"fetch.max.bytes": 2_000_000, "client.id": "spark-tests"})
    options = {"subscribe": TOPIC, "endingOffsets": "latest", "kafka.isolation.level": "read_committed"}
    rows = spark.read.format("kafka").options(**access.spark_options(), **options).load()
    assert sorted(bytes(row["value"]).decode() for row in rows.select("value").collect()) == [
        f"v{number}" for number in range(10)
    ]
    shown = rows._jdf.queryExecution().toString() + capfd.readouterr().err
    for secret in (PASSWORD, KEY_PASSWORD, CLIENT_SECRET, "PRIVATE KEY", "LoginModule"):
        assert secret not in shown


def test_what_spark_must_hide_matches_its_pattern(spark: SparkSession, secured: Secured) -> None:
    """Spark hides the options that the session's pattern names, wherever it shows any."""
    jvm = spark._jvm
    assert jvm is not None
    pattern = jvm.java.util.regex.Pattern.compile(SPARK_REDACTION["spark.redaction.regex"])
    for way in WAYS:
        for key, value in secured.access(way).spark_options().items():
            secret = any(word in value for word in ("PRIVATE KEY", "LoginModule", KEY_PASSWORD))
            assert pattern.matcher(key).find() or not secret, key
