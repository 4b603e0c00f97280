"""What a task does with its part of a large result: it writes it into a file, batch by batch.

Each Python worker imports this: it needs nothing else of ours.
"""

import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

# Bytes of a batch's length, which stands before it.
LENGTH = 8
PARTIAL = ".part"
# How much a task writes until it looks at what waits.
LOOK_BYTES = 16 * 1024**2
WAIT_SECONDS = 0.2


def part_name(part: int) -> str:
    """In the order of the parts."""
    return f"{part:08}"


def write_part(folder: str, most: int) -> "Callable[[Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]]":
    """The task. It waits while there are more than `most` bytes that the reader can take."""

    def write(batches: "Iterable[pa.RecordBatch]") -> "Iterable[pa.RecordBatch]":
        import pyarrow as pa
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        part = context.partitionId()
        write_batches(batches, Path(folder) / part_name(part), most)
        yield pa.RecordBatch.from_pydict({"part": pa.array([part], pa.int32())})

    return write


def write_batches(batches: "Iterable[pa.RecordBatch]", file: Path, most: int) -> None:
    """The file has its name when it is whole."""
    partial = file.with_suffix(PARTIAL)
    with partial.open("wb") as out:
        looked_at = 0
        for batch in batches:
            message = batch.serialize()
            out.write(message.size.to_bytes(LENGTH, "big"))
            out.write(message)
            if out.tell() - looked_at >= min(LOOK_BYTES, most):
                looked_at = out.tell()
                wait_for_reader(file, most)
    wait_for_reader(file, most)
    partial.rename(file)


def wait_for_reader(file: Path, most: int) -> None:
    """While there is too much, and a whole part before this one for the reader to take."""
    while True:
        sizes = {}
        for one in file.parent.iterdir():
            try:
                sizes[one] = one.stat().st_size
            except FileNotFoundError:
                # It was read meanwhile.
                continue
        is_before = any(one.suffix != PARTIAL and one.name < file.name for one in sizes)
        if sum(sizes.values()) <= most or not is_before:
            return
        time.sleep(WAIT_SECONDS)
