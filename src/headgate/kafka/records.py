"""A topic's committed records, read once for people to look at: no group, no commits."""

import time
from collections.abc import Iterator, Mapping

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, Message, TopicPartition

from headgate.kafka.client import LATEST, TIMEOUT_SECONDS, Link, Where

POLL_SECONDS = 0.2


def committed_records(
    where: Where,
    topic: str,
    offsets: Mapping[int, int],
    limit: int | None = None,
    idle_seconds: float | None = 5.0,
    whole: bool = False,
) -> Iterator[Message]:
    """From these offsets on, in the order of offsets within each partition.

    Ends at the limit, or when no record came for `idle_seconds`; with None as soon as each partition is read
    to where it ended when this began. What was open there then is waited for, unless nothing comes for ten
    seconds: a transaction is committed a moment before its records are there to be read. `whole`: then it
    raises KafkaUnavailable, for who must know that there are no more.
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
        silent = set(offsets)
        unread = {} if idle_seconds is not None else _ends(link, topic, offsets)
        while (limit is None or read < limit) and (unread or idle_seconds is not None):
            patience = TIMEOUT_SECONDS if idle_seconds is None else idle_seconds
            if silent:
                patience = max(patience, TIMEOUT_SECONDS)
            if link.refusal is not None:
                raise link.failure(link.refusal, doing)
            if time.monotonic() - heard >= patience:
                if whole:
                    raise link.silence(
                        doing, f"Kafka at {link.access} gave not all of topic '{topic}' in time."
                    )
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
            if problem is None:
                read += 1
                yield message
            elif int(message.offset() or 0) >= unread.get(place, 0):
                unread.pop(place, None)
    except KafkaException as error:
        raise link.failure(error, doing) from error
    finally:
        consumer.close()


def _ends(link: Link, topic: str, offsets: Mapping[int, int]) -> dict[int, int]:
    """Where partitions end that go on behind these offsets, with what is not decided yet."""
    places = {TopicPartition(topic, partition): LATEST for partition in offsets}
    asked = link.settled_admin.list_offsets(
        places, isolation_level=IsolationLevel.READ_UNCOMMITTED, request_timeout=link.timeout
    )
    ends = {place.partition: int(future.result().offset) for place, future in asked.items()}
    return {partition: end for partition, end in ends.items() if end > offsets[partition]}
