"""The queries of the lake as users of Athena type them, on a week of orders: what plain Python computes."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from headgate.adhoc.reading import FIGURES, Reading, reading_of
from headgate.errors import LimitReached
from headgate.sql.athena import to_spark
from headgate.statements.asking import Caller

CLUSTER = "local"
NAME = "week.of-orders"
TABLE = f'"AwsDataCatalog"."{CLUSTER}"."{NAME}"'
DAYS = 7
ROWS_OF_A_DAY = 400
TODAY = datetime.now(UTC).date()
FIRST = TODAY - timedelta(days=DAYS - 1)


@dataclass(frozen=True)
class Week:
    """A table by days, a snapshot a day, and the rows that are in it: id, amount, method, ts."""

    spark: SparkSession
    rows: list[tuple[int, float, str | None, datetime]]

    def ask(self, text: str) -> DataFrame:
        return self.spark.sql(to_spark(text, CLUSTER, "UTC").text)

    def rows_of(self, text: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self.ask(text).collect()]

    def bytes_of(self, text: str) -> int:
        frame = self.ask(text)
        frame.collect()
        return int(reading_of(frame)["bytes"])


def orders(day: date, first: int) -> list[tuple[int, float, str | None, datetime]]:
    chance = random.Random(first)
    start = datetime(day.year, day.month, day.day, tzinfo=UTC)
    return [
        (
            number,
            chance.randrange(100, 10_000) / 4,
            chance.choice(("CREDIT_CARD", "UNKNOWN", None)),
            start + timedelta(seconds=chance.randrange(86_400)),
        )
        for number in range(first, first + ROWS_OF_A_DAY)
    ]


@pytest.fixture(scope="module")
def week(spark: SparkSession) -> Iterator[Week]:
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    name = f"lake.{CLUSTER}.`{NAME}`"
    session.sql(f"CREATE NAMESPACE IF NOT EXISTS lake.{CLUSTER}")
    session.sql(f"USE lake.{CLUSTER}")
    session.sql(
        f"CREATE TABLE {name} (id BIGINT, amount DOUBLE, method STRING, ts TIMESTAMP) USING iceberg "
        "PARTITIONED BY (days(ts))"
    )
    rows = []
    for number in range(DAYS):
        batch = orders(FIRST + timedelta(days=number), number * ROWS_OF_A_DAY)
        rows += batch
        session.createDataFrame(batch, "id BIGINT, amount DOUBLE, method STRING, ts TIMESTAMP").coalesce(
            1
        ).writeTo(name).append()
    yield Week(session, rows)
    session.sql(f"DROP TABLE {name} PURGE")


def test_a_day_is_read_alone(week: Week) -> None:
    day = FIRST + timedelta(days=2)
    text = f"SELECT COUNT(*), SUM(amount) FROM {TABLE} WHERE date_trunc('day', ts) = DATE '{day}';"
    amounts = [amount for _, amount, _, ts in week.rows if ts.date() == day]
    assert week.rows_of(text) == [(len(amounts), sum(amounts))]
    whole = f"SELECT COUNT(*), SUM(amount) FROM {TABLE};"
    assert week.rows_of(whole) == [(len(week.rows), sum(row[1] for row in week.rows))]
    assert 0 < week.bytes_of(text) <= week.bytes_of(whole) / 5
    unranged = week.spark.sql(f"SELECT sum(amount) FROM `{NAME}` WHERE date_trunc('day', ts) = DATE '{day}'")
    unranged.collect()
    assert reading_of(unranged)["bytes"] == week.bytes_of(whole), (
        "Spark alone skips nothing: else drop the range"
    )


@pytest.mark.parametrize("days", [1, 3])
def test_the_last_days_are_read_alone(week: Week, days: int) -> None:
    text = (
        f"SELECT COUNT(*), SUM(amount) FROM {TABLE} "
        f"WHERE date_trunc('day', ts) >= CURRENT_DATE - INTERVAL '{days}' DAY;"
    )
    (found,) = week.rows_of(text)
    # The day may have ended since.
    wanted = [
        (len(of), sum(of))
        for today in (TODAY, TODAY + timedelta(days=1))
        for of in [[row[1] for row in week.rows if row[3].date() >= today - timedelta(days=days)]]
    ]
    assert found in wanted
    whole = week.bytes_of(f"SELECT COUNT(*), SUM(amount) FROM {TABLE}")
    assert 0 < week.bytes_of(text) <= whole * (days + 1) / DAYS * 1.05


def read_by(week: Week, text: str) -> dict[str, Any]:
    """What a query read of the one table that it reads."""
    frame = week.ask(text)
    frame.collect()
    found = reading_of(frame)
    (table,) = found["tables"]
    assert {name: table[name] for name in FIGURES} == {name: found[name] for name in FIGURES}
    return dict(table)


def test_files_are_read_or_skipped_and_together_they_are_the_snapshot(week: Week) -> None:
    day = FIRST + timedelta(days=2)
    sizes = week.rows_of(f'SELECT file_size_in_bytes, lower_bounds FROM "{NAME}$files"')
    snapshots = week.rows_of(f'SELECT snapshot_id FROM "{NAME}$snapshots" ORDER BY committed_at')
    found = read_by(week, f"SELECT SUM(amount) FROM {TABLE} WHERE date_trunc('day', ts) = DATE '{day}'")
    assert (found["table"], found["snapshot_id"]) == (f"{CLUSTER}.{NAME}", str(snapshots[-1][0]))
    assert (found["files"], found["files_skipped"], found["reason"]) == (1, DAYS - 1, None)
    assert found["bytes"] + found["bytes_skipped"] == sum(size for size, _ in sizes)

    older = read_by(week, f"SELECT SUM(amount) FROM {TABLE} FOR SYSTEM_VERSION AS OF {snapshots[2][0]}")
    assert (older["snapshot_id"], older["files"], older["files_skipped"]) == (str(snapshots[2][0]), 3, 0)


def test_counts_of_a_whole_table_read_no_file(week: Week) -> None:
    found = read_by(week, f"SELECT COUNT(*), MAX(id) FROM {TABLE}")
    assert (found["files"], found["files_skipped"], found["reason"]) == (0, DAYS, None)


def test_each_table_of_a_query_is_told(week: Week) -> None:
    day = FIRST + timedelta(days=1)
    found = read_by(
        week,
        f"WITH one AS (SELECT id FROM {TABLE} WHERE CAST(ts AS DATE) = DATE '{day}') "
        f"SELECT COUNT(*) FROM one JOIN {TABLE} AS w ON one.id = w.id WHERE w.amount > "
        f"(SELECT AVG(amount) FROM {TABLE})",
    )
    assert found["files"] >= 1 + DAYS, "each scan of it counts"
    nothing = week.ask("SELECT 1")
    nothing.collect()
    assert reading_of(nothing) == {**dict.fromkeys(FIGURES, 0), "tables": []}


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        ("", "no condition on its columns"),
        ("WHERE method IS NOT NULL", "no condition on its columns"),
        (
            "WHERE upper(method) = 'CREDIT_CARD'",
            "UPPER(method) = 'CREDIT_CARD' compares what a function",
        ),
        ("WHERE date_trunc('day', ts) = DATE '{day}' OR length(method) = 3", "is an OR"),
        ("WHERE NOT date_trunc('day', ts) = DATE '{day}'", "is a NOT"),
        ("WHERE method LIKE '%CARD'", "is a pattern without a fixed beginning"),
        ("WHERE id = amount", "compares"),
        ("WHERE method = 'CREDIT_CARD'", "each file may have rows that the condition on method asks for"),
        ("WHERE amount > 0", "the condition on amount asks for (it is partitioned by ts)"),
    ],
)
def test_why_nothing_was_skipped_is_told(week: Week, condition: str, reason: str) -> None:
    day = FIRST + timedelta(days=2)
    found = read_by(week, f"SELECT SUM(amount) FROM {TABLE} {condition.format(day=day)}")
    assert (found["files"], found["files_skipped"]) == (DAYS, 0)
    assert reason in str(found["reason"])


def test_a_query_that_would_read_too_much_does_not_run(week: Week) -> None:
    day = FIRST + timedelta(days=2)
    part, whole = f"SELECT id FROM {TABLE} WHERE CAST(ts AS DATE) = DATE '{day}'", f"SELECT id FROM {TABLE}"
    caller = Caller("'ada'", "ada", scanned=week.bytes_of(part), limits="limits.reader")
    context = week.spark.sparkContext
    context.setJobGroup("too-much", "")
    try:
        for text in (whole, f"SELECT COUNT(*) FROM ({whole} WHERE id > (SELECT AVG(id) FROM {TABLE}))"):
            reading = Reading()
            reading.attach(week.ask(text))
            with pytest.raises(LimitReached, match=r"may read \d+.*limits\.reader\.scanned"):
                reading.check_planned(caller)
        assert list(context.statusTracker().getJobIdsForGroup("too-much")) == []
        allowed = week.ask(part)
        reading = Reading()
        reading.attach(allowed)
        reading.check_planned(caller)
        assert len(allowed.collect()) == ROWS_OF_A_DAY
        reading.check_running(caller)
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]


def test_the_past_is_told_by_snapshot_and_by_time(week: Week) -> None:
    snapshots = week.rows_of(
        "SELECT made_current_at, snapshot_id, parent_id "
        f'FROM "AwsDataCatalog"."{CLUSTER}"."{NAME}$snapshots" '
        "ORDER BY made_current_at;"
    )
    assert len(snapshots) == DAYS
    assert [row[2] for row in snapshots] == [None, *(row[1] for row in snapshots[:-1])]
    for number in (0, 3, DAYS - 1):
        moment, snapshot, _ = snapshots[number]
        wanted = [((number + 1) * ROWS_OF_A_DAY,)]
        count = f"SELECT COUNT(*) AS record_count FROM {TABLE}"
        assert week.rows_of(f"{count} FOR SYSTEM_VERSION AS OF {snapshot};") == wanted
        time = f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S.%f}"
        assert week.rows_of(f"{count} FOR SYSTEM_TIME AS OF TIMESTAMP '{time}';") == wanted
        assert week.rows_of(f"SELECT count(*) FROM `{NAME}` VERSION AS OF {snapshot}") == wanted


def test_metadata_tables_have_the_columns_of_athena(week: Week) -> None:
    operations = week.rows_of(
        f'SELECT committed_at, snapshot_id, operation, summary FROM "{CLUSTER}"."{NAME}$snapshots" '
        "ORDER BY committed_at DESC;"
    )
    assert [row[2] for row in operations] == ["append"] * DAYS
    assert operations[0][3]["total-records"] == str(len(week.rows))
    partitions = week.rows_of(
        "SELECT partition, record_count, file_count "
        f'FROM "{CLUSTER}"."{NAME}$partitions" ORDER BY partition DESC;'
    )
    days = [TODAY - timedelta(days=number) for number in range(DAYS)]
    assert partitions == [((day,), ROWS_OF_A_DAY, 1) for day in days]
    (sizes,) = week.rows_of(f'SELECT sum(p.total_size), count(*) FROM "{NAME}$partitions" p')
    assert week.rows_of(f'SELECT sum(file_size_in_bytes), count(*) FROM "{NAME}$files"') == [sizes]
    history = week.rows_of(
        f'SELECT made_current_at, snapshot_id, parent_id, is_current_ancestor FROM "{NAME}$history"'
    )
    assert len(history) == DAYS
    columns = "path, length, partition_spec_id, added_snapshot_id, added_data_files_count, partitions"
    assert len(week.rows_of(f'SELECT {columns} FROM "{NAME}$manifests"')) == DAYS
    assert [row[:2] for row in week.rows_of(f'SELECT name, type FROM "{NAME}$refs"')] == [("main", "BRANCH")]
