"""Messages as they come, no faster than somebody can look at them."""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from headgate.errors import HeadgateError
from headgate.kafka.client import Link, Where

POLL_SECONDS = 0.2
WINDOW_SECONDS = 1.0
HEARTBEAT_SECONDS = 15.0
# In one second a filter is held against no more.
MOST_LOOKED_AT = 2_000
AT_ONCE = 200


def event(name: str, content: Any) -> bytes:
    """A server-sent event. JSON has no line ends of its own."""
    return f"event: {name}\ndata: {json.dumps(content, ensure_ascii=False)}\n\n".encode()


class Tail:
    """The messages of one topic from now on: `most` of them in a second. What comes beyond that is not even
    read: the tail goes on at the end of the topic, and says how many it has left out."""

    def __init__(
        self,
        where: Where,
        topic: str,
        starts: Mapping[int, int],
        show: Callable[[Message], dict[str, Any]],
        most: int,
        matches: Callable[[Mapping[str, Any]], bool] | None,
        check: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`check` raises where whoever reads may not any more."""
        self._where = where
        self._topic = topic
        self._starts = starts
        self._show = show
        self._most = most
        self._matches = matches
        self._check = check
        self._clock = clock
        self._positions = dict(starts)
        self._left_out = self._looked_at = 0

    def events(self) -> Iterator[bytes]:
        """`message` for each that is shown, `tail` with the counts when they change; `error` at last."""
        link = Link(self._where)
        consumer = link.consumer(
            {
                "group.id": "headgate-tail",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "auto.offset.reset": "latest",
                "fetch.wait.max.ms": 200,
                "queued.min.messages": AT_ONCE,
                "queued.max.messages.kbytes": 16_384,
            }
        )
        doing = f"read topic '{self._topic}'"
        try:
            consumer.assign([TopicPartition(self._topic, p, offset) for p, offset in self._starts.items()])
            yield event("tail", self._counts())
            said, told = self._counts(), self._clock()
            while True:
                self._check()
                for shown in self._window(link, consumer, doing):
                    yield event("message", shown)
                now = self._counts()
                if now != said:
                    yield event("tail", now)
                    said, told = now, self._clock()
                elif self._clock() - told >= HEARTBEAT_SECONDS:
                    yield b": still here\n\n"
                    told = self._clock()
        except (HeadgateError, KafkaException) as error:
            known = error if isinstance(error, HeadgateError) else link.failure(error, doing)
            yield event(
                "error", {"error": type(known).__name__, "message": known.message, "remedy": known.remedy}
            )
        finally:
            consumer.close()

    def _counts(self) -> dict[str, int]:
        return {"left_out": self._left_out, "looked_at": self._looked_at}

    def _window(self, link: Link, consumer: Consumer, doing: str) -> Iterator[dict[str, Any]]:
        """What is shown of one second."""
        end = self._clock() + WINDOW_SECONDS
        shown = looked_at = 0
        while (left := end - self._clock()) > 0:
            if shown >= self._most or looked_at >= MOST_LOOKED_AT:
                time.sleep(left)
                self._skip(consumer)
                return
            most = min(AT_ONCE, self._most - shown if self._matches is None else AT_ONCE)
            for message in consumer.consume(most, min(POLL_SECONDS, left)):
                problem = message.error()
                if problem is not None:
                    if problem.code() == KafkaError._PARTITION_EOF:
                        continue
                    raise link.failure(problem, doing)
                self._positions[int(message.partition() or 0)] = int(message.offset() or 0) + 1
                looked_at += 1
                self._looked_at += 1
                record = self._show(message)
                if self._matches is not None and not self._matches(record):
                    continue
                if shown >= self._most:
                    self._left_out += 1
                    continue
                shown += 1
                yield record
            if link.refusal is not None:
                raise link.failure(link.refusal, doing)

    def _skip(self, consumer: Consumer) -> None:
        """Go on at the end of each partition."""
        for partition, position in list(self._positions.items()):
            place = TopicPartition(self._topic, partition)
            # As the last fetch has told it: nobody is asked.
            _, end = consumer.get_watermark_offsets(place, cached=True)
            if end > position:
                self._left_out += end - position
                self._positions[partition] = end
                consumer.seek(TopicPartition(self._topic, partition, end))
