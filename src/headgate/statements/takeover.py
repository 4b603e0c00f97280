"""A new statement goes on where a stopped one has left off.

Without state it begins at the other's offsets. With state it first becomes what the other was: one batch
reads the topics from their beginning to those offsets, a second one brings event time to where the other's
was, and neither writes anything. Both are planned here, in Spark's own log, so that they end exactly there.

Of several steps each is rebuilt before the next one, and all of them before any goes on: those before the
last write what they give into the topics between, where the next one reads all of it. An engine that is
killed meanwhile finds in each checkpoint which of the two batches are done.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from pyspark.sql import DataFrame

from headgate.errors import StatementFailed
from headgate.kafka.access import KafkaAccess
from headgate.kafka.transactional import take_over_markers
from headgate.statements.checkpoint import Checkpoint, Offsets, Reached
from headgate.statements.recovery import NO_BATCH, unlogged_batch
from headgate.statements.sink import MARKERS

_RELATION = "StreamingRelationV2"
# The batches that rebuild: the rows, then event time.
REBUILD_BATCHES = 2


@dataclass(frozen=True)
class Rebuild:
    """What another statement had reached, kept until the new one is there too."""

    offsets: Offsets
    watermark_ms: int
    conf: Mapping[str, str]
    #: Of a statement of several steps, the event times of those before the last, in order.
    steps_ms: Sequence[int] = ()
    #: That of the batch that comes next, if some of it is written already: the text in the log of offsets.
    entry: str = ""

    def of_step(self, number: int, between: Offsets) -> "Rebuild":
        """What one step needs. `between`: up to where those before it have written, by internal topic."""
        times = (*self.steps_ms, self.watermark_ms)
        return Rebuild({**self.offsets, **between}, times[number], self.conf)

    def to_dict(self) -> dict[str, Any]:
        offsets = {topic: {str(p): o for p, o in ends.items()} for topic, ends in self.offsets.items()}
        found = {"offsets": offsets, "watermark_ms": self.watermark_ms, "conf": dict(self.conf)}
        steps = {"steps_ms": list(self.steps_ms)} if self.steps_ms else {}
        return found | steps | ({"entry": self.entry} if self.entry else {})

    @classmethod
    def from_dict(cls, known: Mapping[str, Any]) -> "Rebuild":
        offsets = {
            topic: {int(p): int(o) for p, o in ends.items()} for topic, ends in known["offsets"].items()
        }
        return cls(
            offsets,
            int(known["watermark_ms"]),
            known["conf"],
            tuple(known.get("steps_ms") or ()),
            known.get("entry", ""),
        )


def reached_whole(access: KafkaAccess, name: str, writer: str, tasks: int, checkpoint: Checkpoint) -> Reached:
    """Where a stopped statement has come to, of which nothing is half done and all is in its checkpoint.

    A batch that was begun and partly written is neither done nor undone: only its own statement ends it.
    Asking takes the transactions over, so that nobody who still sleeps can write it afterwards.
    """
    markers = take_over_markers(access, writer, tasks, MARKERS)
    unlogged, reached = unlogged_batch(checkpoint, markers, name), checkpoint.reached()
    last = max((marker.batch for marker in markers if marker is not None), default=NO_BATCH)
    if unlogged is not None or last > (NO_BATCH if reached is None else reached.batch):
        raise StatementFailed(
            f"Statement '{name}' was stopped in the middle of a batch, of which some is written.",
            f"Let it end that: `headgate statement start {name}`, then stop it again.",
        )
    if reached is None:
        raise StatementFailed(
            f"Statement '{name}' has read nothing yet, or one of its steps has not: there is nothing to take "
            "over.",
            "Delete this statement, and create it without initial-offset-from; or start the other one, and "
            "stop it when its lag is 0.",
        )
    return reached


def start_texts(offsets: Offsets) -> dict[str, str]:
    """Where to begin, by topic, in the words of Spark's source."""
    return {
        topic: json.dumps({topic: {str(p): offset for p, offset in ends.items()}})
        for topic, ends in offsets.items()
    }


def is_rebuilt(checkpoint: Checkpoint) -> bool:
    reached = checkpoint.reached()
    return reached is not None and reached.batch >= REBUILD_BATCHES - 1


def plan_rebuild(frame: DataFrame, checkpoint: Checkpoint, rebuild: Rebuild) -> bool:
    """Plans the next batch that rebuilds, unless it is planned; False when there is none left."""
    reached, planned = checkpoint.reached(), checkpoint.planned()
    done = -1 if reached is None else reached.batch
    if done >= REBUILD_BATCHES - 1:
        return False
    if planned is None or planned <= done:
        number = done + 1
        topics = _topics(frame)
        unknown = sorted({topic for topic in topics if topic not in rebuild.offsets})
        if unknown:
            raise StatementFailed(
                f"The statement to take over from has not read topic '{unknown[0]}': state that needs it "
                "cannot be rebuilt.",
                "Start the new statement without initial-offset-from, or write another topic.",
            )
        watermark = rebuild.watermark_ms if number else 0
        checkpoint.begin_batch(number, topics, rebuild.offsets, watermark, rebuild.conf)
    return True


def _topics(frame: DataFrame) -> list[str]:
    """In the order in which Spark numbers its sources; one that stands in the plan twice is one."""
    found: list[Any] = []
    for node in _nodes(frame):
        if node.nodeName() == _RELATION and not any(node.equals(other) for other in found):
            found.append(node)
    return [str(node.extraOptions().get("subscribe")) for node in found]


def _nodes(frame: DataFrame) -> Iterator[Any]:
    waiting = [cast(Any, frame)._jdf.queryExecution().analyzed()]
    while waiting:
        node = waiting.pop()
        yield node
        children = node.children()
        waiting += [children.apply(number) for number in range(children.size() - 1, -1, -1)]
