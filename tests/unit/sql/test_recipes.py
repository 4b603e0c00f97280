"""Whole scripts of the shapes that people bring along: duplicates found and left out, orders with what was
paid for them, dimensions with versions, rows told with all that belongs to them, weeks of them. Each
statement is read and planned against the tables that those before it made."""

from dataclasses import replace

import pytest
from pyspark.sql.types import DecimalType, StructField

from headgate.sql.insert import plan_create, plan_insert
from headgate.sql.planner import Options, Plan, plan
from headgate.sql.script import parse_script
from headgate.sql.statements import (
    AlterTableAdd,
    AlterTableModifyWatermark,
    AlterTableSet,
    CreateTable,
    InsertInto,
    Select,
    SetOption,
)
from headgate.sql.tables import Catalog, TableInfo, Watermark
from tests.unit.sql.tables import BIGINT, DOUBLE, INT, MOMENT, STRING, struct

FEES = TableInfo(
    "fees",
    struct(
        ("parcel", INT),
        ("depot", INT),
        ("receipt", STRING),
        ("card", STRING),
        ("fee", DOUBLE),
        ("at", MOMENT),
    ),
)
PARCELS = TableInfo(
    "post.public.parcels",
    struct(("parcelid", INT), ("weight", DecimalType(8, 2)), ("posted", MOMENT)),
    watermark=Watermark("posted", 5_000),
)
SENDERS = TableInfo("post.cdc.sender", struct(("mail", STRING), ("name", STRING), ("changed", STRING)))
DEPOTS = TableInfo("post.cdc.depot", struct(("depot", STRING), ("city", STRING), ("changed", STRING)))
DROPS = TableInfo(
    "drops",
    struct(
        ("drop", STRING),
        ("mail", STRING),
        ("depot", STRING),
        ("due", BIGINT),
        ("pieces", INT),
        ("price", DOUBLE),
        ("made", MOMENT),
    ),
)
GRADES = TableInfo("grades", struct(("drop", STRING), ("grade", INT), ("said", STRING), ("made", MOMENT)))


class Told:
    """Carries a script out as far as plans go."""

    def __init__(self) -> None:
        tables = (FEES, PARCELS, SENDERS, DEPOTS, DROPS, GRADES)
        self.catalog = Catalog({table.name: table for table in tables})
        self.options = Options()

    def run(self, script: str) -> Plan:
        made: Plan | None = None
        for statement in parse_script(script):
            if isinstance(statement, CreateTable):
                table, made = plan_create(statement, self.catalog, self.options)
                self.catalog.tables[table.name] = table
            elif isinstance(statement, InsertInto):
                target = self.catalog.tables[statement.table]
                made = plan_insert(statement, target, self.catalog, self.options)
            elif isinstance(statement, Select):
                made = plan(statement.query, self.catalog, self.options)
            elif isinstance(statement, AlterTableModifyWatermark):
                said = statement.watermark
                table = self.catalog.tables[statement.table]
                mark = Watermark(said.column, said.delay_ms)
                self.catalog.tables[statement.table] = replace(table, watermark=mark)
            elif isinstance(statement, AlterTableAdd):
                table = self.catalog.tables[statement.table]
                columns = table.columns
                for column in statement.columns:
                    columns = columns.add(StructField(column.name, column.type.spark))
                self.catalog.tables[statement.table] = replace(table, columns=columns)
            elif isinstance(statement, AlterTableSet):
                assert statement.options == {"changelog.mode": "append"}
            else:
                assert isinstance(statement, SetOption)
                if statement.key == "sql.state-ttl":
                    assert statement.value == "1 hour"
                    self.options = Options(state_ttl_ms=3_600_000)
        assert made is not None
        return made


@pytest.fixture
def told() -> Told:
    return Told()


