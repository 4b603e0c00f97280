"""One message, written to a topic."""

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from headgate.errors import KafkaUnavailable
from headgate.kafka.client import TIMEOUT_SECONDS, Link, Where

POLL_SECONDS = 0.05
# librdkafka's own number for it.
ANY_PARTITION = -1


@dataclass(frozen=True)
class NewMessage:
    """A record to be. Without a partition its key decides, as with Java's clients."""

    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]] = ()
    partition: int | None = None


class MessageWriter:
    """One producer for all who type messages; opened with the first."""

    def __init__(self, where: Where, timeout: float = TIMEOUT_SECONDS) -> None:
        self._link = Link(where, timeout)
        self._timeout = timeout
        self._producer: Producer | None = None
        self._lock = threading.Lock()

    def write(self, topic: str, message: NewMessage) -> tuple[int, int]:
        """Its partition and offset, once the brokers have it."""
        doing = f"write to topic '{topic}'"
        outcomes: list[tuple[KafkaError | None, Message]] = []
        client = self._client()
        try:
            client.produce(
                topic,
                value=message.value,
                key=message.key,
                headers=list(message.headers),
                on_delivery=lambda error, sent: outcomes.append((error, sent)),
                partition=ANY_PARTITION if message.partition is None else message.partition,
            )
        except KafkaException as error:
            raise self._link.failure(error, doing) from error
        except BufferError as error:
            raise KafkaUnavailable(f"Kafka at {self._link.access} takes no more messages now.") from error
        deadline = time.monotonic() + self._timeout + 1
        while not outcomes:
            client.poll(POLL_SECONDS)
            if time.monotonic() > deadline:
                raise self._link.silence(
                    doing,
                    f"Kafka at {self._link.access} has not said whether the message is in '{topic}': look.",
                )
        problem, sent = outcomes[0]
        if problem is not None:
            raise self._link.failure(problem, doing)
        return int(sent.partition() or 0), int(sent.offset() or 0)

    def _client(self) -> Producer:
        with self._lock:
            if self._producer is None:
                self._producer = self._link.producer(
                    {
                        "enable.idempotence": True,
                        "partitioner": "murmur2_random",
                        "linger.ms": 0,
                        "delivery.timeout.ms": int(self._timeout * 1000),
                        "request.timeout.ms": int(self._timeout * 1000 / 2),
                    }
                )
            return self._producer
