"""Where a table starts, as people write it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.errors import InvalidRequest
from headgate.model import Start, StartKind, TableSpec
from headgate.options import parse_start
from headgate.server.api.spec import TableRequest
from headgate.server.overview import start_text


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("earliest", Start(StartKind.EARLIEST)),
        ("latest", Start(StartKind.LATEST)),
        ("0:12,1:40", Start(StartKind.OFFSETS, offsets={0: 12, 1: 40})),
        ("1970-01-01T00:00:01Z", Start(StartKind.TIMESTAMP, timestamp_ms=1000)),
        ("1970-01-01T01:00:01+01:00", Start(StartKind.TIMESTAMP, timestamp_ms=1000)),
        ("1970-01-02", Start(StartKind.TIMESTAMP, timestamp_ms=86_400_000)),
        ("2026-01-31T12:00:00.123", Start(StartKind.TIMESTAMP, timestamp_ms=1_769_860_800_123)),
    ],
)
def test_starts(text: str, start: Start) -> None:
    assert parse_start(text) == start


@pytest.mark.parametrize(
    "text", ["", "soon", "0:1,", "0:-1", "0:1,0:2", "1969-12-31T00:00:00Z", "2026-13-01", "Earliest"]
)
def test_what_is_no_start_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match=r".+"):
        parse_start(text)


@given(st.dictionaries(st.integers(0, 10**4), st.integers(0, 2**63 - 1), min_size=1))
def test_offsets_are_shown_as_they_are_written(offsets: dict[int, int]) -> None:
    start = Start(StartKind.OFFSETS, offsets=offsets)

    assert parse_start(start_text(start)) == start


@given(st.integers(0, 4_102_444_800_000))
def test_times_are_shown_as_they_are_written(timestamp_ms: int) -> None:
    start = Start(StartKind.TIMESTAMP, timestamp_ms=timestamp_ms)

    assert parse_start(start_text(start)) == start


def test_a_request_of_a_topic_alone_has_the_defaults() -> None:
    assert TableRequest(topic="orders").spec() == TableSpec("orders")


def test_a_format_that_is_named_twice_counts_once() -> None:
    assert TableRequest(topic="orders", formats=["iceberg", "iceberg"]).spec() == TableSpec("orders")