UNIQUE = """
SET 'client.statement-name' = 'fees-once';
SET 'sql.state-ttl' = '1 hour';
CREATE TABLE fees_once (
  parcel INT NOT NULL, depot INT, receipt STRING, card STRING, fee DOUBLE, at TIMESTAMP_LTZ(3),
  WATERMARK FOR at AS at - INTERVAL '5' SECOND
) AS SELECT COALESCE(parcel, 0) AS parcel, depot, receipt, card, fee, at
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY parcel ORDER BY at ASC) AS place FROM fees
)
WHERE place = 1;
ALTER TABLE fees MODIFY WATERMARK FOR at AS at;
ALTER TABLE fees_once MODIFY WATERMARK FOR at AS at;
"""
PAID = """
CREATE TABLE paid (
  parcel INT, fee DOUBLE, receipt STRING, at TIMESTAMP_LTZ(3), WATERMARK FOR at AS at - INTERVAL '5' SECOND
) AS
SELECT f.parcel, f.fee, f.receipt, f.at FROM fees_once f, `post.public.parcels` p
WHERE f.parcel = p.parcelid AND posted BETWEEN f.at - INTERVAL '96' HOUR AND f.at;
"""


def test_duplicates_are_found_by_a_filter_on_groups(told: Told) -> None:
    made = told.run(
        "SELECT * FROM (SELECT parcel, fee, count(*) total FROM `fees` GROUP BY parcel, fee) WHERE total > 1;"
    )
    assert (made.changelog, made.key) == ("upsert", ("parcel", "fee"))
    assert made.columns.names == ["parcel", "fee", "total"]
    having = told.run("SELECT parcel, COUNT(*) AS n FROM `fees` GROUP BY parcel HAVING COUNT(*) > 1;")
    assert having.key == ("parcel",)


def test_the_first_of_each_and_then_those_within_an_interval(told: Told) -> None:
    made = told.run(UNIQUE)
    assert (made.changelog, made.columns["parcel"].nullable) == ("append", False)
    assert "kept 1 hour of event time (sql.state-ttl)" in made.explain()
    assert told.catalog.tables["fees_once"].watermark == Watermark("at", 0)
    paid = told.run(PAID)
    assert (paid.changelog, paid.output_mode, paid.stages) == ("append", "append", ())
    assert "Join interval inner" in paid.explain()


def test_a_column_is_added_and_filled_by_another_insert(told: Told) -> None:
    told.run(UNIQUE + PAID)
    made = told.run(
        "ALTER TABLE paid ADD (way STRING);"
        "INSERT INTO paid SELECT f.parcel, f.fee, f.receipt, "
        "CASE WHEN f.card IS NOT NULL THEN 'CARD' ELSE 'UNKNOWN' END AS way, -- what is known of it\n"
        "f.at FROM fees_once f, `post.public.parcels` p "
        "WHERE f.parcel = p.parcelid AND posted BETWEEN f.at - INTERVAL '96' HOUR AND f.at;"
    )
    assert made.columns.names == ["parcel", "fee", "receipt", "at", "way"]
    assert "CASE WHEN" in made.explain()


def test_a_look_at_what_comes(told: Told) -> None:
    assert told.run("SELECT * FROM `drops` LIMIT 10;").limit == 10
    count = told.run("SELECT COUNT(*) FROM `drops` AS `ALL_DROPS`;")
    assert (count.changelog, count.key, len(count.columns.names)) == ("upsert", (), 1)


