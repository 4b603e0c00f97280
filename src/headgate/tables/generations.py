"""Generations: records between which positions mean nothing.

An era begins with a topic that was created again, or with another timeline of the source. Within an era each
partition counts the snapshots of its source that came after stream events. Both make the generation of a
record; `Position` carries what tells it.
"""

from collections.abc import Iterable, Mapping, Sequence

from pyspark.sql import Column
from pyspark.sql import functions as f

from headgate.model import Position, SnapshotCount

ERA_SHIFT = 32
#: The generation of deletions that were remembered before there were generations, in a topic that is no more.
UNKNOWN = -1
# From an offset on, a generation.
Step = tuple[int, int]
_LENGTH = 8


def with_generation(generation: int, place: bytes) -> bytes:
    """A place in the log of a source, with the generation before it; empty where there is neither."""
    return (generation - UNKNOWN).to_bytes(_LENGTH, "big") + place if place or generation else b""


def generation_of(order: bytes) -> int:
    return int.from_bytes(order[:_LENGTH], "big") + UNKNOWN if order else 0


def without_generation(order: bytes) -> bytes:
    return order[_LENGTH:]


def current_generation(position: Position, partition: int) -> int:
    """The generation of the records that come next in a partition."""
    counted = position.snapshots.get(partition, SnapshotCount())
    return (len(position.earlier) << ERA_SHIFT) + counted.count


def generation_steps(position: Position, topic_id: str, partition: int) -> list[Step]:
    """The generations of a topic's records in a partition, each with its first offset.

    Of snapshots only the last is known: whatever is before it in its era counts as of the one before.
    """
    steps: list[Step] = []
    start = 0
    for number, era in enumerate(position.earlier):
        if era.topic_id == topic_id:
            steps.append((start, number << ERA_SHIFT))
            start = era.ends.get(partition, 0)
    if topic_id == position.topic_id:
        now, counted = current_generation(position, partition), position.snapshots.get(partition)
        if counted is not None and counted.count:
            steps += [(start, now - 1), (counted.since, now)]
        else:
            steps.append((start, now))
    return steps or [(0, UNKNOWN)]


def generation_column(
    position: Position,
    topic_id: str,
    partition: Column,
    offset: Column,
    within: Mapping[int, Sequence[Step]],
) -> Column:
    """The generation of each record of a topic. `within`: the steps of partitions that have some of their own
    in a batch."""
    partitions = {p for era in position.earlier for p in era.ends} | position.offsets.keys() | within.keys()
    # A partition that nobody has read yet.
    found = f.lit(generation_steps(position, topic_id, -1)[-1][1]).cast("long")
    for number in sorted(partitions):
        for first, generation in within.get(number) or generation_steps(position, topic_id, number):
            here = (partition == number) & (offset >= first)
            found = f.when(here, f.lit(generation).cast("long")).otherwise(found)
    return found


def generation_of_mark(
    position: Position, topic_id: str, partition: int, offset: int, written: int | None
) -> int | None:
    """The generation of a record that deleted a key; None if the table does not have its effects.

    `written`: as it was remembered with the record, if it was. A table that was rolled back may have gone on
    in another topic since.
    """
    if written is None:
        for number, era in enumerate(position.earlier):
            if era.topic_id == topic_id and offset < era.ends.get(partition, 0):
                return number << ERA_SHIFT
        if topic_id != position.topic_id:
            return UNKNOWN
        written = current_generation(position, partition)
    number = written >> ERA_SHIFT
    if number == len(position.earlier):
        applied = topic_id == position.topic_id and offset < position.offsets.get(partition, 0)
    elif 0 <= number < len(position.earlier):
        era = position.earlier[number]
        applied = topic_id == era.topic_id and offset < era.ends.get(partition, 0)
    else:
        applied = written == UNKNOWN
    return written if applied else None


def begins_generation(counted: SnapshotCount, first_stream: int | None, last_snapshot: int | None) -> bool:
    """Whether a snapshot follows stream events, by the first and the last of them in a batch."""
    if last_snapshot is None:
        return False
    return counted.streamed or (first_stream is not None and first_stream < last_snapshot)


def count_snapshots(
    counted: SnapshotCount, phases: Iterable[tuple[int, bool]]
) -> tuple[SnapshotCount, list[int]]:
    """As of the end of a batch, and the offsets in it at which generations begin.

    `phases`: where stream events (False) or rows of snapshots (True) begin, in order.
    """
    begun: list[int] = []
    for offset, is_snapshot in phases:
        if not is_snapshot:
            counted = SnapshotCount(counted.count, counted.since, streamed=True)
        elif counted.streamed:
            counted = SnapshotCount(counted.count + 1, offset)
            begun.append(offset)
    return counted, begun
