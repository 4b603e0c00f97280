"""Partition fields as users write them."""

import pytest

from headgate.errors import InvalidRequest
from headgate.partition import PartitionField, parse_partition


@pytest.mark.parametrize(
    ("text", "field", "iceberg", "shown"),
    [
        ("day(at)", PartitionField("day", "at"), "day", "day(at)"),
        (" Days( at ) ", PartitionField("day", "at"), "day", "day(at)"),
        ("hour(`a b`)", PartitionField("hour", "a b"), "hour", "hour(a b)"),
        ("year(a.b)", PartitionField("year", "a.b"), "year", "year(a.b)"),
        ("bucket(16, id)", PartitionField("bucket", "id", 16), "bucket[16]", "bucket(16, id)"),
        ("truncate(4,name)", PartitionField("truncate", "name", 4), "truncate[4]", "truncate(4, name)"),
        ("country", PartitionField("identity", "country"), "identity", "country"),
        ("identity(country)", PartitionField("identity", "country"), "identity", "country"),
    ],
)
def test_fields(text: str, field: PartitionField, iceberg: str, shown: str) -> None:
    found = parse_partition(text)
    assert found == field
    assert found.iceberg_transform == iceberg
    assert str(found) == shown
    assert parse_partition(str(found)) == found


@pytest.mark.parametrize(
    "text", ["", "  ", "day()", "day(4, at)", "bucket(id)", "bucket(0, id)", "week(at)", "day(at", "at)"]
)
def test_nonsense_is_refused_with_what_would_do(text: str) -> None:
    with pytest.raises(InvalidRequest, match=r"is not a partition field\..*bucket"):
        parse_partition(text)
