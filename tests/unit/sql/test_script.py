"""Scripts become statements; what cannot be read is refused with its place."""

import pytest
from pyspark.sql.types import (
    ArrayType,
    DecimalType,
    IntegerType,
    MapType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from headgate.errors import InvalidRequest
from headgate.sql.script import parse_script, parse_statement
from headgate.sql.statements import (
    AlterTableAdd,
    AlterTableDropWatermark,
    AlterTableModifyWatermark,
    AlterTableReset,
    AlterTableSet,
    CreateTable,
    CreateView,
    Describe,
    Distribution,
    Drop,
    Explain,
    InsertInto,
    Reset,
    Select,
    SetOption,
    Show,
    StatementSet,
    WatermarkClause,
)

SCRIPT = """
-- The first ride of each bike.
SET 'client.statement-name' = 'first-rides';
SET 'sql.state-ttl' = '1 d';  -- a day
CREATE TABLE first_rides (
  ride INT NOT NULL,
  bike STRING COMMENT 'its plate',
  fare DECIMAL(8, 2),
  began TIMESTAMP_LTZ(3),
  stops ARRAY<STRING NOT NULL>,
  facts MAP<STRING, ROW<`a b` INT, c TIMESTAMP(3)>>,
  PRIMARY KEY (ride) NOT ENFORCED,
  WATERMARK FOR began AS began - INTERVAL '5' SECOND
) COMMENT 'clean'
DISTRIBUTED BY HASH(ride) INTO 4 BUCKETS
WITH ('changelog.mode' = 'upsert', 'kafka.cleanup-policy' = 'compact', 'kafka.retention.time' = '7 d')
AS SELECT COALESCE(ride, 0) AS ride, bike FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY ride ORDER BY began ASC) AS n FROM `fleet.raw.rides`
) WHERE n = 1;
/* and what it was
   made of */
SHOW CREATE TABLE `fleet.raw.rides`;
"""


def test_a_script_of_the_usual_shape() -> None:
    name, ttl, table, show = parse_script(SCRIPT)
    assert name == SetOption("client.statement-name", "first-rides")
    assert ttl == SetOption("sql.state-ttl", "1 d")
    assert show == Show("create table", "fleet.raw.rides")
    assert isinstance(table, CreateTable)
    assert table.name == "first_rides"
    assert [column.name for column in table.columns] == ["ride", "bike", "fare", "began", "stops", "facts"]
    assert [column.nullable for column in table.columns] == [False, True, True, True, True, True]
    kinds = [column.type.spark for column in table.columns]
    assert kinds[2] == DecimalType(8, 2)
    assert kinds[3] == TimestampType()
    assert table.columns[3].type.precision == 3
    assert kinds[4] == ArrayType(StringType(), False)
    assert isinstance(kinds[5], MapType)
    facts = kinds[5].valueType
    assert isinstance(facts, StructType)
    assert facts["a b"].dataType == IntegerType()
    assert facts["c"].dataType == TimestampNTZType()
    assert table.columns[1].comment == "its plate"
    assert table.primary_key == ("ride",)
    assert table.watermark == WatermarkClause("began", 5_000)
    assert table.distribution == Distribution(("ride",), 4)
    assert table.options["kafka.retention.time"] == "7 d"
    assert table.query is not None
    assert table.query.text.startswith("SELECT COALESCE(ride, 0)")
    assert table.query.text.endswith("WHERE n = 1")


def test_a_table_as_a_query_with_only_its_keys_and_watermark() -> None:
    table = parse_statement(
        "CREATE TABLE IF NOT EXISTS k (PRIMARY KEY (`a`) NOT ENFORCED, WATERMARK FOR `u` AS `u`) WITH "
        "('value.format' = "
        "'avro-registry') AS SELECT a, TO_TIMESTAMP(c, 'yyyy-MM-dd''T''HH:mm:ss.SSS''Z''') AS u FROM `x.y`"
    )
    assert isinstance(table, CreateTable)
    assert table.columns == ()
    assert table.if_not_exists
    assert table.watermark == WatermarkClause("u", 0)
    assert table.primary_key == ("a",)


@pytest.mark.parametrize(
    ("sql", "statement"),
    [
        (
            "ALTER TABLE `a.b` MODIFY WATERMARK FOR ts AS ts",
            AlterTableModifyWatermark("a.b", WatermarkClause("ts", 0)),
        ),
        (
            "ALTER TABLE t MODIFY WATERMARK FOR `$rowtime` AS `$rowtime` - INTERVAL '1' MINUTE",
            AlterTableModifyWatermark("t", WatermarkClause("$rowtime", 60_000)),
        ),
        ("ALTER TABLE t DROP WATERMARK", AlterTableDropWatermark("t")),
        ("ALTER TABLE t SET ('changelog.mode' = 'append')", AlterTableSet("t", {"changelog.mode": "append"})),
        ("ALTER TABLE t RESET ('a', 'b')", AlterTableReset("t", ("a", "b"))),
        ("DROP TABLE IF EXISTS `a.b`", Drop("table", "a.b", True)),
        ("DROP VIEW v", Drop("view", "v")),
        ("DROP STATEMENT 'a-b'", Drop("statement", "a-b")),
        ("SET", SetOption()),
        ("SET sql.state-ttl = '1 h'", SetOption("sql.state-ttl", "1 h")),
        ("RESET", Reset()),
        ("RESET 'sql.state-ttl'", Reset("sql.state-ttl")),
        ("SHOW TABLES LIKE 'a%'", Show("tables", like="a%")),
        ("SHOW STATEMENTS", Show("statements")),
        ("SHOW FUNCTIONS", Show("functions")),
        ("DESCRIBE EXTENDED t", Describe("t", True)),
        ("DESC `a.b`", Describe("a.b")),
    ],
)
def test_short_statements(sql: str, statement: object) -> None:
    assert parse_statement(sql + ";") == statement


def test_added_columns() -> None:
    found = parse_statement("ALTER TABLE t ADD (method STRING COMMENT 'how', n DECIMAL(4, 1))")
    assert isinstance(found, AlterTableAdd)
    assert [(c.name, str(c.type), c.comment) for c in found.columns] == [
        ("method", "STRING", "how"),
        ("n", "DECIMAL(4, 1)", None),
    ]


def test_inserts_and_sets_of_them() -> None:
    insert, several = parse_script(
        "INSERT INTO `a.b` (x, y) SELECT 1, 2 FROM t; EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT "
        "* FROM b; "
        "INSERT INTO c SELECT * FROM b; END;"
    )
    assert isinstance(insert, InsertInto)
    assert (insert.table, insert.columns, insert.query.text) == ("a.b", ("x", "y"), "SELECT 1, 2 FROM t")
    assert isinstance(several, StatementSet)
    assert [one.table for one in several.inserts] == ["a", "c"]


def test_views_explains_and_selects() -> None:
    view, explained, selected = parse_script(
        "CREATE VIEW v (a, b) AS SELECT x, y FROM t; EXPLAIN SELECT x FROM t; WITH q AS (SELECT 1 AS a "
        "FROM t) SELECT a FROM q"
    )
    assert isinstance(view, CreateView)
    assert view.columns == ("a", "b")
    assert isinstance(explained, Explain)
    assert isinstance(explained.inner, Select)
    assert isinstance(selected, Select)
    assert selected.query.text.startswith("WITH q AS")


def test_semicolons_and_comments_in_texts_and_names_are_nothing() -> None:
    found = parse_script("SELECT 'a;b -- c' AS `x;y` FROM `t--u`; -- end; SELECT\n")
    assert len(found) == 1


@pytest.mark.parametrize(
    ("sql", "place", "says"),
    [
        ("SELECT a FROM", "Line 1", ""),
        ("SET 'a' = 'b';\nSELEC a FROM t", "Line 2, column 5", "'SELEC' begins no statement"),
        ("CREATE TABLE t (a INTT)", "Line 1, column 22", "'INTT' is not a type"),
        ("CREATE TABLE t (a TIME)", "Line 1", "keep it as STRING or INT"),
        ("CREATE TABLE t (a DECIMAL(50, 2))", "Line 1", "1 to 38 digits"),
        ("CREATE TABLE t (a INT, A STRING)", "Line 1", "'A' is there twice"),
        ("CREATE TABLE t (a INT, PRIMARY KEY (a))", "Line 1", "NOT ENFORCED"),
        ("CREATE TABLE t (a INT) WITH ('x' = '1', 'x' = '2')", "Line 1", "'x' is set twice"),
        ("CREATE TABLE t", "Line 1", "has no columns"),
        ("CREATE TABLE t (a INT, b AS a + 1)", "Line 1", "'b' is computed"),
        (
            "CREATE TABLE t (w TIMESTAMP(3), WATERMARK FOR w AS w + INTERVAL '1' SECOND)",
            "Line 1",
            "less a time",
        ),
        ("CREATE TABLE t (w TIMESTAMP(3), WATERMARK FOR w AS w - INTERVAL '1' MONTH)", "Line 1", "no months"),
        ("CREATE FUNCTION f AS 'x'", "Line 1", "CREATE FUNCTION is not known"),
        ("ALTER TABLE t RENAME TO u", "Line 1", "ALTER TABLE knows ADD"),
        ("ALTER TABLE t ADD (a INT NOT NULL)", "Line 1", "must be nullable"),
        ("INSERT OVERWRITE t SELECT 1 FROM u", "Line 1", "only added to"),
        ("INSERT INTO t VALUES (1)", "Line 1", "VALUES"),
        ("SELECT a FROM t; DELETE FROM t", "Line 1", "'DELETE' begins no statement"),
        ("DROP DATABASE x", "Line 1", "DROP knows TABLE, VIEW and STATEMENT"),
        ("SHOW DATABASES", "Line 1", "SHOW knows TABLES"),
        ("SELECT * FROM a.b; SELECT 1 FROM", "Line 1", ""),
        ("DESCRIBE a.b", "Line 1", "in backticks"),
        ("EXPLAIN SET 'a' = 'b'", "Line 1", "EXPLAIN takes"),
        ("SELECT * FROM t\nMATCH_RECOGNIZE (PARTITION BY a)", "Line 2", "MATCH_RECOGNIZE is not supported"),
        ("EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT * FROM b;", "Line 1", "has no END"),
        ("EXECUTE STATEMENT SET BEGIN SELECT * FROM b; END;", "Line 1", "holds INSERT INTO"),
        (
            "SELECT * FROM TABLE(FILL(TABLE t, DESCRIPTOR(c), INTERVAL '1' DAY))",
            "Line 1",
            "FILL is not known",
        ),
        ("SELECT * FROM TABLE(TUMBLE(TABLE t, INTERVAL '1' DAY))", "Line 1", "DESCRIPTOR"),
        ("SELECT JSON_VALUE(a, '$.b' WITH WRAPPER) FROM t", "Line 1", "does not know 'WITH'"),
        ("SELECT CAST(a INT) FROM t", "Line 1", "Expected AS"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_place(sql: str, place: str, says: str) -> None:
    with pytest.raises(InvalidRequest) as error:
        parse_script(sql)
    assert place in str(error.value)
    assert says in str(error.value)


def test_an_open_quote() -> None:
    with pytest.raises(InvalidRequest, match="Close every quote"):
        parse_script("SELECT 'a FROM t")


def test_nothing_is_given_when_one_statement_cannot_be_read() -> None:
    with pytest.raises(InvalidRequest):
        parse_script("SET 'a' = 'b'; NONSENSE;")


def test_no_statements() -> None:
    assert parse_script(" ; -- nothing\n;; ") == []
