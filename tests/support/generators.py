"""What a managed generator has written, held against its story."""

from collections import Counter
from itertools import islice

from headgate.datagen import GeneratorSpec
from headgate.kafka import Offsets, Topics
from headgate.kafka.client import Where
from headgate.kafka.records import committed_records


def check_story(kafka: Where, spec: GeneratorSpec, count: int) -> None:
    """The topics have the first `count` records of the story, each once, in the order of each key."""
    scenario = spec.made()
    wanted: dict[tuple[str, bytes], list[tuple[bytes, int]]] = {}
    for record in islice(scenario.records(spec.limit), count):
        entry = scenario.encode(record, 1)[5:], record.timestamp_ms
        wanted.setdefault((spec.prefix + record.topic, record.key), []).append(entry)
    assert sum(map(len, wanted.values())) == count
    found: dict[tuple[str, bytes], list[tuple[bytes, int]]] = {}
    described = Topics(kafka).describe_many(spec.topics())
    ends = Offsets(kafka).stable_ends(described.values())
    for topic, offsets in ends.items():
        # Transactions have offsets of their own: how many records there are is not known.
        for message in committed_records(kafka, topic, dict.fromkeys(offsets, 0), idle_seconds=None):
            key, value = message.key(), message.value()
            assert isinstance(key, bytes)
            assert isinstance(value, bytes)
            found.setdefault((topic, key), []).append((value[5:], message.timestamp()[1]))
    lengths = Counter({key: len(entries) for key, entries in wanted.items()})
    lengths.subtract({key: len(entries) for key, entries in found.items()})
    assert not +lengths, f"lost: {list((+lengths).items())[:3]}"
    assert not -lengths, f"too many: {list((-lengths).items())[:3]}"
    assert found == wanted
