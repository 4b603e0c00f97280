"""Large results by way of the disk: what a query gives ahead of its reader is in files, not in memory.

Spark hands the driver a part of a result whole, and a part may be many times the size of the file that it
comes of. So each task writes its part down, batch by batch, and the parts are read in their order.
"""

import shutil
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pyspark import InheritableThread
from pyspark.sql import DataFrame

from headgate.adhoc.parts import PART_ROWS
from headgate.adhoc.results import Closed
from headgate.adhoc.spool_task import LENGTH, part_name, write_part

if TYPE_CHECKING:
    from headgate.adhoc.arrow import ArrowResults

# Smaller results are not worth a task in Python.
SMALLEST = 64 * 1024**2
# What may lie in files before tasks wait for the reader.
MOST_BYTES = 4 * 1024**3
LOOK_SECONDS = 0.02
WAIT_SECONDS = 0.2
END_SECONDS = 30.0


class Spool:
    """The parts of one result, each a file of batches with their lengths."""

    def __init__(self, rows: DataFrame, folder: Path) -> None:
        self._folder = folder
        self._tag = folder.name
        self._context = rows.sparkSession.sparkContext
        # Batches have no names, and two columns may have one.
        unnamed = rows.toDF(*(f"c{number}" for number in range(len(rows.columns))))
        self.rows = unnamed.mapInArrow(write_part(str(folder), MOST_BYTES), "part int")
        self._error: Exception | None = None
        self._parts: list[int] = []
        self._thread = InheritableThread(target=self._run, name=self._tag, daemon=True)

    def give(self, results: "ArrowResults") -> None:
        """All batches in their order. Whatever comes, nothing of it runs afterwards."""
        self._thread.start()
        try:
            part = 0
            while (file := self._awaited(part, results)) is not None:
                for message in _messages(file):
                    results.batch(message)
                file.unlink()
                part += 1
            if self._error is not None:
                raise self._error
            # Of a frame that is known to be empty before it runs, Spark runs nothing.
            if self._parts != list(range(part)):
                raise RuntimeError(f"{part} parts of the result were read, and {len(self._parts)} written.")
        finally:
            while self._thread.is_alive():
                self._context.cancelJobsWithTag(self._tag)
                self._thread.join(WAIT_SECONDS)

    def _awaited(self, part: int, results: "ArrowResults") -> Path | None:
        """The file of a part when it is whole; None when the query has ended without."""
        file = self._folder / part_name(part)
        while not file.exists():
            if not results.is_wanted:
                raise Closed
            if not self._thread.is_alive():
                return file if file.exists() else None
            time.sleep(LOOK_SECONDS)
        return file

    def _run(self) -> None:
        self._context.addJobTag(self._tag)
        try:
            self._parts = sorted(row["part"] for row in self.rows.collect())
        except Exception as error:  # noqa: BLE001 - raised where the rows are given
            self._error = error


@contextmanager
def spool_of(rows: DataFrame) -> Iterator[Spool | None]:
    """None where the rows are few, or tasks run on machines whose disks are not ours."""
    context = rows.sparkSession.sparkContext
    if not (context.master or "").startswith("local") or not _is_large(rows):
        yield None
        return
    scratch = Path(str(context.getConf().get("spark.local.dir", "/tmp")))  # noqa: S108
    folder = scratch / f"rows-{uuid.uuid4().hex}"
    folder.mkdir(mode=0o700)
    try:
        yield Spool(rows, folder)
    finally:
        _remove(folder)


def _remove(folder: Path) -> None:
    """A task that was told to end may write for a moment still."""
    deadline = time.monotonic() + END_SECONDS
    while folder.exists():
        try:
            shutil.rmtree(folder)
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(WAIT_SECONDS)


def _is_large(rows: DataFrame) -> bool:
    """By what Spark makes of it: rather too much than too little."""
    plan = cast(Any, rows)._jdf.queryExecution().optimizedPlan()
    most = plan.maxRows()
    if most.isDefined() and int(most.get()) <= PART_ROWS:
        return False
    return int(str(plan.stats().sizeInBytes())) > SMALLEST


def _messages(file: Path) -> Iterator[bytes]:
    with file.open("rb") as content:
        while head := content.read(LENGTH):
            yield content.read(int.from_bytes(head, "big"))
