"""Starts that name offsets."""

import pytest

from headgate.errors import InvalidRequest
from headgate.kafka.offsets import explicit_start
from headgate.model import Topic

TOPIC = Topic("parcels", "id-1", (0, 1, 2))
EARLIEST = {0: 10, 1: 0, 2: 5}
ENDS = {0: 90, 1: 0, 2: 50}


def test_partitions_that_are_not_named_begin_at_their_earliest() -> None:
    assert explicit_start(TOPIC, {2: 20}, EARLIEST, ENDS) == {0: 10, 1: 0, 2: 20}


@pytest.mark.parametrize("offset", [10, 90])
def test_both_bounds_are_allowed(offset: int) -> None:
    assert explicit_start(TOPIC, {0: offset}, EARLIEST, ENDS)[0] == offset


@pytest.mark.parametrize("offset", [9, 91, -1])
def test_an_offset_outside_is_refused_with_the_allowed_range(offset: int) -> None:
    with pytest.raises(InvalidRequest, match=rf"Offset {offset} .* partition 0 .* from 10 to 90"):
        explicit_start(TOPIC, {0: offset, 2: 20}, EARLIEST, ENDS)


def test_a_partition_that_is_not_there_is_refused() -> None:
    with pytest.raises(InvalidRequest, match=r"no partition 3\. Its partitions are 0, 1, 2\."):
        explicit_start(TOPIC, {3: 1}, EARLIEST, ENDS)


def test_no_offsets_at_all_are_refused() -> None:
    with pytest.raises(InvalidRequest, match="names none"):
        explicit_start(TOPIC, {}, EARLIEST, ENDS)
