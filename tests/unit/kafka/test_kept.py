"""Writers that stay open: which are opened, kept, forgotten and closed."""

from collections.abc import Sequence
from typing import Any, cast

import pytest

from headgate.errors import KafkaUnavailable, StaleBatch
from headgate.kafka.kept import KeptWriters
from headgate.kafka.markers import Marker
from headgate.kafka.transactional import Row, TransactionalWriter

ROW = Row(b"k", b"v")


class Writer:
    """A writer that remembers; it fails at batch 13, and has committed all up to `last`."""

    def __init__(self, task: int, last: int) -> None:
        self.task = task
        self.last = last
        self.written: list[int] = []

    def write(self, batch: int | Marker, topic: str, rows: Sequence[Row]) -> bool:
        number = batch.batch if isinstance(batch, Marker) else batch
        if number == 13:
            raise KafkaUnavailable("away")
        if number <= self.last:
            return False
        self.last = number
        self.written.append(number)
        return True


class Opened:
    """All writers that were opened, in order."""

    def __init__(self) -> None:
        self.all: list[Writer] = []
        self.last = -1

    def __call__(self, task: int) -> TransactionalWriter:
        self.all.append(Writer(task, self.last))
        return cast(TransactionalWriter, self.all[-1])

    @property
    def tasks(self) -> list[int]:
        return [writer.task for writer in self.all]


@pytest.fixture
def opened() -> Opened:
    return Opened()


@pytest.fixture
def writers(opened: Opened) -> KeptWriters:
    return KeptWriters("nowhere:1", "name", "markers", opened)


def test_a_task_opens_its_writer_once_and_only_when_it_has_rows(writers: KeptWriters, opened: Opened) -> None:
    assert writers.write(1, "t", {2: [ROW], 0: []}) == 1
    assert writers.write(2, "t", {}) == 0
    assert writers.write(3, "t", {0: [ROW], 2: [ROW, ROW]}) == 2
    assert opened.tasks == [2, 0]
    assert [writer.written for writer in opened.all] == [[1, 3], [3]]


def test_a_task_that_had_committed_is_left_out_and_not_counted(writers: KeptWriters, opened: Opened) -> None:
    opened.last = 5
    assert writers.write(5, "t", {0: [ROW]}) == 0
    assert writers.write(6, "t", {0: [ROW]}) == 1


def test_after_an_error_every_writer_is_opened_again(writers: KeptWriters, opened: Opened) -> None:
    writers.write(12, "t", {0: [ROW], 1: [ROW]})
    with pytest.raises(KafkaUnavailable):
        writers.write(13, "t", {0: [ROW], 1: [ROW]})
    writers.write(14, "t", {1: [ROW]})
    assert opened.tasks == [0, 1, 1]


def test_what_others_wrote_meanwhile_has_writers_opened_again(writers: KeptWriters, opened: Opened) -> None:
    writers.write(1, "t", {0: [ROW]})
    writers.forget()
    writers.write(3, "t", {0: [ROW]})
    assert opened.tasks == [0, 0]


def test_a_writer_without_work_is_closed_and_others_are_kept(
    writers: KeptWriters, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr(
        "headgate.kafka.kept.time", cast(Any, type("Clock", (), {"monotonic": lambda: now[0]}))
    )
    writers.write(1, "t", {0: [ROW], 1: [ROW]})
    now[0] = 150.0
    writers.write(2, "t", {1: [ROW]})
    now[0] = 165.0
    writers.close_idle(60)
    writers.write(3, "t", {0: [ROW], 1: [ROW]})
    assert opened.tasks == [0, 1, 0]


def test_a_batch_of_a_query_that_was_stopped_opens_no_writer(writers: KeptWriters, opened: Opened) -> None:
    writers.write(1, "t", {0: [ROW]})
    writers.close()
    with pytest.raises(StaleBatch, match="'name' are closed"):
        writers.write(2, "t", {0: [ROW]})
    assert opened.tasks == [0]
