"""Which batches are small: those are written by the driver itself, without a task in Python for them.

What a batch reads is known before it runs, what comes of it is not. So there is a bound on its rows, from the
offsets that it reads and the state that they meet; and their size is taken to be that of rows before.
"""

from headgate.kafka.frames import Written
from headgate.kafka.markers import Marker
from headgate.statements.checkpoint import entry_readings
from headgate.statements.progress import Progress

#: Offsets that a small batch reads, and rows that may come of them.
MOST_OFFSETS, MOST_ROWS = 5_000, 50_000
#: Bytes that are in the driver at a time.
MOST_BYTES = 8 * 1024 * 1024
#: Of a row, while nothing is known: then few are small.
FIRST_ROW_BYTES = 64 * 1024
#: How much of what the largest batch has shown counts after the next one.
FADING = 0.95


def offsets_read(marker: Marker) -> int | None:
    """How many offsets a batch reads; None for a first one, of which nobody knows where it begins."""
    if not marker.before or not marker.entry:
        return None
    before, after = entry_readings(marker.before), entry_readings(marker.entry)
    if [topic for topic, _ in before] != [topic for topic, _ in after]:
        return None
    return sum(
        max(0, end - start.get(partition, 0))
        for (_, start), (_, ends) in zip(before, after, strict=True)
        for partition, end in ends.items()
    )


def most_rows(offsets: int, progress: Progress | None, batch: int) -> int | None:
    """How many rows may come of a batch of a query with state; None if nobody knows.

    Aggregates give what they keep at most, joins each pair of what they keep and what is read. `progress`
    must be that of the batch before: state may have grown by any batch since.
    """
    if progress is None or progress.batch < batch - 1:
        return None
    return progress.state_rows + offsets * (1 + progress.joined_rows)


class Sizes:
    """What the batches of one query have shown of the size of rows, and of how many come of an offset."""

    def __init__(self) -> None:
        self._row_bytes: float | None = None
        self._fan_out = 1.0

    def is_small(self, offsets: int | None, rows: int | None) -> bool:
        """`rows`: how many may come of so many offsets; None where nobody knows."""
        if offsets is None or rows is None or offsets > MOST_OFFSETS:
            return False
        row_bytes = FIRST_ROW_BYTES if self._row_bytes is None else self._row_bytes
        expected = rows * self._fan_out
        return expected <= MOST_ROWS and expected * row_bytes <= MOST_BYTES

    def see(self, rows: int | None, written: Written) -> None:
        """What came of a batch of which so many rows might have come."""
        if written.rows:
            own = written.bytes / written.rows
            known = 0.0 if self._row_bytes is None else self._row_bytes * FADING
            self._row_bytes = max(own, known)
        if rows:
            self._fan_out = max(1.0, written.rows / rows, self._fan_out * FADING)
