"""What Kafka's errors become."""

import pytest
from confluent_kafka import KafkaError, KafkaException

from headgate.errors import (
    AlreadyExists,
    ConfigError,
    HeadgateError,
    InvalidRequest,
    KafkaUnavailable,
    NotFound,
)
from headgate.kafka.client import configuration, failure

BOOTSTRAP = "kafka.example:9092"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (KafkaError._TRANSPORT, KafkaUnavailable),
        (KafkaError._TIMED_OUT, KafkaUnavailable),
        (KafkaError._ALL_BROKERS_DOWN, KafkaUnavailable),
        (KafkaError.NOT_LEADER_FOR_PARTITION, KafkaUnavailable),
        (KafkaError.LEADER_NOT_AVAILABLE, KafkaUnavailable),
        (KafkaError.REQUEST_TIMED_OUT, KafkaUnavailable),
        (KafkaError.UNKNOWN_TOPIC_OR_PART, NotFound),
        (KafkaError._UNKNOWN_TOPIC, NotFound),
        (KafkaError.TOPIC_ALREADY_EXISTS, AlreadyExists),
        (KafkaError.INVALID_CONFIG, InvalidRequest),
        (KafkaError.TOPIC_EXCEPTION, InvalidRequest),
        (KafkaError.POLICY_VIOLATION, InvalidRequest),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, ConfigError),
        (KafkaError.SASL_AUTHENTICATION_FAILED, ConfigError),
    ],
)
def test_each_code_is_one_of_our_errors(code: int, expected: type[HeadgateError]) -> None:
    found = failure(KafkaError(code), BOOTSTRAP, "do it")
    assert type(found) is expected
    assert found.transient == (expected is KafkaUnavailable)


def test_what_kafka_calls_retriable_is_transient() -> None:
    found = failure(KafkaError(KafkaError.INVALID_TXN_STATE, "odd", retriable=True), BOOTSTRAP, "do it")
    assert type(found) is KafkaUnavailable


def test_the_message_says_what_failed_in_the_brokers_words() -> None:
    error = KafkaException(KafkaError(KafkaError.INVALID_CONFIG, "Unknown topic config name: colour."))
    found = failure(error, BOOTSTRAP, "create topic 'a'")
    assert str(found) == "Kafka cannot create topic 'a': Unknown topic config name: colour."


def test_an_unreachable_broker_is_named() -> None:
    found = failure(KafkaError(KafkaError._TRANSPORT), BOOTSTRAP, "list topics")
    assert BOOTSTRAP in str(found)


def test_clients_are_silent_and_impatient() -> None:
    found = configuration(BOOTSTRAP, timeout=2.5)
    assert found["log_level"] == 0
    assert found["socket.timeout.ms"] == 2500
