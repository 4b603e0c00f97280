"""Why no file was skipped, told from the conditions of a scan."""

from typing import Any

import pytest

from headgate.adhoc.skipping import Scan, why_nothing_skipped

COLUMNS: Any = {"ts": "partition", "amount": "statistics", "note": "nothing"}


def why(pushed: str = "", *conditions: str, files: int = 7, skipped: int = 0) -> str | None:
    return why_nothing_skipped(Scan(files, skipped, pushed, conditions, COLUMNS))


def test_there_is_no_reason_where_files_were_skipped_or_there_are_none() -> None:
    assert why("amount > 1", skipped=2) is None
    assert why(files=0) is None


def test_one_file_is_said_to_be_one() -> None:
    assert why("amount > 1", files=1) == "the table is one file"


@pytest.mark.parametrize("pushed", ["", "name IS NOT NULL", "(ts IS NOT NULL AND amount IS NOT NULL)"])
def test_without_a_condition_that_is_the_reason(pushed: str) -> None:
    assert why(pushed) == "no condition on its columns"
    assert why(pushed, "isnotnull(amount)", "amount IS NOT NULL") == "no condition on its columns"


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("(upper(lake.local.orders.name) = 'A')", "UPPER(name) = 'A' compares what a function makes"),
        ("(amount = 1 OR length(name) = 2)", "is an OR: LENGTH(name) = 2 compares what a function makes"),
        ("NOT (amount = 1)", "is a NOT, which rules out no range"),
        ("(amount <> 1)", "is a NOT, which rules out no range"),
        ("name LIKE '%x'", "a pattern without a fixed beginning"),
        ("endswith(name, 'x')", "a pattern without a fixed beginning"),
        ("contains(name, 'x')", "a pattern without a fixed beginning"),
        ("RLIKE(name, 'x')", "is not a comparison of a column with a constant"),
        ("(lake.local.orders.a = lake.local.orders.b)", "a = b compares columns with each other"),
        ("(CAST(date_trunc('DAY', ts) AS DATE) IN (DATE '2026-01-05'))", "compares what a function makes"),
        ("((a + 1) BETWEEN 2 AND 3)", "compares what a function makes of a column"),
        ("size(filter(tags, lambdafunction(x > 1, x)))) > ((", "is not a range of a column"),
    ],
)
def test_a_condition_that_is_no_range_is_named(condition: str, said: str) -> None:
    reason = why("amount IS NOT NULL", "isnotnull(amount)", condition)
    assert reason is not None
    assert said in reason
    assert "lake.local" not in reason


def test_each_reason_is_said_once() -> None:
    assert (why("", "a = b AND a = b") or "").count("compares") == 1


def test_a_range_that_rules_out_no_file_says_by_what_the_table_is_kept() -> None:
    reason = why("amount > 1, amount IS NOT NULL")
    assert reason == (
        "each file may have rows that the condition on amount asks for (it is partitioned by ts)"
    )
    assert "no partitions" in str(why_nothing_skipped(Scan(7, 0, "a = 1", (), {"a": "statistics"})))


def test_columns_without_statistics_are_named() -> None:
    assert why("note = 'amount > 1'") == "files have no statistics of note"


def test_names_within_other_names_are_not_taken_for_them() -> None:
    known: Any = {"a": "statistics", "a.b": "nothing"}
    assert why_nothing_skipped(Scan(7, 0, "a.b = 1", (), known)) == "files have no statistics of a.b"
