"""Queries of the lake as users type them: how each is read, and what Spark is given."""

import pytest

from headgate.errors import InvalidRequest
from headgate.sql.athena import METADATA, to_spark

ORDERS = '"AwsDataCatalog"."local"."completed_orders"'


def spark(text: str, zone: str = "UTC") -> str:
    return to_spark(text, "local", zone).text


@pytest.mark.parametrize(
    "text",
    [
        'SELECT "text", `name` FROM orders WHERE a = "it\'s" -- "x"',
        'SELECT extract(DAY FROM "2026-01-05"), trim(BOTH FROM " x ") FROM t',
        'SELECT a IS NOT DISTINCT FROM "x" AS same FROM t',
        'SELECT * FROM VALUES "a", "b" AS t(x)',
        "SELECT * FROM lake.local.`shop.orders` VERSION AS OF 12",
        "SELECT * FROM local.`shop.orders`.snapshots TIMESTAMP AS OF '2026-01-05'",
        "FROM orders SELECT count(*)",
        "SELECT * FROM orders |> WHERE id > 1",
        "SHOW TABLES",
        "DESCRIBE orders",
        "",
        "SELEC 1",
    ],
)
def test_spark_sql_stays_as_it_is_written(text: str) -> None:
    read = to_spark(text, "local")
    assert (read.text, read.writing) == (text, "spark")


@pytest.mark.parametrize(
    ("text", "given"),
    [
        (f"SELECT * FROM {ORDERS} LIMIT 10;", "SELECT * FROM `lake`.`local`.`completed_orders` LIMIT 10"),
        ('SELECT "ts" FROM "local"."a.b" AS "x"', "SELECT `ts` FROM `lake`.`local`.`a.b` AS `x`"),
        ('SELECT 1 FROM a JOIN "b" ON true', "SELECT 1 FROM a JOIN `b` ON true"),
        ('SELECT 1 FROM a, "b"', "SELECT 1 FROM a, `b`"),
        ('SELECT 1 FROM "LOCAL"."a"', "SELECT 1 FROM `lake`.`local`.`a`"),
        ('SELECT 1 FROM (SELECT 2 FROM "a")', "SELECT 1 FROM (SELECT 2 FROM `a`)"),
        ('WITH "x" AS (SELECT 1) SELECT * FROM "x"', "WITH `x` AS (SELECT 1) SELECT * FROM `x`"),
        ('SELECT "a""b", "c`d" FROM "t"', 'SELECT `a"b`, `c``d` FROM `t`'),
        ('EXPLAIN FORMATTED SELECT 1 FROM "a"', "EXPLAIN FORMATTED SELECT 1 FROM `a`"),
        (r"""SELECT 'it''s \ "x"' FROM "t" """, r"""SELECT 'it\'s \\ "x"' FROM `t` """),
        ("SELECT '\\' FROM \"t\"", "SELECT '\\\\' FROM `t`"),
        ("SELECT 1 FROM AwsDataCatalog.local.orders", "SELECT 1 FROM `lake`.`local`.`orders`"),
    ],
)
def test_double_quotes_name_things_where_one_names_a_table(text: str, given: str) -> None:
    assert spark(text) == given


@pytest.mark.parametrize(
    "travel",
    [
        "FOR SYSTEM_VERSION AS OF 123",
        "FOR VERSION AS OF 123",
        "FOR SYSTEM_TIME AS OF TIMESTAMP '2026-01-05 10:00:00'",
        "FOR TIMESTAMP AS OF TIMESTAMP '2026-01-05 10:00:00'",
        "VERSION AS OF 123",
        "TIMESTAMP AS OF '2026-01-05 10:00:00'",
    ],
)
def test_time_travel_is_written_behind_the_table(travel: str) -> None:
    named = "`lake`.`local`.`completed_orders`"
    assert (
        spark(f"SELECT count(*) AS n FROM {ORDERS} {travel}") == f"SELECT count(*) AS n FROM {named} {travel}"
    )
    assert spark(f'SELECT * FROM "t$files" {travel}') == (
        f"SELECT * FROM (SELECT * FROM `lake`.`local`.`t`.`files` {travel}) AS `t$files`"
    )


