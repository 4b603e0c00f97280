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
# The folder of what is kept beside Spark's logs, a file for each batch. Older ones than these are not needed,
# as Spark keeps no state that is older.
_KEPT, _KEPT_BATCHES = "clock", 100


@dataclass(frozen=True)
class Reached:
    """After the last batch that Spark knows to be done: where in each topic, and how far event time was.

    `pending`: a later batch that was begun, if any.
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
        watermark = json.loads(self._lines("commits", batch)[1]).get("nextBatchWatermarkMs", 0)
        later = next((number for number in planned if number > batch), None)
        return Reached(batch, offsets, int(watermark), later, json.loads(metadata)["conf"])

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
        self._write(f"offsets/{number}", "\n".join(["v1", json.dumps(metadata), *ends]))

    def plan_due(self) -> None:
        """Plans a batch without records after the last one: what event time had passed by then comes out.

        After a restart Spark runs no batch without records before it has run one with some.
        """
        reached = self.reached()
        if reached is None or reached.pending is not None:
            return
        version, planned, *ends = self._lines("offsets", reached.batch)
        metadata = json.loads(planned)
        metadata["batchWatermarkMs"] = max(reached.watermark_ms, int(metadata.get("batchWatermarkMs", 0)))
        metadata["batchTimestampMs"] = int(time.time() * 1000)
        self._write(f"offsets/{reached.batch + 1}", "\n".join([version, json.dumps(metadata), *ends]))

    def last_watermark(self) -> int:
        """The watermark of the last batch that was done, by which rows of the next one are late."""
        done = self._numbers("commits")
        if not done:
            return 0
        return int(json.loads(self._lines("offsets", done[-1])[1]).get("batchWatermarkMs", 0))

    # -- what is kept beside Spark's own logs

    def keep(self, batch: int, text: str) -> None:
        """What is to be known after this batch; of earlier ones it is kept a while."""
        kept = self._path(f"{self.uri}/{_KEPT}/{batch}")
        unfinished = f"{_KEPT}/.{batch}"
        self._files.delete(self._path(f"{self.uri}/{unfinished}"), False)
        self._write(unfinished, text)
        self._files.delete(kept, False)
        self._files.rename(self._path(f"{self.uri}/{unfinished}"), kept)
        self._files.delete(self._path(f"{self.uri}/{_KEPT}/{batch - _KEPT_BATCHES}"), False)

    def kept(self) -> str | None:
        """What was kept as of the last batch that Spark knows to be done."""
        done = max(self._numbers("commits"), default=-1)
        batch = max((number for number in self._numbers(_KEPT) if number <= done), default=None)
        return None if batch is None else "\n".join(self._lines(_KEPT, batch))

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

    def _write(self, name: str, text: str) -> None:
        """A new file."""
        out = self._files.create(self._path(f"{self.uri}/{name}"), False)
        try:
            out.write(bytearray(text.encode()))
        finally:
            out.close()

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
