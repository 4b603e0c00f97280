"""A statement's checkpoint: what Spark left in it, and how a new one is begun where another has stopped.

Spark's logs are small files, one for each batch: `offsets/N` before the batch runs, `commits/N` after it.
"""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from pyspark.sql import SparkSession

Offsets = Mapping[str, Mapping[int, int]]


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

    def reached(self) -> Reached | None:
        """None before a first batch was done."""
        planned, done = self._numbers("offsets"), self._numbers("commits")
        if not done or done[-1] not in planned:
            return None
        batch = done[-1]
        _, metadata, *ends = self._lines("offsets", batch)
        offsets: dict[str, dict[int, int]] = {}
        for line in ends:
            for topic, partitions in (json.loads(line) if line != "-" else {}).items():
                offsets[topic] = {int(partition): offset for partition, offset in partitions.items()}
        known = json.loads(metadata)
        later = next((number for number in planned if number > batch), None)
        return Reached(batch, offsets, int(known["batchWatermarkMs"]), later, known["conf"])

    def readings(self, batch: int) -> list[tuple[str, dict[int, int]]]:
        """Up to where each source of a batch was read: a topic that it reads twice is there twice."""
        found: list[tuple[str, dict[int, int]]] = []
        for line in self._lines("offsets", batch)[2:]:
            for topic, ends in (json.loads(line) if line != "-" else {}).items():
                found.append((topic, {int(partition): int(offset) for partition, offset in ends.items()}))
        return found

    def passed(self, topic: str) -> Mapping[int, int] | None:
        """Where in a topic no batch will ever read before again; None while nothing of it was read.

        A query that reads it twice may be farther with one reading than with the other.
        """
        done = self._numbers("commits")
        if not done:
            return None
        readings: list[dict[int, int]] = []
        for line in self._lines("offsets", done[-1])[2:]:
            found = (json.loads(line) if line != "-" else {}).get(topic)
            if found is not None:
                readings.append({int(partition): int(offset) for partition, offset in found.items()})
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
        out = self._files.create(self._path(f"{self.uri}/offsets/{number}"), False)
        try:
            out.write(bytearray(text.encode()))
        finally:
            out.close()

    def planned(self) -> int | None:
        """The last batch that was begun."""
        return max(self._numbers("offsets"), default=None)

    def forget_unbegun(self) -> None:
        """What is left of a first batch that was cut off before it was planned: Spark takes it for another
        query's, and would not begin."""
        if self.planned() is None:
            self.delete()

    def delete(self) -> None:
        self._files.delete(self._path(self.uri), True)

    def _numbers(self, log: str) -> list[int]:
        folder = self._path(f"{self.uri}/{log}")
        if not self._files.exists(folder):
            return []
        names = [status.getPath().getName() for status in self._files.listStatus(folder)]
        return sorted(int(name) for name in names if name.isdigit())

    def _lines(self, log: str, number: int) -> list[str]:
        opened = self._files.open(self._path(f"{self.uri}/{log}/{number}"))
        try:
            text: str = self._io.toString(opened, "UTF-8")
        finally:
            opened.close()
        return text.splitlines()