@pytest.mark.parametrize("kind", METADATA)
def test_metadata_tables_go_by_the_name_behind_the_dollar(kind: str) -> None:
    source = f"({METADATA[kind]} FROM `lake`.`local`.`a.b`.`{kind}`)"
    assert spark(f'SELECT * FROM "AwsDataCatalog"."local"."a.b${kind}"') == (
        f"SELECT * FROM {source} AS `a.b${kind}`"
    )
    assert spark(f"SELECT * FROM `a.b${kind.upper()}` AS s") == f"SELECT * FROM {source} AS s"
    assert spark(f'SELECT * FROM "a.b${kind}" s WHERE 1 = 1') == f"SELECT * FROM {source} s WHERE 1 = 1"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('SELECT * FROM "t$nothing"', r"'t\$nothing'"),
        ('SELECT * FROM "$files"', r"'\$files'"),
        ('SELECT * FROM "Other"."local"."t"', "'Other'"),
        ('SELECT * FROM "t', "not closed"),
        ("SELECT 'x", "not closed"),
        ('SELECT * FROM "t$files" FOR SYSTEM_TIME AS OF now()', "time travel"),
        ('MERGE INTO t USING (SELECT * FROM "u") ON true', "MERGE"),
    ],
)
def test_what_is_not_understood_is_refused_by_name(text: str, named: str) -> None:
    with pytest.raises(InvalidRequest, match=named):
        to_spark(text, "local")


def ranges(condition: str, zone: str = "UTC") -> tuple[str, ...]:
    return to_spark(f"SELECT * FROM t WHERE {condition}", "local", zone).ranges


def of_timestamp(condition: str, zone: str = "UTC") -> str:
    """The range of a column that is a TIMESTAMP."""
    (one,) = ranges(condition, zone)
    return one.partition("<> 'timestamp' OR (")[2].partition(")) AND (typeof")[0]


DAY = "CAST(DATE '2026-01-05' AS TIMESTAMP)"


@pytest.mark.parametrize(
    ("condition", "low", "high"),
    [
        ("date_trunc('day', ts) = DATE '2026-01-05'", f">= {DAY}", f"< date_trunc('DAY', {DAY}) + "),
        ("DATE '2026-01-05' < date_trunc('DD', ts)", f">= date_trunc('DAY', {DAY}) + ", ""),
        ("(date_trunc('week', ts)) <= '2026-01-05'", "", "< date_trunc('WEEK', CAST(TIMESTAMP '2026-01-05' "),
        ("date_trunc('hour', ts) < DATE '2026-01-05'", "", f"{DAY} - INTERVAL '0.000001' SECOND)"),
        (
            "date_trunc('day', ts) >= CURRENT_DATE - INTERVAL '7' DAY",
            "(current_date() - INTERVAL '7' DAY)",
            "",
        ),
        ("trunc(ts, 'MM') = date('2026-01-01') AND x > 2", ">= CAST(DATE '2026-01-01'", "INTERVAL '1' MONTH"),
        ("CAST(ts AS DATE) BETWEEN '2026-01-05' AND '2026-01-06'", f">= {DAY}", "'2026-01-06'"),
        ("year(ts) = 2026 AND NOT date_trunc('day', ts) = now()", ">= CAST(DATE '2026-01-01'", "'1' YEAR"),
        (
            "date_trunc('month', ts) = date_trunc('month', CURRENT_DATE)",
            ">= CAST(date_trunc('MONTH', current_date()) AS TIMESTAMP)",
            "'1' MONTH",
        ),
        ("CAST(ts AS DATE) >= trunc(now(), 'MM')", ">= CAST(trunc(current_timestamp(), 'MONTH') AS", ""),
        ("date(ts) = CAST(now() AS DATE)", ">= CAST(CAST(current_timestamp() AS DATE) AS", "'1' DAY"),
        (
            "date_trunc('day', ts) > CURRENT_DATE - INTERVAL '1' MONTH",
            "(current_date() - INTERVAL '1' MONTH)",
            "",
        ),
        ("date_trunc('day', ts) > CURRENT_DATE - 7", "(current_date() - 7)", ""),
        ("date_trunc('day', ts) > date_sub(CURRENT_DATE, 7)", "date_add(current_date(), -7)", ""),
        ("CAST(date_trunc('week', ts) AS DATE) = DATE '2026-01-05'", f">= {DAY}", "'7' DAY"),
        ("date_trunc('month', date(ts)) = DATE '2026-01-01'", ">= CAST(DATE '2026-01-01'", "'1' MONTH"),
    ],
)
def test_a_truncated_column_has_a_range(condition: str, low: str, high: str) -> None:
    text = ranges(condition)[0]
    assert low in text
    assert high in text


