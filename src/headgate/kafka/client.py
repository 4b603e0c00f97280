"""How Headgate's Kafka clients are configured, and what their errors mean."""

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]

from headgate.errors import (
    AlreadyExists,
    ConfigError,
    HeadgateError,
    InvalidRequest,
    KafkaUnavailable,
    NotFound,
)

TIMEOUT_SECONDS = 10.0

EARLIEST: OffsetSpec = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
LATEST: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]

# librdkafka marks few errors as retriable itself, so the codes that pass without anybody's help are listed.
TRANSIENT = frozenset(
    {
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._DESTROY_BROKER,
        KafkaError._MSG_TIMED_OUT,
        KafkaError._NODE_UPDATE,
        KafkaError._RESOLVE,
        KafkaError._RETRY,
        KafkaError._TIMED_OUT,
        KafkaError._TIMED_OUT_QUEUE,
        KafkaError._TRANSPORT,
        KafkaError._WAIT_CACHE,
        KafkaError._WAIT_COORD,
        KafkaError.BROKER_NOT_AVAILABLE,
        KafkaError.CONCURRENT_TRANSACTIONS,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.KAFKA_STORAGE_ERROR,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NETWORK_EXCEPTION,
        KafkaError.NOT_CONTROLLER,
        KafkaError.NOT_COORDINATOR,
        KafkaError.NOT_ENOUGH_REPLICAS,
        KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.OFFSET_NOT_AVAILABLE,
        KafkaError.REBOOTSTRAP_REQUIRED,
        KafkaError.REPLICA_NOT_AVAILABLE,
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.STALE_BROKER_EPOCH,
        KafkaError.THROTTLING_QUOTA_EXCEEDED,
        KafkaError.UNKNOWN,
        KafkaError.UNKNOWN_LEADER_EPOCH,
    }
)

UNKNOWN_TOPIC = frozenset(
    {
        KafkaError._UNKNOWN_PARTITION,
        KafkaError._UNKNOWN_TOPIC,
        KafkaError.UNKNOWN_TOPIC_ID,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
    }
)

NOT_ALLOWED = frozenset(
    {
        KafkaError._AUTHENTICATION,
        KafkaError._SSL,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        KafkaError.UNSUPPORTED_SASL_MECHANISM,
    }
)


def configuration(bootstrap: str, timeout: float = TIMEOUT_SECONDS) -> dict[str, str | int | float | bool]:
    """What all clients have in common."""
    return {
        "bootstrap.servers": bootstrap,
        "client.id": "headgate",
        "socket.timeout.ms": int(timeout * 1000),
        # librdkafka would write to stderr; what goes wrong reaches the caller as an error anyway.
        "log_level": 0,
    }


def code_of(error: KafkaException) -> int:
    return kafka_error(error).code()


def kafka_error(error: KafkaException) -> KafkaError:
    found: KafkaError = error.args[0]
    return found


def failure(error: KafkaException | KafkaError, bootstrap: str, doing: str) -> HeadgateError:
    """The error of ours that this error of Kafka's is; `doing` completes 'Kafka cannot …'."""
    cause = kafka_error(error) if isinstance(error, KafkaException) else error
    code, words = cause.code(), cause.str().rstrip(".")
    if code in TRANSIENT or cause.retriable():
        return KafkaUnavailable(f"Kafka at {bootstrap} cannot {doing} now: {words}.")
    if code in UNKNOWN_TOPIC:
        return NotFound(f"Kafka cannot {doing}: {words}.", "`headgate topic list` shows the topics.")
    if code == KafkaError.TOPIC_ALREADY_EXISTS:
        return AlreadyExists(f"Kafka cannot {doing}: {words}.")
    if code in NOT_ALLOWED:
        return ConfigError(
            f"Kafka does not let Headgate {doing}: {words}.", "Check its rights on the cluster."
        )
    return InvalidRequest(f"Kafka cannot {doing}: {words}.")
