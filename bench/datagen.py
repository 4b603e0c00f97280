"""`make bench-datagen`: records per second of `headgate datagen`, by scenario and format.

Three figures for each: to make and encode records, in one thread; the command's whole way to a broker, until
all are acknowledged; and the same producer with bytes that are ready, which is the most that it could be. The
last two take turns in one run, on topics of their own; their ratio is the median of the rounds'.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from uuid import uuid4

from bench.append import running
from headgate.datagen import GeneratorSpec, produce
from headgate.datagen.formats import Format, value_encoder
from headgate.datagen.produce import TOPIC_CONFIG
from headgate.datagen.scenario import Record
from headgate.datagen.seeded import Seeded
from headgate.datagen.writer import PRODUCER_CONFIG
from headgate.embedded.runtime import Runtime
from headgate.kafka.client import Link
from headgate.kafka.topics import Topics

# What a user's generator is to make at least, in one process.
LEAST = 50_000
CASES = {
    "orders": GeneratorSpec("orders"),
    "orders, change events": GeneratorSpec("orders", cdc=True),
    "orders, JSON": GeneratorSpec("orders", format=Format.JSON),
    "orders, Protobuf": GeneratorSpec("orders", format=Format.PROTOBUF),
    "hotels": GeneratorSpec("hotels"),
    "hotels, change events": GeneratorSpec("hotels", cdc=True),
    "sales": GeneratorSpec("sales"),
}


class Some:
    """The first records of a scenario."""

    def __init__(self, whole: Seeded, count: int) -> None:
        self.name, self.counted = whole.name, whole.counted
        self.schemas, self.key_schemas, self.later_schemas = (
            whole.schemas,
            whole.key_schemas,
            whole.later_schemas,
        )
        self.encode = whole.encode
        self._whole, self._count = whole, count

    def records(self, limit: int | None = None) -> Iterator[Record]:
        return islice(self._whole.records(limit), self._count)


@dataclass
class Rounds:
    """What the rounds of one case took."""

    encoded: list[float]
    produced: list[float]
    bare: list[float]


def encode_alone(spec: GeneratorSpec, count: int) -> float:
    """Records per second of processor time, made and encoded."""
    scenario = spec.made()
    encoders = {topic: value_encoder(spec.format, schema) for topic, schema in scenario.schemas.items()}
    started = time.thread_time()
    for topic, _, value, _, _ in islice(scenario.records(), count):
        if value:
            encoders[topic](value)
    return count / (time.thread_time() - started)


def produce_all(spec: GeneratorSpec, runtime: Runtime, count: int) -> float:
    prefix = f"{uuid4().hex[:8]}-"
    some = Some(spec.made(), count)
    produce(Some(spec.made(), 1), runtime.kafka, runtime.registry, prefix=prefix, written_as=spec.format)
    started = time.monotonic()
    written = produce(some, runtime.kafka, runtime.registry, prefix=prefix, written_as=spec.format)
    seconds = time.monotonic() - started
    assert sum(written.values()) == count
    return count / seconds


def produce_bare(spec: GeneratorSpec, runtime: Runtime, count: int) -> float:
    """The same bytes, which are there before the clock starts."""
    scenario = spec.made()
    prefix = f"{uuid4().hex[:8]}-"
    topics = Topics(runtime.kafka)
    for topic in scenario.schemas:
        topics.create(prefix + topic, 4, config=TOPIC_CONFIG)
    encoders = {topic: value_encoder(spec.format, schema) for topic, schema in scenario.schemas.items()}
    ready = [
        (prefix + record.topic, encoders[record.topic](record.value) if record.value else None, record)
        for record in islice(scenario.records(), count)
    ]
    acknowledged = 0

    def delivered(error: object, message: object) -> None:
        nonlocal acknowledged
        assert error is None
        acknowledged += 1

    producer = Link(runtime.kafka).producer(PRODUCER_CONFIG)
    started = time.monotonic()
    for number, (name, value, record) in enumerate(ready):
        while True:
            try:
                producer.produce(
                    name, value, record.key, on_delivery=delivered, timestamp=record.timestamp_ms
                )
                break
            except BufferError:
                producer.poll(0.1)
        if number % 500 == 0:
            producer.poll(0)
    assert producer.flush(60) == 0
    seconds = time.monotonic() - started
    assert acknowledged == count
    return count / seconds


def measure(runtime: Runtime, cases: Iterable[str], count: int, rounds: int) -> dict[str, Rounds]:
    measured = {name: Rounds([], [], []) for name in cases}
    for number in range(rounds + 1):
        for name, found in measured.items():
            spec = CASES[name]
            figures = (
                encode_alone(spec, count),
                produce_all(spec, runtime, count),
                produce_bare(spec, runtime, count),
            )
            if number:  # the first round warms up
                for kept, figure in zip((found.encoded, found.produced, found.bare), figures, strict=True):
                    kept.append(figure)
    return measured


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cases", nargs="*", choices=list(CASES), default=list(CASES))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="headgate-bench-") as folder, running(folder):
        measured = measure(Runtime.load(Path(folder)), arguments.cases, arguments.records, arguments.rounds)
    print(f"{'thousand records a second':26} {'encode':>8} {'produce':>8} {'bare':>8} {'of bare':>8}")
    slow = []
    for name, found in measured.items():
        encoded, produced, bare = map(statistics.median, (found.encoded, found.produced, found.bare))
        ratio = statistics.median(p / b for p, b in zip(found.produced, found.bare, strict=True))
        figures = " ".join(f"{figure / 1000:8.1f}" for figure in (encoded, produced, bare))
        print(f"{name:26} {figures} {ratio:8.2f}")
        if produced < LEAST:
            slow.append(name)
    if slow:
        raise SystemExit(f"Less than {LEAST} records a second: {', '.join(slow)}.")


if __name__ == "__main__":
    main()
