"""What users say of a table, wherever they say it."""

import pytest
from pydantic import ValidationError

from headgate.errors import InvalidRequest
from headgate.model import Metadata, OnError, RecordFormat, TableSpec
from headgate.options import TableOptions


def test_what_is_not_said_stays() -> None:
    before = TableSpec("t", freshness_seconds=30, on_error=OnError.LOG, partition=("day(a)",))
    after = TableOptions(freshness="5s").apply(before)
    assert after == TableSpec("t", freshness_seconds=5, on_error=OnError.LOG, partition=("day(a)",))


def test_all_of_it() -> None:
    said = TableOptions.model_validate(
        {
            "from": "latest",
            "on_error": "log",
            "dead_letters": "bad",
            "value_format": "json",
            "value_columns": "a bigint",
            "key_format": "string",
            "metadata": ["offset", "headers"],
            "partition": ["Days(at)", "bucket(4,a)"],
            "renames": {"a": "b"},
        }
    )
    spec = said.apply(TableSpec("t", renames={"x": "y"}))
    assert spec.value_format is RecordFormat.JSON
    assert spec.metadata == (Metadata.OFFSET, Metadata.HEADERS)
    assert spec.partition_fields == ("day(at)", "bucket(4, a)")
    assert spec.renames == {"x": "y", "a": "b"}
    assert spec.dead_letters_name == "bad"
    assert TableSpec.from_dict(spec.to_dict()) == spec


@pytest.mark.parametrize(
    ("metadata", "found"),
    [(["all"], tuple(Metadata)), (["none"], ()), (["key", "key"], (Metadata.KEY,))],
)
def test_metadata(metadata: list[str], found: tuple[Metadata, ...]) -> None:
    assert TableOptions(metadata=metadata).apply(TableSpec("t")).metadata == found


def test_the_default_partition_is_a_day() -> None:
    assert TableSpec("t").partition_fields == ("day(_kafka_timestamp)",)
    assert TableSpec("t", event_time="at").partition_fields == ("day(at)",)
    assert TableSpec("t", metadata=()).partition_fields == ()
    assert TableOptions(partition=["none"]).apply(TableSpec("t")).partition_fields == ()
    own = TableSpec("t", partition=("hour(x)",))
    assert TableOptions(partition=["default"]).apply(own).partition_fields == ("day(_kafka_timestamp)",)


@pytest.mark.parametrize(
    ("said", "what"),
    [
        ({"on_error": "ignore"}, "error policy 'ignore'.*suspend, skip, log"),
        ({"value_format": "xml"}, "value format 'xml'"),
        ({"metadata": ["size"]}, "metadata column 'size'"),
        ({"partition": ["week(a)"]}, "'week\\(a\\)' is not a partition field"),
        ({"value_format": "json"}, "lacks its columns"),
        ({"key_columns": "a int"}, "takes no columns"),
        ({"value_format": "none"}, "must be read somehow"),
        ({"freshness": "0.5s"}, "too small"),
    ],
)
def test_what_makes_no_sense_is_refused(said: dict[str, object], what: str) -> None:
    with pytest.raises(InvalidRequest, match=what):
        TableOptions.model_validate(said).apply(TableSpec("t"))


def test_unknown_options_are_refused() -> None:
    with pytest.raises(ValidationError):
        TableOptions.model_validate({"partitions": ["day(a)"]})


def test_a_table_keeps_what_its_rows_were_made_by() -> None:
    TableOptions(freshness="5s", partition=["day(a)"]).check_alterable("t")
    with pytest.raises(InvalidRequest, match="cannot be altered: from, value_format"):
        TableOptions.model_validate({"from": "latest", "value_format": "json"}).check_alterable("t")


def test_a_spec_of_an_earlier_version_is_as_it_was() -> None:
    """Stored before there were partitions and metadata columns: it has none."""
    old = {
        "topic": "t",
        "formats": ["iceberg"],
        "mode": "append",
        "start": {"kind": "earliest"},
        "freshness_seconds": 10.0,
        "flush_bytes": 1,
        "on_error": "suspend",
    }
    spec = TableSpec.from_dict(old)
    assert (spec.metadata, spec.partition_fields) == ((), ())
