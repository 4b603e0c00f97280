"""A scenario's records into Kafka, each exactly once, with the broker's word for it."""

import time
from collections.abc import Callable, Mapping

from headgate.datagen.formats import Format
from headgate.datagen.pace import Pace, Timeline
from headgate.datagen.scenario import Scenario
from headgate.datagen.writer import PROGRESS_SECONDS, Encoding, Ledger, Writer
from headgate.errors import AlreadyExists, InvalidRequest
from headgate.kafka.client import Where
from headgate.kafka.registry import RegistryAccess
from headgate.kafka.topics import ANY_TIME, Topics

Progress = Callable[[Mapping[str, int]], None]

PARTITIONS = 4

# Records carry the scenario's time, not today's: retention would delete them as old, and a long run gets
# ahead of the clock.
TOPIC_CONFIG = ANY_TIME


def produce(
    scenario: Scenario,
    kafka: Where,
    registry: RegistryAccess | str,
    *,
    limit: int | None = None,
    prefix: str = "",
    rate: float | None = None,
    speed: float | None = None,
    written_as: Format = Format.AVRO,
    ledger: Ledger | None = None,
    on_progress: Progress | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> dict[str, int]:
    """How many records of each topic were acknowledged, by the topic's full name.

    `rate` is records per second over all topics; `speed` how many times as fast as the clock the times of the
    records go on. `ledger` is told topic, partition, offset and value of each acknowledged record. When
    `stopped` says so, what was sent is still awaited. Any record that the broker does not take raises.
    """
    if written_as is Format.PROTOBUF and scenario.key_schemas:
        raise InvalidRequest("Debezium writes no Protobuf.", "Choose --format avro or json with --cdc.")
    pace = Pace(rate)
    names = {topic: prefix + topic for topic in scenario.schemas}
    encoding = Encoding(scenario, written_as, names, registry)
    prepare_topics(Topics(kafka), list(names.values()))
    writer = Writer(kafka, names, encoding, ledger)
    report = _reporter(on_progress, writer.acknowledged)
    timeline = Timeline(scenario.records(limit), speed)
    while not (stopped() or timeline.ended):
        writer.write(timeline.take(pace.records_at_a_time))
        writer.poll(0)
        report()
        while not stopped() and (wait := max(pace.wait(writer.sent), timeline.wait())) > 0:
            writer.poll(min(wait, PROGRESS_SECONDS))
            report()
    writer.finish(report)
    if on_progress is not None:
        on_progress(writer.acknowledged)
    return dict(writer.acknowledged)


def prepare_topics(topics: Topics, names: list[str]) -> None:
    """Creates those that are missing. One that would lose the records soon is refused."""
    existing = topics.describe_many(names)
    for name in names:
        try:
            if name not in existing:
                topics.create(name, PARTITIONS, config=TOPIC_CONFIG)
                continue
        except AlreadyExists:
            # Somebody else was faster; then it is as they made it.
            pass
        _check_retention(name, topics.config(name))


def _check_retention(name: str, config: Mapping[str, str]) -> None:
    if "delete" in config["cleanup.policy"] and config["retention.ms"] != "-1":
        raise InvalidRequest(
            f"Topic '{name}' deletes records older than {config['retention.ms']} ms, and generated records "
            "carry times in the past.",
            "Delete the topic, set retention.ms=-1 on it, or choose other topics with --prefix.",
        )


def _reporter(on_progress: Progress | None, acknowledged: Mapping[str, int]) -> Callable[[], None]:
    """Tells the progress, though not more often than anybody can see."""
    if on_progress is None:
        return lambda: None
    told = 0.0

    def report() -> None:
        nonlocal told
        if time.monotonic() - told >= PROGRESS_SECONDS:
            told = time.monotonic()
            on_progress(acknowledged)

    return report
