"""The SQL of exports: periods put in, tables held, rows ordered; never changed otherwise."""

from datetime import UTC, datetime

import pytest

from headgate.errors import InvalidRequest
from headgate.export.schedule import Bounds
from headgate.export.sql import (
    TableName,
    at_snapshot,
    bind,
    check_incremental,
    check_sql,
    pin,
    rows_query,
    tables_of,
    unrepeatable,
)

WEEK = Bounds(datetime(2026, 11, 8, 23, tzinfo=UTC), datetime(2026, 11, 15, 23, tzinfo=UTC))
FROM, TO = "(TIMESTAMP_LTZ '2026-11-08 23:00:00.000000Z')", "(TIMESTAMP_LTZ '2026-11-15 23:00:00.000000Z')"
SALES = TableName(("local",), "sales")


def test_the_period_is_put_in_as_typed_literals() -> None:
    assert bind("SELECT * FROM t WHERE at >= :from AND at <:TO", WEEK) == (
        f"SELECT * FROM t WHERE at >= {FROM} AND at <{TO}"
    )


@pytest.mark.parametrize(
    "text",
    [
        "SELECT ':from' FROM t",
        "SELECT `:to` FROM t",
        "SELECT a FROM t -- :from",
        "SELECT a /* :to */ FROM t",
        "SELECT payload:from.id FROM t",
        "SELECT x::int, 'it''s :to' FROM t",
    ],
)
def test_what_only_looks_like_a_parameter_stays(text: str) -> None:
    assert bind(text, WEEK) == text


def test_another_parameter_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="no parameter :until"):
        bind("SELECT * FROM t WHERE at < :until", WEEK)


@pytest.mark.parametrize(
    ("text", "pinned"),
    [
        ("SELECT a FROM sales", "SELECT a FROM `lake`.`local`.`sales` VERSION AS OF 7 AS `sales`"),
        ("SELECT s.a FROM `sales` s", "SELECT s.a FROM `lake`.`local`.`sales` VERSION AS OF 7 s"),
        (
            "SELECT * FROM local.sales AS s WHERE a = 1",
            "SELECT * FROM `lake`.`local`.`sales` VERSION AS OF 7 AS s WHERE a = 1",
        ),
        (
            "WITH w AS (SELECT * FROM lake.local.sales) SELECT * FROM w, w AS v",
            "WITH w AS (SELECT * FROM `lake`.`local`.`sales` VERSION AS OF 7 AS `sales`) "
            "SELECT * FROM w, w AS v",
        ),
        (
            "SELECT a FROM sales WHERE id IN (SELECT id FROM sales) AND 'FROM sales' <> b",
            "SELECT a FROM `lake`.`local`.`sales` VERSION AS OF 7 AS `sales` WHERE id IN "
            "(SELECT id FROM `lake`.`local`.`sales` VERSION AS OF 7 AS `sales`) AND 'FROM sales' <> b",
        ),
    ],
)
def test_each_table_is_read_at_its_snapshot(text: str, pinned: str) -> None:
    assert pin(text, "local", {SALES: at_snapshot(SALES, 7)}) == pinned


def test_tables_are_told_from_names_of_the_query_itself() -> None:
    tables, own = tables_of(
        "WITH w AS (SELECT :from AS t FROM a) SELECT * FROM w JOIN dead.b ON true", "local"
    )
    assert tables == {TableName(("local",), "a"), TableName(("dead",), "b")}
    assert own == {"w"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("DELETE FROM sales", "no query"),
        ("SELECT 1", "reads no table"),
        ("SELECT 1 FROM a; SELECT 2 FROM b", "more than one"),
        ("SELECT a FROM sales ORDER BY a", "order_by"),
        ("SELECT a FROM sales)", "closed that was not opened"),
        ("SELECT (a FROM sales", "not closed"),
        ("SELECT 'a FROM sales", "not closed"),
        ('SELECT a FROM "sales"', "backticks"),
        ("SELECT * FROM sales$snapshots", "not metadata"),
        ("SELECT * FROM sales VERSION AS OF 3", "another time"),
        ("SELECT * FROM sales FOR TIMESTAMP AS OF '2026-01-01'", "another time"),
        ("SELECT * FROM sales WHERE a = :a", "no parameter"),
    ],
)
def test_what_cannot_be_an_export_is_refused(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        check_sql(text)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM sales WHERE at >= :from AND at < :to;",
        "(SELECT a FROM sales) UNION ALL (SELECT a FROM more)",
        "SELECT a, ROW_NUMBER() OVER (PARTITION BY b ORDER BY c) AS n FROM sales",
        "SELECT a FROM sales ORDER BY a LIMIT 10",
    ],
)
def test_what_can_be_an_export_is_taken(text: str) -> None:
    check_sql(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SELECT * FROM sales WHERE at >= :from", "leave :from and :to out"),
        ("SELECT * FROM orders", "names table 'sales' 0 times"),
        ("SELECT * FROM sales JOIN local.sales USING (id)", "names table 'sales' 2 times"),
    ],
)
def test_what_cannot_be_incremental_is_refused(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        check_incremental(text, "sales")
    check_incremental("SELECT * FROM `local`.`sales` JOIN towns USING (town)", "sales")


def test_rows_are_ordered_by_names_that_are_quoted() -> None:
    assert rows_query("SELECT 1", [(("a", "b`c"), "a_b`c")], ["a_b`c"]) == (
        "SELECT `$rows`.`a`.`b``c` AS `a_b``c` FROM (\nSELECT 1\n) AS `$rows` "
        "ORDER BY `a_b``c` ASC NULLS FIRST"
    )


def test_why_a_run_cannot_be_repeated_is_said() -> None:
    assert unrepeatable("SELECT `rand`, sum(a) FROM t WHERE at < :to", has_fractions=False) == []
    (reason,) = unrepeatable("SELECT sum(a) FROM t", has_fractions=True)
    assert "SUM of binary fractions" in reason
    # What is summed may leave as something else.
    as_text = "SELECT CAST(round(sum(Weight), 2) AS STRING) AS w FROM t"
    assert unrepeatable(as_text, has_fractions=False) == []
    assert unrepeatable(as_text, False, frozenset({"weight"})) == [reason]
    assert unrepeatable("SELECT string(sum(CAST(a AS DOUBLE))) FROM t", has_fractions=False) == [reason]
    framed = "SELECT sum(a) OVER (ORDER BY b ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS r, rows FROM t"
    for text, said in (
        (framed, "frame of ROWS"),
        ("SELECT a FROM t WHERE at < TIMESTAMP 'now'", "'now'"),
        ("SELECT a FROM t WHERE at < CAST(' Today' AS DATE)", "'now'"),
        ("SELECT localtimestamp AS l FROM t", "LOCALTIMESTAMP"),
        ("SELECT max_by(a, b) AS m FROM t", "MAX_BY"),
        ("SELECT a FROM t ORDER BY a LIMIT 3 OFFSET 2", "LIMIT"),
    ):
        (why,) = unrepeatable(text, has_fractions=False)
        assert said in why
    assert unrepeatable("SELECT rows FROM t WHERE word = 'today' AND d < DATE '2026-01-01'", False) == []
    found = unrepeatable("SELECT uuid(), current_date, first(a) FROM t LIMIT 5", has_fractions=False)
    assert [one.split()[0] for one in found] == ["CURRENT_DATE", "UUID", "FIRST", "LIMIT"]
