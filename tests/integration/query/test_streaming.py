"""Large results on their way: no more is computed than their reader takes, and the heap stays flat."""

import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from headgate.access import LOCAL
from headgate.adhoc.arrow import ArrowResults
from headgate.adhoc.lake import run_lake
from headgate.adhoc.parts import PART_ROWS, in_parts
from headgate.adhoc.results import Closed
from headgate.statements.asking import Asked
from tests.integration.query.conftest import Lake
from tests.support.services import wait_for

SOAK = os.environ.get("HEADGATE_SOAK") == "1"
ROWS = 20_000_000 if SOAK else 1_000_000
PARTS = 400 if SOAK else 40
ROWS_OF_A_BATCH = 10_000
GROUP = "streaming"
# What a heap may grow by while rows pass, whatever their number: some parts and what waits for the reader.
MOST_HELD = 150 * 1024**2
MIB = 1024**2


@dataclass
class Asking:
    """A query that runs in a thread of its own, as those of the driver do."""

    spark: SparkSession
    results: ArrowResults
    thread: threading.Thread

    def tasks(self) -> int:
        """How many parts of the result were computed."""
        tracker: Any = self.spark.sparkContext.statusTracker()
        done = 0
        for job in tracker.getJobIdsForGroup(GROUP):
            for stage in tracker.getJobInfo(job).stageIds:
                about = tracker.getStageInfo(stage)
                done += 0 if about is None else about.numCompletedTasks
        return done

    def heap(self) -> int:
        """Bytes of the driver's heap that are in use when garbage is gone."""
        jvm: Any = self.spark.sparkContext._jvm
        jvm.java.lang.System.gc()
        runtime = jvm.java.lang.Runtime.getRuntime()
        return int(runtime.totalMemory() - runtime.freeMemory())


@pytest.fixture
def asking(lake: Lake, spark: SparkSession, parts: int) -> Iterator[Asking]:
    sql = f"SELECT id, concat('a text of the row ', id) AS text FROM range(0, {ROWS}, 1, {parts})"
    results = ArrowResults()

    def run() -> None:
        spark.sparkContext.setJobGroup(GROUP, "", interruptOnCancel=True)
        try:
            figures = run_lake(lake.sessions, replace(Asked("lake", sql), form="arrow"), catalog, results)
            results.end("Completed", **figures)
        except Closed:
            # The test has failed, and reads no more.
            return
        except Exception as error:  # noqa: BLE001 - its reader raises it
            results.fail(error)

    catalog = lake.catalog(LOCAL)
    thread = threading.Thread(target=run, daemon=True)
    found = Asking(spark, results, thread)
    thread.start()
    yield found
    results.close()
    thread.join(30)
    scratch = Path(str(spark.sparkContext.getConf().get("spark.local.dir")))
    assert not list(scratch.glob("rows-*")), "nothing stays on disk"


@pytest.mark.soak
@pytest.mark.parametrize("parts", [PARTS])
def test_rows_are_computed_as_they_are_read(asking: Asking, parts: int) -> None:
    check_flat(asking, parts)


def check_flat(asking: Asking, parts: int) -> None:
    before = asking.heap()
    pieces = (piece for piece in asking.results.pieces() if piece)
    first = next(pieces)
    wait_for("pieces to wait", lambda: asking.results._pieces.full(), 60)
    # What is computed beyond the full queue is a part or two, or as much as the disk may hold.
    ahead = asking.tasks()
    assert ahead <= 15, f"{ahead} of {parts} parts are computed, and the reader has taken one batch"
    heaps: list[int] = []

    def whole() -> Iterator[bytes]:
        yield first
        for number, piece in enumerate(pieces):
            if number % (ROWS // ROWS_OF_A_BATCH // 5) == 0:
                heaps.append(asking.heap())
            yield piece

    assert read(whole()) == (ROWS, ROWS * (ROWS - 1) // 2)
    assert len(heaps) >= 5
    print(f"{ROWS} rows in {parts} parts: heap {before // MIB} MiB, then {[one // MIB for one in heaps]}")
    assert max(heaps) - before < MOST_HELD, f"{before} bytes of heap have become {heaps}"
    assert asking.tasks() >= parts


@pytest.mark.parametrize("tail", ["LIMIT 700000", "LIMIT 700000 OFFSET 1000"])
def test_a_limit_brings_its_rows_in_parts_and_in_their_order(lake: Lake, tail: str) -> None:
    """Spark has them in one part, which the driver would hold whole."""
    sql = f"SELECT id, id AS id FROM range(0, 1000000, 1, 8) ORDER BY id DESC {tail}"
    with lake.sessions.query(Asked("lake", sql), lake.catalog(LOCAL)) as rows:
        assert rows.rdd.getNumPartitions() == 1
        split = in_parts(rows)
        assert split.columns == ["id", "id"]
        first = 999_999 - (1000 if "OFFSET" in tail else 0)
        ids = [row[0] for row in split.toLocalIterator()]
        assert ids == list(range(first, first - 700_000, -1))
        sizes = split.rdd.glom().map(len).collect()
        assert len(sizes) == 4
        assert max(sizes) <= PART_ROWS
    for few in ("SELECT id FROM range(0, 1000000, 1, 8) LIMIT 10", "SELECT id FROM range(0, 1000000, 1, 8)"):
        with lake.sessions.query(Asked("lake", few), lake.catalog(LOCAL)) as rows:
            assert in_parts(rows) is rows


def read(pieces: Iterator[bytes]) -> tuple[int, int]:
    """How many rows a stream has, and the sum of their ids; a batch of it is in memory."""
    stream = pa.ipc.open_stream(pa.PythonFile(Pieces(pieces), mode="r"))
    rows = total = 0
    while True:
        batch, metadata = stream.read_next_batch_with_custom_metadata()
        if metadata is not None and b"headgate" in metadata:
            assert b'"Completed"' in metadata[b"headgate"], metadata
            return rows, total
        rows += batch.num_rows
        total += pa.compute.sum(batch.column(0)).as_py()


class Pieces:
    """Pieces of a stream as a file that is read from front to back."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = b""
        self.closed = False

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def read(self, size: int) -> bytes:
        while len(self._rest) < size and (piece := next(self._pieces, b"")):
            self._rest += piece
        taken, self._rest = self._rest[:size], self._rest[size:]
        return taken

    def close(self) -> None:
        self.closed = True
