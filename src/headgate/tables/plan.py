"""Which records the next batch holds. Pure: offsets in, a batch out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headgate.errors import OffsetsLost, RowsChanged, TopicReplaced
from headgate.model import Batch, Position, Topic


@dataclass(frozen=True)
class Limits:
    """What one batch may hold at most."""

    rows: int
    bytes: int

    def rows_of(self, record_bytes: float) -> int:
        """The rows that fit in both bounds, at this mean size of a record; always at least one."""
        by_bytes = int(self.bytes / record_bytes) if record_bytes > 0 else self.rows
        return max(1, min(self.rows, by_bytes))


def check_source(position: Position, cluster_id: str, topic: Topic) -> None:
    """The table's offsets mean something only in the very topic they were read from."""
    if position.cluster_id != cluster_id:
        raise TopicReplaced(
            f"Table '{topic.name}' was read from Kafka cluster {position.cluster_id}, this is {cluster_id}.",
            "Point kafka.bootstrap back, or disable the table with --purge and enable it again.",
        )
    if position.topic_id != topic.id:
        raise TopicReplaced(
            f"Topic '{topic.name}' was deleted and created again: its id is {topic.id}, "
            f"the table was read from {position.topic_id}.",
            f"`headgate table resume {topic.name} --accept new-topic` adds the new topic's records to those "
            "of the old one; or disable the table with --purge and enable it again.",
        )


def check_retained(position: Position, earliest: Mapping[int, int], topic: Topic) -> None:
    """Nothing between the position and the first record still there may be missing."""
    lost = lost_ranges(position, earliest)
    if lost:
        raise OffsetsLost(
            f"Topic '{topic.name}' no longer has records that were not materialized yet ({named(lost)}).",
            f"Lengthen the topic's retention; then `headgate table resume {topic.name} --accept lost` goes "
            "on behind them and records the gap.",
        )


def lost_ranges(position: Position, earliest: Mapping[int, int]) -> dict[int, tuple[int, int]]:
    """By partition: from the table's position up to the first record that is still there."""
    return {
        partition: (position.offsets.get(partition, 0), first)
        for partition, first in earliest.items()
        if first > position.offsets.get(partition, 0)
    }


def led_by_others(position: Position, epochs: Mapping[int, int]) -> set[int]:
    """Partitions that have got another leader since the table has read them."""
    return {
        partition
        for partition, epoch in epochs.items()
        if position.offsets.get(partition, 0) and epoch > position.epochs.get(partition, epoch)
    }


def replaced_ranges(
    position: Position, steps: Mapping[int, Sequence[tuple[int, int]]]
) -> dict[int, tuple[int, int]]:
    """By partition: from the first record that a later leader wrote up to the table's position.

    `steps`: from an offset on, the epoch of the leader that wrote what the topic has there now.
    """
    found: dict[int, tuple[int, int]] = {}
    for partition, written in steps.items():
        end, known = position.offsets.get(partition, 0), position.epochs.get(partition)
        later = [first for first, epoch in written if known is not None and epoch > known and first < end]
        if later:
            found[partition] = (min(later), end)
    return found


def check_replaced(replaced: Mapping[int, tuple[int, int]], topic: Topic) -> None:
    """What the table has read must still be what the topic has."""
    if replaced:
        raise OffsetsLost(
            f"Topic '{topic.name}' has lost records that its table or its dead letters hold "
            f"({named(replaced)}), when another "
            "broker became the leader: other records have their offsets now, or will.",
            f"`headgate table resume {topic.name} --accept lost` keeps their rows and reads what is there; "
            "or disable the table with --purge and enable it again. Turn unclean.leader.election.enable off.",
        )


def check_leaders(batch: Batch, epochs: Mapping[int, int], topic: str) -> None:
    """Nobody may have become the leader of a partition while its records were read."""
    for one in batch.ranges:
        before = batch.end.epochs.get(one.partition)
        if before is not None and epochs.get(one.partition, before) != before:
            raise RowsChanged(
                f"Partition {one.partition} of topic '{topic}' got another leader while a batch was read."
            )


def lag(position: Position, ends: Mapping[int, int]) -> int:
    """Offsets between the position and the stable ends."""
    return sum(max(0, end - position.offsets.get(partition, 0)) for partition, end in ends.items())


def plan_batch(position: Position, ends: Mapping[int, int], max_rows: int) -> Batch | None:
    """The next batch, or None when there is nothing to read.

    Each partition gives in proportion to what it has, so that they finish together.
    """
    behind = {p: end - position.offsets.get(p, 0) for p, end in ends.items()}
    backwards = {p: (ends[p], ends[p] - n) for p, n in behind.items() if n < 0}
    if backwards:
        raise OffsetsLost(
            f"Partitions {sorted(backwards)} end before the table's position: records it holds are gone "
            f"from the topic ({named(backwards)}).",
            "Was the topic truncated? Disable the table with --purge and enable it again.",
        )
    total = sum(behind.values())
    if total == 0:
        return None
    share = min(1.0, max_rows / total)
    taken = {
        p: position.offsets.get(p, 0) + (n if share == 1.0 else max(1, int(n * share)))
        for p, n in behind.items()
        if n > 0
    }
    return Batch(position, position.advanced_to(taken))


def named(ranges: Mapping[int, tuple[int, int]]) -> str:
    return ", ".join(f"partition {p}: {start} to {end - 1}" for p, (start, end) in sorted(ranges.items()))
