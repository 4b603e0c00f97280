"""Where a stopped statement stands: what its steps have read, and how far event time was in each.

Another statement takes over only from a standing that is one: each topic read up to one place by all who read
it, nothing under way between two steps, no batch half written.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession

from headgate.errors import StatementFailed
from headgate.kafka.access import KafkaAccess
from headgate.kafka.records import committed_records
from headgate.kafka.topics import is_reserved
from headgate.statements.checkpoint import Checkpoint, Offsets, Reached
from headgate.statements.query import Running
from headgate.statements.runnable import Runnable
from headgate.statements.stages import stable_ends
from headgate.statements.takeover import REBUILD_BATCHES, Rebuild, reached_whole


@dataclass(frozen=True)
class StepStanding:
    """One step: the users' topics that it reads, and the watermark up to which it has given its results."""

    topics: frozenset[str]
    watermark_ms: int


@dataclass(frozen=True)
class Standing:
    """A whole statement. `offsets`: of the users' topics."""

    name: str
    offsets: Offsets
    steps: Sequence[StepStanding]
    #: How Spark keeps its state.
    conf: Mapping[str, str]

    def rebuild(self, job: Runnable) -> Rebuild:
        """What a job with state needs to become what this was; refused where that cannot be known."""
        stages = {stage.name for stage in job.stages}
        found: list[int] = []
        for number, query in enumerate([*(stage.runnable for stage in job.stages), job]):
            reads = {source.table.name for source in query.sources} - stages
            if unknown := sorted(reads - self.offsets.keys()):
                raise StatementFailed(
                    f"The statement to take over from has not read topic '{unknown[0]}': state that needs it "
                    "cannot be rebuilt.",
                    "Start the new statement without initial-offset-from, or write another topic.",
                )
            has_time = any(source.watermark is not None for source in query.sources)
            found.append(self._watermark(number, reads) if has_time else 0)
        return Rebuild(self.offsets, found[-1], self.conf, tuple(found[:-1]))

    def _watermark(self, number: int, reads: set[str]) -> int:
        """Up to when the results of these topics are given."""
        if number < len(self.steps) and self.steps[number].topics == reads:
            return self.steps[number].watermark_ms
        times = {step.watermark_ms for step in self.steps if step.topics & reads}
        if len(times) > 1:
            raise StatementFailed(
                f"Steps of statement '{self.name}' have come to different event times with "
                f"'{min(reads)}': which results are given already is not one moment for the new one.",
                "Write the new statement so that its steps read the same topics, or start it without "
                "initial-offset-from and write another topic.",
            )
        return max(times, default=0)


def standing_of(
    spark: SparkSession, access: KafkaAccess, name: str, runnings: Sequence[Running], is_rebuilt: bool
) -> Standing:
    """Of a statement that is stopped, by what its steps run with. `is_rebuilt`: it took over from another."""
    offsets: dict[str, Mapping[int, int]] = {}
    steps: list[StepStanding] = []
    conf: Mapping[str, str] = {}
    for own in runnings:
        checkpoint = Checkpoint(spark, own.checkpoint)
        reached = _reached(access, name, own, checkpoint, is_rebuilt)
        readings = checkpoint.readings(reached.batch)
        for topic, ends in readings:
            if offsets.setdefault(topic, ends) != ends:
                raise _not_one_place(name, topic)
        own_topics = frozenset(topic for topic, _ in readings if not is_reserved(topic))
        steps.append(StepStanding(own_topics, reached.watermark_ms))
        conf = reached.conf
    between = [topic for topic in offsets if is_reserved(topic)]
    for topic, ends in stable_ends(access, between).items():
        unread = {p: offsets[topic].get(p, 0) for p, end in ends.items() if offsets[topic].get(p, 0) < end}
        if unread and _has_records(access, topic, unread):
            raise _not_one_place(name, topic)
    return Standing(name, {topic: offsets[topic] for topic in offsets if topic not in between}, steps, conf)


def _reached(
    access: KafkaAccess, name: str, own: Running, checkpoint: Checkpoint, is_rebuilt: bool
) -> Reached:
    reached = checkpoint.reached()
    if is_rebuilt and (reached is None or reached.batch < REBUILD_BATCHES - 1):
        raise StatementFailed(
            f"Statement '{name}' was stopped while it took over from another one.",
            f"Let it end that: `headgate statement start {name}`; stop it when it is Running.",
        )
    return reached_whole(access, name, own.writer, own.tasks, checkpoint)


def _has_records(access: KafkaAccess, topic: str, places: Mapping[int, int]) -> bool:
    """Whether there is any from these offsets on: what was aborted when a batch was cut off is none."""
    found = committed_records(access, topic, places, limit=1, idle_seconds=None, whole=True)
    return next(iter(found), None) is not None


def _not_one_place(name: str, topic: str) -> StatementFailed:
    between = "rows are under way between its steps"
    what = between if is_reserved(topic) else f"'{topic}' is not read up to one place by all of it"
    return StatementFailed(
        f"Statement '{name}' does not stand at one place: {what}.",
        f"Let it read to the ends of its topics: `headgate statement start {name}`; stop it at lag 0.",
    )
