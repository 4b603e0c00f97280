"""The search for the steps of leader epochs, on logs that are made up."""

from bisect import bisect_left

from hypothesis import given
from hypothesis import strategies as st

from headgate.kafka.epochs import Seen, steps


def search(log: list[Seen], start: int, end: int) -> tuple[list[Seen], int]:
    """What is found in a log of (offset, epoch), and how many records were looked at."""
    offsets = [offset for offset, _ in log]
    running, looks = steps(start, end), 0
    try:
        wanted = next(running)
        while True:
            looks += 1
            at = bisect_left(offsets, wanted)
            wanted = running.send(log[at] if at < len(log) else None)
    except StopIteration as ended:
        return ended.value, looks


def expected(log: list[Seen], start: int, end: int) -> list[Seen]:
    found: list[Seen] = []
    for offset, epoch in log:
        if start <= offset < end and (not found or found[-1][1] != epoch):
            found.append((offset if found else start, epoch))
    return found


@st.composite
def logs(draw: st.DrawFn) -> list[Seen]:
    gaps = draw(st.lists(st.integers(1, 6), max_size=60))
    growth = draw(st.lists(st.sampled_from([0, 0, 0, 0, 1, 3]), min_size=len(gaps), max_size=len(gaps)))
    offset, epoch, found = -1, 0, []
    for gap, more in zip(gaps, growth, strict=True):
        offset, epoch = offset + gap, epoch + more
        found.append((offset, epoch))
    return found


@given(logs(), st.integers(0, 40), st.integers(1, 300))
def test_the_steps_are_those_of_the_records(log: list[Seen], start: int, length: int) -> None:
    assert search(log, start, start + length)[0] == expected(log, start, start + length)


def test_one_epoch_takes_two_looks() -> None:
    log = [(offset, 7) for offset in range(1_000_000)]
    assert search(log, 10, 900_000) == ([(10, 7)], 2)


def test_a_change_takes_as_many_looks_as_there_are_doublings() -> None:
    log = [(offset, int(offset >= 400_000)) for offset in range(1_000_000)]
    found, looks = search(log, 0, 1_000_000)
    assert found == [(0, 0), (400_000, 1)]
    assert looks <= 23


def test_records_that_do_not_tell_give_no_steps() -> None:
    assert search([(0, -1), (1, -1)], 0, 2)[0] == []
