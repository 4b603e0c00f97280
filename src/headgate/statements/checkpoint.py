"""A statement's checkpoint: what Spark left in it, and how a new one is begun where another has stopped.

Spark's logs are small files, one for each batch: `offsets/N` before the batch runs, `commits/N` after it.
"""

import json
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from pyspark.sql import SparkSession

from headgate.kafka.markers import Marker

Offsets = Mapping[str, Mapping[int, int]]
# The folder of what is kept beside Spark's logs, a file for each batch. Older ones than these are not needed,
# as Spark keeps no state that is older.
_KEPT, _KEPT_BATCHES = "clock", 100
# A file of the same kind for all batches.
_LEADERS = "leaders"


@dataclass(frozen=True)
class Reached:
    """The last batch that Spark knows to be done: where it ended in each topic, how far event time was in it.

    What waited for that event time is given. The commit of a batch names a later one, for the batch to come:
    what waits for that is not given yet. `pending`: a later batch that was begun, if any.
    """

    batch: int
    offsets: Offsets
    watermark_ms: int
    pending: int | None
    #: How Spark keeps its state, as it was settled when the checkpoint was begun.
    conf: Mapping[str, str]


class Checkpoint:
    """A folder in any file system that Hadoop knows."""

    def __init__(self, spark: SparkSession, uri: str) -> None:
        self.uri = uri
        jvm = cast(Any, spark._jvm)
        self._path = jvm.org.apache.hadoop.fs.Path
        self._files = self._path(uri).getFileSystem(cast(Any, spark)._jsc.hadoopConfiguration())
        self._io = jvm.org.apache.commons.io.IOUtils
        #: The last entry that was read, by its batch: the next batch asks for it again.
        self._entry: tuple[int, str | None] = (-1, None)
        self._id: str | None = None

    def id(self) -> str | None:
        """As Spark writes it down first of all; a copy of the checkpoint has the same."""
        text = self._read("metadata")
        return None if text is None else str(json.loads(text)["id"])

    def begin(self, checkpoint_id: str) -> None:
        """An empty checkpoint that has this id, whatever was there."""
        self.delete()
        self._write("metadata", json.dumps({"id": checkpoint_id}))

    def entry(self, batch: int) -> str | None:
        """The text of a batch's entry in the log of offsets; None if it has none, or none any more."""
        if self._entry[0] != batch or self._entry[1] is None:
            self._entry = batch, self._read(f"offsets/{batch}")
        return self._entry[1]

    def write_entry(self, batch: int, text: str) -> None:
        """Plans a batch by the text of its entry, for Spark to run next."""
        self._write(f"offsets/{batch}", text)

    def is_done(self, batch: int) -> bool:
        return batch in self._numbers("commits")

    def marker(self, batch: int) -> Marker:
        """What is recorded with the rows of a batch that runs."""
        before, entry = self.entry(batch - 1), self.entry(batch)
        self._id = self._id or self.id()
        if entry is None or self._id is None:
            raise AssertionError(f"checkpoint '{self.uri}' does not know batch {batch}, which runs")
        return Marker(batch, self._id, entry, "" if before is None else without_conf(before))

    def reached(self) -> Reached | None:
        """None before a first batch was done."""
        planned, done = self._numbers("offsets"), self._numbers("commits")
        if not done or done[-1] not in planned:
            return None
        batch = done[-1]
        known = json.loads(self._lines("offsets", batch)[1])
        later = next((number for number in planned if number > batch), None)
        offsets = dict(self.readings(batch))
        return Reached(batch, offsets, int(known["batchWatermarkMs"]), later, known["conf"])

    def readings(self, batch: int) -> list[tuple[str, dict[int, int]]]:
        """Up to where each source of a batch was read: a topic that it reads twice is there twice."""
        return entry_readings("\n".join(self._lines("offsets", batch)))

    def passed(self, topic: str) -> Mapping[int, int] | None:
        """Where in a topic no batch will ever read before again; None while nothing of it was read.

        A query that reads it twice may be farther with one reading than with the other.
        """
        done = self._numbers("commits")
        if not done:
            return None
        readings = [ends for name, ends in self.readings(done[-1]) if name == topic]
        if not readings:
            return None
        known = set.intersection(*(set(reading) for reading in readings))
        return {partition: min(reading[partition] for reading in readings) for partition in sorted(known)}

    def begin_batch(
        self, number: int, topics: Sequence[str], offsets: Offsets, watermark_ms: int, conf: Mapping[str, str]
    ) -> None:
        """Plans a batch for Spark, as it does itself: to these offsets, for the sources in this order."""
        metadata = {
            "batchWatermarkMs": watermark_ms,
            "batchTimestampMs": int(time.time() * 1000),
            "conf": dict(conf),
        }
        ends = [json.dumps({topic: {str(p): o for p, o in offsets[topic].items()}}) for topic in topics]
        text = "\n".join(["v1", json.dumps(metadata), *ends])
        self.write_entry(number, text)

    def plan_due(self) -> None:
        """Plans a batch without records after the last one: what event time had passed by then comes out.

        After a restart Spark runs no batch without records before it has run one with some.
        """
        reached = self.reached()
        if reached is None or reached.pending is not None:
            return
        version, planned, *ends = self._lines("offsets", reached.batch)
        metadata = json.loads(planned)
        to_come = json.loads(self._lines("commits", reached.batch)[1]).get("nextBatchWatermarkMs", 0)
        metadata["batchWatermarkMs"] = max(reached.watermark_ms, int(to_come))
        metadata["batchTimestampMs"] = int(time.time() * 1000)
        self.write_entry(reached.batch + 1, "\n".join([version, json.dumps(metadata), *ends]))

    def last_watermark(self) -> int:
        """The watermark of the last batch that was done, by which rows of the next one are late."""
        reached = self.reached()
        return 0 if reached is None else reached.watermark_ms

    # -- what is kept beside Spark's own logs

    def keep(self, batch: int, text: str) -> None:
        """What is to be known after this batch; of earlier ones it is kept a while."""
        self._files.delete(self._path(f"{self.uri}/{_KEPT}/{batch}"), False)
        self._write(f"{_KEPT}/{batch}", text)
        self._files.delete(self._path(f"{self.uri}/{_KEPT}/{batch - _KEPT_BATCHES}"), False)

    def kept(self) -> str | None:
        """What was kept as of the last batch that Spark knows to be done."""
        done = max(self._numbers("commits"), default=-1)
        batch = max((number for number in self._numbers(_KEPT) if number <= done), default=None)
        return None if batch is None else "\n".join(self._lines(_KEPT, batch))

    def leaders(self) -> str | None:
        """What was kept of the leaders of its topics."""
        return self._read(_LEADERS)

    def keep_leaders(self, text: str) -> None:
        """In place of what was kept before: when it is lost in between, nobody is compared once."""
        self._files.delete(self._path(f"{self.uri}/{_LEADERS}"), False)
        self._write(_LEADERS, text)

    def planned(self) -> int | None:
        """The last batch that was begun."""
        return max(self._numbers("offsets"), default=None)

    def exists(self) -> bool:
        return bool(self._files.exists(self._path(self.uri)))

    def delete(self) -> None:
        self._files.delete(self._path(self.uri), True)

    def _numbers(self, log: str) -> list[int]:
        folder = self._path(f"{self.uri}/{log}")
        if not self._files.exists(folder):
            return []
        names = [status.getPath().getName() for status in self._files.listStatus(folder)]
        return sorted(int(name) for name in names if name.isdigit())

    def _lines(self, log: str, number: int) -> list[str]:
        text = self._read(f"{log}/{number}")
        if text is None:
            raise AssertionError(f"checkpoint '{self.uri}' has no {log}/{number}")
        return text.splitlines()

    def _read(self, name: str) -> str | None:
        path = self._path(f"{self.uri}/{name}")
        if not self._files.exists(path):
            return None
        opened = self._files.open(path)
        try:
            text: str = self._io.toString(opened, "UTF-8")
        finally:
            opened.close()
        return text

    def _write(self, name: str, text: str) -> None:
        """All of a file or none of it, whenever this process is killed."""
        path = self._path(f"{self.uri}/{name}")
        unfinished = self._path(path.getParent(), f".{path.getName()}.{uuid.uuid4().hex}.tmp")
        out = self._files.create(unfinished, False)
        try:
            out.write(bytearray(text.encode()))
        finally:
            out.close()
        if not self._files.rename(unfinished, path):
            self._files.delete(unfinished, False)
            raise RuntimeError(f"'{self.uri}/{name}' could not be written.")


