"""Where the records of a batch come from, and which generation each of them is of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from headgate.model import Position, SnapshotCount
from headgate.tables.generations import (
    Step,
    begins_generation,
    count_snapshots,
    current_generation,
    generation_column,
)
from headgate.tables.records import CHANGE

# Of a key's records in a partition: the first from the log of its source, and the last from a snapshot.
FIRST_STREAM, LAST_SNAPSHOT = "_headgate_first_stream", "_headgate_last_snapshot"
# By partition: where stream events (False) or rows of snapshots (True) begin.
Phases = dict[int, list[tuple[int, bool]]]


@dataclass(frozen=True)
class Origin:
    """Where records come from: the table's position, or the topic of dead letters that are replayed."""

    position: Position
    replay_of: str | None = None
    #: The generations of partitions in which one begins within the batch.
    steps: Mapping[int, Sequence[Step]] = field(default_factory=dict)

    @property
    def is_replay(self) -> bool:
        return self.replay_of is not None

    @property
    def topic_id(self) -> str:
        return self.replay_of or self.position.topic_id

    def generation(self, change: Column) -> Column:
        return generation_column(
            self.position, self.topic_id, change["partition"], change["offset"], self.steps
        )

    def counted(self, ends: Mapping[int, tuple[int | None, int | None]], changes: DataFrame) -> "Origin":
        """With the snapshots that a batch tells of. `ends`: in each partition, the first event from the log
        and the last one from a snapshot; only a snapshot that follows stream events needs a look at
        `changes`."""
        before = {p: self.position.snapshots.get(p, SnapshotCount()) for p in ends}
        if any(begins_generation(before[p], *ends[p]) for p in ends):
            phases = phases_of(changes)
        else:
            phases = {p: [] if first is None else [(first, False)] for p, (first, _) in ends.items()}
        snapshots = dict(self.position.snapshots)
        steps: dict[int, Sequence[Step]] = {}
        for partition, turns in phases.items():
            counted, begun = count_snapshots(before.get(partition, SnapshotCount()), turns)
            if counted != SnapshotCount():
                snapshots[partition] = counted
            if begun:
                now = current_generation(self.position, partition)
                steps[partition] = [(0, now), *((first, now + n) for n, first in enumerate(begun, 1))]
        return replace(self, position=replace(self.position, snapshots=snapshots), steps=steps)


def with_phases(rows: DataFrame) -> DataFrame:
    """With what tells whether a snapshot follows stream events."""
    change = f.col(CHANGE)
    mine = Window.partitionBy(change["id"], change["partition"])
    first = f.min(f.when(~change["snapshot"], change["offset"])).over(mine)
    last = f.max(f.when(change["snapshot"], change["offset"])).over(mine)
    return rows.withColumns({FIRST_STREAM: first, LAST_SNAPSHOT: last})


def phases_of(changes: DataFrame) -> Phases:
    """Where stream events and snapshots follow each other."""
    change = f.col(CHANGE)
    events = changes.select(*(change[name].alias(name) for name in ("partition", "offset", "snapshot")))
    # Kept, or the filter would be pushed down into the decoding, which takes the driver's memory to plan.
    events = events.persist(StorageLevel.MEMORY_AND_DISK)
    found: Phases = {}
    try:
        before = f.lag("snapshot").over(Window.partitionBy("partition").orderBy("offset"))
        turns = events.where("snapshot is not null").withColumn("before", before)
        for row in turns.where("not before <=> snapshot").orderBy("partition", "offset").collect():
            found.setdefault(row["partition"], []).append((row["offset"], row["snapshot"]))
    finally:
        events.unpersist()
    return found
