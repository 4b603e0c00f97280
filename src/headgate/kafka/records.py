"""A topic's committed records, read once for people to look at: no group, no commits."""

import time
from collections.abc import Iterator, Mapping

from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from headgate.kafka.client import TIMEOUT_SECONDS, Link, Where

POLL_SECONDS = 0.2


def committed_records(
    where: Where,
    topic: str,
    offsets: Mapping[int, int],
    limit: int | None = None,
    idle_seconds: float | None = 5.0,
) -> Iterator[Message]:
    """From these offsets on, in the order of offsets within each partition.

    Ends at the limit, or when no record came for `idle_seconds`; with None as soon as all partitions are at
    their ends.
    """
    link = Link(where)
    doing = f"read topic '{topic}'"
    consumer = link.consumer(
        {
            "group.id": "headgate-consume",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            # Retention may overtake the offsets; what is still there is what can be shown.
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
        }
    )
    try:
        consumer.assign([TopicPartition(topic, p, offset) for p, offset in offsets.items()])
        read, heard = 0, time.monotonic()
        # Until each partition has given a record or its end, silence is only the connection's.
        silent, unread = set(offsets), set(offsets)
        while (limit is None or read < limit) and (unread or idle_seconds is not None):
            patience = TIMEOUT_SECONDS if idle_seconds is None else idle_seconds
            if silent:
                patience = max(patience, TIMEOUT_SECONDS)
            if link.refusal is not None:
                raise link.failure(link.refusal, doing)
            if time.monotonic() - heard >= patience:
                return
            message = consumer.poll(min(POLL_SECONDS, patience))
            if message is None:
                continue
            problem = message.error()
            if problem is not None and problem.code() != KafkaError._PARTITION_EOF:
                raise link.failure(problem, doing)
            place = int(message.partition() or 0)
            if place in silent or problem is None:
                silent.discard(place)
                heard = time.monotonic()
            if problem is not None:
                unread.discard(place)
            else:
                unread.add(place)
                read += 1
                yield message
    except KafkaException as error:
        raise link.failure(error, doing) from error
    finally:
        consumer.close()
