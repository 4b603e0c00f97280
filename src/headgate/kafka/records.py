"""A topic's committed records, read once for people to look at: no group, no commits."""

import time
from collections.abc import Iterator, Mapping

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from headgate.kafka.client import TIMEOUT_SECONDS, configuration, failure

POLL_SECONDS = 0.2


def committed_records(
    bootstrap: str,
    topic: str,
    offsets: Mapping[int, int],
    limit: int | None = None,
    idle_seconds: float = 5.0,
) -> Iterator[Message]:
    """From these offsets on, in the order of offsets within each partition.

    Ends at the limit, or when no record came for `idle_seconds`.
    """
    consumer = Consumer(
        configuration(bootstrap, TIMEOUT_SECONDS)
        | {
            "group.id": "headgate-consume",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            # Retention may overtake the offsets; what is still there is what can be shown.
            "auto.offset.reset": "earliest",
        }
    )
    try:
        consumer.assign([TopicPartition(topic, p, offset) for p, offset in offsets.items()])
        read, heard = 0, time.monotonic()
        while (limit is None or read < limit) and time.monotonic() - heard < idle_seconds:
            message = consumer.poll(min(POLL_SECONDS, idle_seconds))
            if message is None:
                continue
            problem = message.error()
            if problem is not None:
                raise failure(problem, bootstrap, f"read topic '{topic}'")
            read, heard = read + 1, time.monotonic()
            yield message
    except KafkaException as error:
        raise failure(error, bootstrap, f"read topic '{topic}'") from error
    finally:
        consumer.close()