def without_conf(entry: str) -> str:
    """An entry of the log of offsets without Spark's settings, which are the same in all of a checkpoint."""
    version, metadata, *offsets = entry.splitlines()
    known = json.loads(metadata)
    known.pop("conf", None)
    return "\n".join([version, json.dumps(known, sort_keys=True), *offsets])


def entry_readings(entry: str) -> list[tuple[str, dict[int, int]]]:
    """Up to where each source of an entry was read: a topic that is read twice is there twice."""
    return [
        (topic, {int(partition): int(offset) for partition, offset in ends.items()})
        for line in entry.splitlines()[2:]
        for topic, ends in (json.loads(line) if line != "-" else {}).items()
    ]


def entry_offsets(entry: str) -> dict[str, dict[int, int]]:
    """By topic, up to where a batch has read; of a topic that it reads twice, where it is behind."""
    found: dict[str, dict[int, int]] = {}
    for topic, ends in entry_readings(entry):
        known = found.setdefault(topic, {})
        known |= {partition: min(known.get(partition, end), end) for partition, end in ends.items()}
    return found


def entry_watermark_ms(entry: str) -> int:
    """How far event time was for a batch."""
    return int(json.loads(entry.splitlines()[1])["batchWatermarkMs"])


def entry_conf(entry: str) -> Mapping[str, str]:
    found: Mapping[str, str] = json.loads(entry.splitlines()[1])["conf"]
    return found