VERSIONS = """
SET 'client.statement-name' = 'senders-as-of';
-- Versions of who sends.
CREATE TABLE senders_as_of (
  PRIMARY KEY (`mail`) NOT ENFORCED,
  WATERMARK FOR `changed` AS `changed` - INTERVAL '30' SECOND
) DISTRIBUTED BY HASH(`mail`) INTO 1 BUCKETS
WITH ('changelog.mode' = 'upsert', 'kafka.cleanup-policy' = 'compact') AS
SELECT `mail`, `name`, TO_TIMESTAMP(`changed`, 'yyyy-MM-dd''T''HH:mm:ss.SSS''Z''') AS `changed`
FROM `post.cdc.sender`;

CREATE TABLE depots_as_of (
  PRIMARY KEY (`depot`) NOT ENFORCED,
  WATERMARK FOR `changed` AS `changed` - INTERVAL '30' SECOND
) DISTRIBUTED BY HASH(`depot`) INTO 1 BUCKETS
WITH ('changelog.mode' = 'upsert', 'kafka.cleanup-policy' = 'compact') AS
SELECT `depot`, `city`, TO_TIMESTAMP(`changed`, 'yyyy-MM-dd''T''HH:mm:ss.SSS''Z''') AS `changed`
FROM `post.cdc.depot`;

CREATE TABLE drops_in_time (
  WATERMARK FOR `event_time` AS `event_time` - INTERVAL '30' SECOND
) AS SELECT `drop`, `mail`, `depot`, `due`, `pieces`, `price`, `made` AS `event_time` FROM `drops`;
"""
WHOLE = """
CREATE TABLE drops_told (
  PRIMARY KEY (`drop`) NOT ENFORCED,
  WATERMARK FOR `made` AS `made` - INTERVAL '30' SECOND
) WITH ('changelog.mode' = 'upsert', 'kafka.cleanup-policy' = 'compact') AS
SELECT d.`drop`, p.`depot`, p.`city` AS `city`, d.`price` AS `price`, d.`pieces`, d.`event_time` AS `made`,
  TO_TIMESTAMP_LTZ(d.`due`, 3) AS `due`, s.`name` AS `sender`, g.`grade` AS `grade`, g.`made` AS `graded`
FROM `drops_in_time` d
  JOIN `senders_as_of` FOR SYSTEM_TIME AS OF d.`event_time` AS s
    ON s.`mail` = d.`mail`
  JOIN `depots_as_of` FOR SYSTEM_TIME AS OF d.`event_time` AS p
    ON p.`depot` = d.`depot`
  LEFT JOIN `grades` g
    ON g.`drop` = d.`drop`;
"""
WEEKS = """
CREATE TABLE depot_weeks (
  PRIMARY KEY (window_start, window_end, depot) NOT ENFORCED
) WITH ('changelog.mode' = 'upsert', 'kafka.cleanup-policy' = 'compact') AS
SELECT window_start, window_end, COALESCE(depot, 'NONE') AS depot, COALESCE(city, 'NOWHERE') AS city,
  COUNT(*) AS drops, SUM(pieces) AS pieces, SUM(price) AS earned,
  CAST(AVG(grade) AS DECIMAL(10, 2)) AS mean,
  SUM(CASE WHEN grade IS NOT NULL THEN 1 ELSE 0 END) AS grades
FROM TABLE(
  TUMBLE(TABLE `drops_told`, DESCRIPTOR(made), INTERVAL '7' DAY)
)
WHERE depot IS NOT NULL
GROUP BY window_start, window_end, COALESCE(depot, 'NONE'), COALESCE(city, 'NOWHERE');
"""


def test_rows_are_told_with_versions_and_what_is_said_of_them_later(told: Told) -> None:
    told.run(VERSIONS)
    assert told.catalog.tables["senders_as_of"].primary_key == ("mail",)
    made = told.run(WHOLE)
    assert (made.changelog, made.key, len(made.stages)) == ("upsert", ("drop",), 1)
    assert made.explain().count("Temporal join inner") == 2
    assert made.columns["due"].dataType == MOMENT


def test_weeks_of_rows_that_are_still_graded(told: Told) -> None:
    made = told.run(VERSIONS + WHOLE + WEEKS)
    assert (made.changelog, made.key) == ("upsert", ("window_start", "window_end", "depot"))
    assert made.columns["mean"].dataType == DecimalType(10, 2)
    assert any("stay open for ever" in warning for warning in made.warnings)
    shown = told.run("SELECT *\n  FROM `depot_weeks`\nLIMIT 30;")
    # Records are not rows here: who reads them counts the rows that are there.
    assert (shown.changelog, shown.limit, shown.root.limit) == ("upsert", 30, None)


def test_a_table_may_be_told_to_be_append(told: Told) -> None:
    assert told.run(VERSIONS + WHOLE + "ALTER TABLE drops_told SET ('changelog.mode' = 'append');").key == (
        "drop",
    )
