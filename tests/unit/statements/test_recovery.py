"""Which checkpoints a statement may go on with, by the markers of its output."""

import json
from collections.abc import Mapping
from typing import Any, cast

import pytest

from headgate.errors import StatementFailed
from headgate.kafka.markers import PLAIN_BYTES, Marker
from headgate.statements.checkpoint import Checkpoint, without_conf
from headgate.statements.recovery import NO_BATCH, unlogged_batch

OWN, OTHER = "own", "other"


class Log:
    """What is asked of a checkpoint, from memory."""

    uri = "file:///checkpoint"

    def __init__(
        self, entries: Mapping[int, str], checkpoint_id: str | None = OWN, under_way: bool = False
    ) -> None:
        self._entries = entries
        self._id = checkpoint_id
        self._under_way = under_way

    def id(self) -> str | None:
        return self._id

    def planned(self) -> int | None:
        return max(self._entries, default=None)

    def entry(self, batch: int) -> str | None:
        return self._entries.get(batch)

    def is_done(self, batch: int) -> bool:
        return batch in self._entries and not (self._under_way and batch == self.planned())


def entry(batch: int, run: str = "") -> str:
    metadata = {"batchWatermarkMs": 0, "batchTimestampMs": f"{batch}{run}", "conf": {"a": "b"}}
    return "\n".join(["v1", json.dumps(metadata), json.dumps({"orders": {"0": batch * 10}})])


def marker(batch: int, run: str = "", checkpoint: str | None = OWN) -> Marker:
    return Marker(batch, checkpoint, entry(batch, run), without_conf(entry(batch - 1)) if batch else "")


def log(first: int, last: int, checkpoint_id: str | None = OWN, under_way: bool = False) -> Checkpoint:
    entries = {batch: entry(batch) for batch in range(first, last + 1)}
    return cast(Checkpoint, Log(entries, checkpoint_id, under_way))


def empty(checkpoint_id: str | None = OWN) -> Checkpoint:
    return cast(Checkpoint, Log({}, checkpoint_id))


@pytest.mark.parametrize(
    ("checkpoint", "markers"),
    [
        (empty(None), [None, None]),
        (log(0, 7), [None, None]),
        (empty(), [Marker(NO_BATCH, OWN), None]),
        (log(0, 7), [Marker(NO_BATCH, OWN), None]),
        (log(0, 7), [marker(7), marker(3)]),
        # Batch 7 is done again, as far as it is not written.
        (log(0, 7, under_way=True), [marker(7), marker(3)]),
        (log(0, 7, under_way=True), [Marker(NO_BATCH, OWN), None]),
        # The entry is gone, as Spark keeps so many: rows are rare here.
        (log(40, 60), [marker(5), None]),
        # Of a version that wrote numbers alone.
        (log(0, 7), [Marker(7), None]),
    ],
)
def test_a_log_that_covers_the_greatest_marker_goes_on(
    checkpoint: Checkpoint, markers: list[Marker | None]
) -> None:
    assert unlogged_batch(checkpoint, markers, "s") is None


def test_the_batch_after_the_last_of_the_log_is_taken_from_its_marker() -> None:
    assert unlogged_batch(log(3, 7), [marker(8), marker(2)], "s") == marker(8)


@pytest.mark.parametrize(
    ("checkpoint", "markers", "why"),
    [
        (empty(None), [marker(57), None], "is lost, and its output is there as of batch 57"),
        (empty(None), [Marker(NO_BATCH, OWN), None], "is lost"),
        (empty(), [marker(0), None], "is empty, and its output at batch 0"),
        (log(0, 7), [marker(9), marker(2)], "ends at batch 7, and its output at batch 9: it is an older"),
        # One beyond, but of a run that has read other offsets before.
        (log(0, 7), [Marker(8, OWN, entry(8), without_conf(entry(7, "b")))], "ends at batch 7"),
        (log(0, 7), [Marker(8)], "ends at batch 7"),
        (log(0, 7), [marker(6, "b"), None], "batch 6 has read other offsets"),
        (log(0, 7), [marker(6, checkpoint=OTHER)], "is another one (own) than that of its output (other)"),
        # The topic of markers was deleted.
        (log(0, 7, under_way=True), [None, None], "whether batch 7 is written is not known"),
        # Of one task: a reset that was cut off.
        (log(0, 7), [marker(6), marker(2, checkpoint=OTHER)], "is another one"),
    ],
)
def test_what_cannot_be_gone_on_with_is_refused(
    checkpoint: Checkpoint, markers: list[Marker | None], why: str
) -> None:
    with pytest.raises(StatementFailed) as refusal:
        unlogged_batch(checkpoint, markers, "s")
    assert "'s'" in str(refusal.value)
    assert why in str(refusal.value)
    assert "headgate statement reset s --from" in str(refusal.value)


def test_a_marker_comes_back_as_it_was_however_long_its_entry_is() -> None:
    offsets = json.dumps({"orders": {str(partition): 10**12 + partition for partition in range(20_000)}})
    long = Marker(3, OWN, f"v1\n{{}}\n{offsets}", f"v1\n{{}}\n{offsets}")
    for known in (Marker(4), marker(4), long):
        assert Marker.from_bytes(known.to_bytes()) == known
    assert len(long.entry) > PLAIN_BYTES
    # A broker takes a million bytes unless told otherwise.
    assert len(long.to_bytes()) < 500_000


def test_a_marker_of_a_number_alone_is_read() -> None:
    assert Marker.from_bytes(b'{"batch": 5}') == Marker(5)


def test_settings_of_spark_are_left_out_of_the_entry_before() -> None:
    told: Any = json.loads(without_conf(entry(4)).splitlines()[1])
    assert told.keys() == {"batchWatermarkMs", "batchTimestampMs"}
