"""How Headgate's Kafka clients are configured, and what their errors mean."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from headgate.errors import (
    AlreadyExists,
    ConfigError,
    HeadgateError,
    InvalidRequest,
    KafkaUnavailable,
    NotFound,
)
from headgate.kafka.access import KafkaAccess, Security

__all__ = [
    "EARLIEST",
    "LATEST",
    "TIMEOUT_SECONDS",
    "KafkaAccess",
    "Link",
    "Security",
    "Where",
    "code_of",
    "configuration",
    "failure",
    "kafka_error",
]

TIMEOUT_SECONDS = 10.0
# A name that no broker gives a topic, nor makes one of.
NO_TOPIC = "?"
SETTLE_SECONDS = 2.0
_C = TypeVar("_C")

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

# Who Headgate is was not believed, or the connection could not be protected.
NOT_LET_IN = frozenset(
    {
        KafkaError._AUTHENTICATION,
        KafkaError._SSL,
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError.UNSUPPORTED_SASL_MECHANISM,
    }
)

NOT_ALLOWED = NOT_LET_IN | frozenset(
    {
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
)


# With these a client goes on trying; only what it tells aside says why it gets nowhere.
_GETS_NOWHERE = frozenset(
    {
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._RESOLVE,
        KafkaError._TIMED_OUT,
        KafkaError._TIMED_OUT_QUEUE,
        KafkaError._TRANSPORT,
    }
)
# A broker that goes down breaks handshakes off, and a token server may be away: these pass.
_PASSING_WORDS = ("disconnected", "connection reset", "timed out", "couldn't connect", "could not connect")

Where = KafkaAccess | str


class Link:
    """One cluster as a client of ours sees it. Clients are opened here, and their errors become ours.

    librdkafka reports a refused login aside, while the call that wanted something only times out: the link
    listens, so that the error can say what is wrong.
    """

    def __init__(self, where: Where, timeout: float = TIMEOUT_SECONDS) -> None:
        self.access = KafkaAccess.at(where)
        self.timeout = timeout
        self._admin: AdminClient | None = None
        self._settled: AdminClient | None = None
        self._refusal: KafkaError | None = None
        self._aside = ""

    @property
    def admin(self) -> AdminClient:
        """The one admin client, with what it told before this call forgotten."""
        admin = self._admin
        # Not by its truth: it has a length, that of its queue.
        if admin is None:
            admin = self._admin = self._open(AdminClient, {})
        admin.poll(0)
        self.forget()
        return admin

    @property
    def settled_admin(self) -> AdminClient:
        """The same, for what only the leader of a partition can answer."""
        admin = self.admin
        if admin is not self._settled:
            settle(admin)
            self._settled = admin
        return admin

    def forget(self) -> None:
        """What clients told aside until now."""
        self._refusal, self._aside = None, ""

    def renew(self) -> None:
        """The next call gets a new admin client: an old one keeps for minutes what it knows of a topic."""
        self._admin = self._settled = None

    def consumer(self, extra: Mapping[str, Any]) -> Consumer:
        return self._open(Consumer, extra)

    def producer(self, extra: Mapping[str, Any]) -> Producer:
        return self._open(Producer, extra)

    @property
    def refusal(self) -> KafkaError | None:
        """Why the brokers do not let us in, if they said so."""
        if (admin := self._admin) is not None:
            admin.poll(0)
        return self._refusal

    def failure(self, error: KafkaException | KafkaError, doing: str) -> HeadgateError:
        """The error of ours that this error of Kafka's is; `doing` completes 'Kafka cannot …'."""
        code = code_of(error) if isinstance(error, KafkaException) else error.code()
        if code not in _GETS_NOWHERE:
            return failure(error, str(self.access), doing)
        refusal = self.refusal
        found = failure(refusal or error, str(self.access), doing)
        return found if refusal or not self._aside else KafkaUnavailable(f"{found.message} {self._aside}.")

    def silence(self, doing: str, otherwise: str) -> HeadgateError:
        """What it means that nothing came in time."""
        refusal = self.refusal
        return KafkaUnavailable(otherwise) if refusal is None else failure(refusal, str(self.access), doing)

    def _open(self, client: Callable[[dict[str, Any]], _C], extra: Mapping[str, Any]) -> _C:
        try:
            return client(configuration(self.access, self.timeout) | {"error_cb": self._told, **extra})
        except KafkaException as error:
            said = kafka_error(error).str().rstrip(".")
            raise ConfigError(
                f"Kafka at {self.access} cannot be reached as it is configured: {said}.",
                "Check kafka.security and kafka.options.",
            ) from error

    def _told(self, error: KafkaError) -> None:
        passing = any(word in error.str().lower() for word in _PASSING_WORDS)
        if error.code() in NOT_LET_IN and not passing:
            self._refusal = error
        elif error.code() != KafkaError._ALL_BROKERS_DOWN:
            self._aside = error.str().rstrip(".")


def settle(client: Producer | AdminClient) -> None:
    """Lets a new client come to know its brokers.

    librdkafka knows a broker by its address at first and then by its number. It drops the one when it has the
    other, with all that was asked there, and asks again only after half a second, one or three (so in 2.16).
    The second answer is of the broker that stays.
    """
    for _ in range(2):
        try:
            client.list_topics(NO_TOPIC, timeout=SETTLE_SECONDS)
        except KafkaException:
            # What is wrong is said by what the client is for.
            return


def configuration(where: Where, timeout: float = TIMEOUT_SECONDS) -> dict[str, Any]:
    """What all clients have in common."""
    return {
        "client.id": "headgate",
        "socket.timeout.ms": int(timeout * 1000),
        **KafkaAccess.at(where).librdkafka(),
        # librdkafka would write to stderr; what goes wrong reaches the caller as an error anyway.
        "log_level": 0,
    }


def code_of(error: KafkaException) -> int:
    return kafka_error(error).code()


def kafka_error(error: KafkaException) -> KafkaError:
    found: KafkaError = error.args[0]
    return found


def failure(error: KafkaException | KafkaError, cluster: str, doing: str) -> HeadgateError:
    """The error of ours that this error of Kafka's is; `doing` completes 'Kafka cannot …'."""
    cause = kafka_error(error) if isinstance(error, KafkaException) else error
    code, words = cause.code(), cause.str().rstrip(".")
    if code in TRANSIENT or cause.retriable():
        return KafkaUnavailable(f"Kafka at {cluster} cannot {doing} now: {words}.")
    if code in UNKNOWN_TOPIC:
        return NotFound(f"Kafka cannot {doing}: {words}.", "`headgate topic list` shows the topics.")
    if code == KafkaError.TOPIC_ALREADY_EXISTS:
        return AlreadyExists(f"Kafka cannot {doing}: {words}.")
    if code in NOT_LET_IN:
        return ConfigError(
            f"Kafka at {cluster} does not let Headgate in to {doing}: {words}.",
            "Check kafka.security: protocol, mechanism, user and password, certificates.",
        )
    if code in NOT_ALLOWED:
        return ConfigError(
            f"Kafka at {cluster} does not let Headgate {doing}: {words}.", "Check its rights on the cluster."
        )
    return InvalidRequest(f"Kafka cannot {doing}: {words}.")