@pytest.mark.parametrize(
    "condition",
    [
        "NOT date_trunc('day', ts) = DATE '2026-01-05'",
        "date_trunc('day', ts) <> DATE '2026-01-05'",
        "date_trunc('day', ts) = DATE '2026-01-05' OR x = 1",
        "date_trunc('day', ts) = other",
        "date_trunc('day', ts) = date_trunc('day', other)",
        "date_trunc('day', ts) = date_trunc(unit, now())",
        "date_trunc('day', ts) = date_sub(CURRENT_DATE, days)",
        "date_trunc('day', ts) = CURRENT_DATE - INTERVAL '1-2' YEAR TO MONTH",
        "date_trunc('day', ts) = DATE '2026-01-05' + INTERVAL '99999' MONTH",
        "date_trunc('day', ts) < DATE '9998-12-31' + INTERVAL '360' DAY",
        "date_trunc('hour', date(ts)) = DATE '2026-01-05'",
        "date_trunc('month', date_trunc('week', ts)) = DATE '2026-01-05'",
        "CAST(date_trunc('hour', ts) AS DATE) = DATE '2026-01-05'",
        "date_trunc('day', f(ts)) = DATE '2026-01-05'",
        "date_trunc(unit, ts) = DATE '2026-01-05'",
        "date_trunc('fortnight', ts) = DATE '2026-01-05'",
        "trunc(ts, 'DAY') = DATE '2026-01-05'",
        "date_trunc('day', ts) = '2026-1-5'",
        "date_trunc('day', ts) = TIMESTAMP '2026-01-05 00:00:00 Europe/Berlin'",
        "CAST(ts AS DATE) = '2026-01-05 10:00:00'",
        "date_trunc('day', ts) = NULL",
        "date_trunc('day', ts) IN (SELECT d FROM days)",
        "ts = DATE '2026-01-05'",
        "id IN (SELECT id FROM u WHERE date_trunc('day', u.ts) = DATE '2026-01-05')",
        "EXISTS (SELECT 1 FROM u WHERE date_trunc('day', t.ts) = DATE '2026-01-05')",
        "date_trunc('day', ts) = ",
    ],
)
def test_a_condition_that_implies_no_range_stays_as_it_is(condition: str) -> None:
    assert ranges(condition) == ()
    text = f"SELECT * FROM t WHERE {condition}"
    assert spark(text) == text


def test_an_unknown_zone_gets_no_ranges() -> None:
    assert ranges("date_trunc('day', ts) = DATE '2026-01-05'", "Mars/Olympus") == ()


@pytest.mark.parametrize(
    ("zone", "day", "seconds"),
    [
        ("UTC", "2026-03-29", None),
        ("+05:30", "2026-03-29", None),
        ("Europe/Berlin", "2026-01-05", None),
        ("Europe/Berlin", "2026-03-29", "7200"),
        ("Australia/Lord_Howe", "2026-04-05", "3600"),
        ("Pacific/Apia", "2011-12-30", "172800"),
    ],
)
def test_a_range_is_wider_where_the_clock_changes(zone: str, day: str, seconds: str | None) -> None:
    text = of_timestamp(f"date_trunc('day', ts) = DATE '{day}'", zone)
    assert (f"INTERVAL '{seconds}' SECOND" in text) if seconds else ("SECOND" not in text)


def test_each_query_that_is_read_as_a_table_has_its_own_ranges() -> None:
    text = (
        "WITH a AS (SELECT * FROM t WHERE date_trunc('day', ts) = DATE '2026-01-05' GROUP BY ALL) "
        "SELECT * FROM (SELECT * FROM u WHERE year(at) = 2026 -- so\n) JOIN a ON true "
        "WHERE a.x = 1 UNION ALL SELECT * FROM v WHERE CAST(v.at AS DATE) IN (DATE '2026-01-05')"
    )
    first, second, third = to_spark(text, "local").ranges
    assert ("`ts`" in first, "`at`" in second, "`v`.`at`" in third) == (True, True, True)
    assert "GROUP BY ALL" in spark(text).partition(first)[2]
