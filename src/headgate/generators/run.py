"""One generator at work. Records and its place in its story go to Kafka in the same transactions.

The place is the offset of a consumer group of the generator's own: how many records of the story, from its
beginning, are in Kafka. Whoever goes on, here or elsewhere, makes the story again and leaves those out.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from confluent_kafka import KafkaException, TopicPartition

from headgate.datagen import GeneratorSpec
from headgate.datagen.pace import Pace, Timeline
from headgate.datagen.produce import prepare_topics
from headgate.datagen.scenario import Record
from headgate.datagen.writer import Encoding, Writer
from headgate.errors import KafkaUnavailable
from headgate.kafka.access import KafkaAccess
from headgate.kafka.client import Link, kafka_error
from headgate.kafka.registry import RegistryAccess
from headgate.kafka.topics import Topics

# A transaction is committed after so long or so many records: readers see records then.
TRANSACTION_SECONDS = 1.0
TRANSACTION_RECORDS = 50_000
TRANSACTION_TIMEOUT_MS = 60_000
CALL_SECONDS = 30.0
LOOK_SECONDS = 0.2
# The rate is that of this long.
RATE_SECONDS = 5.0


@dataclass(frozen=True)
class Place:
    """Where a generator's place in its story is kept."""

    id: str

    @property
    def group(self) -> str:
        return f"headgate-datagen-{self.id}"

    @property
    def transactional_id(self) -> str:
        return self.group


class Run:
    """A generator from where it stands until it is stopped, or all is written."""

    def __init__(
        self,
        generator_id: str,
        spec: GeneratorSpec,
        kafka: KafkaAccess,
        registry: RegistryAccess,
    ) -> None:
        self._place = Place(generator_id)
        self._spec = spec
        self._kafka = kafka
        self._registry = registry
        self._link = Link(kafka)

    def go(self, known: int, progress: Callable[[int, float], None], stopped: Callable[[], bool]) -> bool:
        """Whether all is written. `known` is how many records are in Kafka at least; `progress` is told after
        each transaction how many there are, and how many came in a second."""
        scenario = self._spec.made()
        names = {topic: self._spec.prefix + topic for topic in scenario.schemas}
        encoding = Encoding(scenario, self._spec.format, names, self._registry)
        prepare_topics(Topics(self._kafka), list(names.values()))
        config: dict[str, str | int | float | bool] = {
            "transactional.id": self._place.transactional_id,
            "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS,
        }
        writer = Writer(self._kafka, names, encoding, None, config)
        with self._link_errors("begin to write"):
            # Ends what an earlier run of this generator has left open; it can write no more.
            writer.producer.init_transactions(CALL_SECONDS)
        kept = TopicPartition(names[scenario.counted], 0)
        with _Offsets(self._link, self._place.group, kept) as offsets:
            with self._link_errors("tell where the generator stands"):
                position = max(known, offsets.committed())
            records = scenario.records(self._spec.limit)
            if not _leave_out(records, position, stopped):
                return False
            return self._write(writer, offsets, records, position, progress, stopped)

    def _write(
        self,
        writer: Writer,
        offsets: "_Offsets",
        records: Iterator[Record],
        position: int,
        progress: Callable[[int, float], None],
        stopped: Callable[[], bool],
    ) -> bool:
        timeline, pace = Timeline(records, self._spec.speed), Pace(self._spec.rate)
        meter = _Meter(position)
        progress(position, 0.0)
        while not (stopped() or timeline.ended):
            wait = max(pace.wait(writer.sent), timeline.wait())
            if wait > 0:
                time.sleep(min(wait, LOOK_SECONDS))
                continue
            with self._link_errors("take a transaction"):
                writer.producer.begin_transaction()
                position += self._fill(writer, timeline, pace, stopped)
                writer.finish()
                offsets.send(writer, position)
                writer.producer.commit_transaction(CALL_SECONDS)
            writer.poll(0)
            progress(position, meter.rate(position))
        return timeline.ended

    def _fill(self, writer: Writer, timeline: Timeline, pace: Pace, stopped: Callable[[], bool]) -> int:
        """Write what is due while a transaction lasts; how many records those are."""
        until, before = time.monotonic() + TRANSACTION_SECONDS, writer.sent
        while not (stopped() or timeline.ended) and writer.sent - before < TRANSACTION_RECORDS:
            writer.write(timeline.take(pace.records_at_a_time))
            writer.poll(0)
            left = until - time.monotonic()
            if left <= 0:
                break
            wait = max(pace.wait(writer.sent), timeline.wait())
            if wait > left:
                break
            if wait > 0:
                writer.poll(wait)
        return writer.sent - before

    def _link_errors(self, doing: str) -> "_Errors":
        return _Errors(self._link, doing)


class _Errors:
    """Within, errors of Kafka's client become ours."""

    def __init__(self, link: Link, doing: str) -> None:
        self._link = link
        self._doing = doing

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if not isinstance(error, KafkaException):
            return
        if kafka_error(error).txn_requires_abort():
            raise KafkaUnavailable(f"Kafka gave a transaction up: {kafka_error(error).str()}.") from error
        raise self._link.failure(error, self._doing) from error


class _Offsets:
    """The place of a generator, as the committed offset of a consumer group that reads nothing."""

    def __init__(self, link: Link, group: str, kept: TopicPartition) -> None:
        # What a transaction has committed and has not finished writing is waited for.
        config = {"group.id": group, "isolation.level": "read_committed", "enable.auto.commit": False}
        self._consumer = link.consumer(config)
        self._kept = kept

    def __enter__(self) -> "_Offsets":
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()

    def committed(self) -> int:
        [found] = self._consumer.committed([self._kept], timeout=CALL_SECONDS)
        if found.error is not None:
            raise KafkaException(found.error)
        return max(0, found.offset)

    def send(self, writer: Writer, position: int) -> None:
        place = TopicPartition(self._kept.topic, self._kept.partition, position)
        metadata = self._consumer.consumer_group_metadata()
        writer.producer.send_offsets_to_transaction([place], metadata, CALL_SECONDS)


class _Meter:
    """Records per second, over the last seconds."""

    def __init__(self, position: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._marks = [(clock(), position)]

    def rate(self, position: int) -> float:
        now = self._clock()
        self._marks.append((now, position))
        while len(self._marks) > 2 and now - self._marks[0][0] > RATE_SECONDS:
            self._marks.pop(0)
        at, before = self._marks[0]
        return (position - before) / (now - at) if now > at else 0.0


def _leave_out(records: Iterator[Record], count: int, stopped: Callable[[], bool]) -> bool:
    """Pass over records that are written already; whether that was not broken off."""
    for number in range(count):
        if number % 10_000 == 0 and stopped():
            return False
        if next(records, None) is None:
            break
    return True
