"""INSERT INTO and CREATE TABLE … AS: columns, types, NULLs and keys are judged before anything runs."""

from dataclasses import replace

import pytest
from pyspark.sql.types import DecimalType, StructField, StructType

from headgate.errors import InvalidRequest
from headgate.sql.insert import plan_create, plan_insert
from headgate.sql.planner import Options, Plan
from headgate.sql.script import parse_statement
from headgate.sql.stateful import KeepBest, KeepFirst
from headgate.sql.statements import CreateTable, InsertInto
from headgate.sql.tables import TableInfo, Watermark
from headgate.sql.types import name_of
from tests.unit.sql.tables import BIGINT, CLOCK, DOUBLE, INT, MOMENT, STRING, catalog, struct

TARGET = TableInfo(
    "clean",
    StructType([StructField("ride", INT, False), StructField("bike", STRING), StructField("fare", DOUBLE)]),
)
KEYED = TableInfo("keyed", struct(("bike", STRING), ("n", BIGINT)), ("bike",), "upsert")


def insert(sql: str, target: TableInfo = TARGET, options: Options | None = None) -> Plan:
    statement = parse_statement(sql)
    assert isinstance(statement, InsertInto)
    return plan_insert(statement, target, catalog(), options)


def create(sql: str) -> tuple[TableInfo, Plan | None]:
    statement = parse_statement(sql)
    assert isinstance(statement, CreateTable)
    return plan_create(statement, catalog())


def values(plan: Plan) -> dict[str, str]:
    return {name: value.sql for name, value in plan.root.columns}


def test_by_name_when_the_names_are_the_tables() -> None:
    plan = insert("INSERT INTO clean SELECT speed AS fare, bike, COALESCE(ride, 0) AS ride FROM rides")
    assert plan.columns.names == ["ride", "bike", "fare"]
    assert "speed" in values(plan)["fare"]
    (notice,) = plan.warnings
    assert "(fare, bike, ride)" in notice
    assert "by name, not by position" in notice
    same = insert("INSERT INTO clean SELECT COALESCE(ride, 0) AS ride, bike, speed AS fare FROM rides")
    listed = insert("INSERT INTO clean (fare, bike, ride) SELECT ride AS fare, bike, 1 AS ride FROM rides")
    assert (same.warnings, listed.warnings) == ((), ())


def test_else_by_position() -> None:
    plan = insert("INSERT INTO clean SELECT COALESCE(ride, 0), note, speed FROM rides")
    assert plan.columns.names == ["ride", "bike", "fare"]
    assert plan.warnings == ()
    assert "note" in values(plan)["bike"]


def test_by_the_columns_that_are_listed() -> None:
    plan = insert("INSERT INTO clean (fare, ride) SELECT speed, COALESCE(ride, 1) FROM rides")
    assert values(plan)["bike"] == "CAST(NULL AS string)"


def test_numbers_become_wider_by_themselves() -> None:
    assert (
        "CAST" in values(insert("INSERT INTO clean SELECT COALESCE(ride, 0), bike, ride FROM rides"))["fare"]
    )


def test_null_is_caught_when_it_comes_with_its_coordinate() -> None:
    sql = values(insert("INSERT INTO clean SELECT ride, bike, speed FROM rides"))["ride"]
    assert "raise_error" in sql
    assert "column \\'ride\\' of table \\'clean\\' is NOT NULL" in sql
    assert "$offset" in sql


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        (
            "INSERT INTO clean SELECT bike, bike, speed FROM rides",
            "Column 'ride' of table 'clean' is INT, the query gives STRING",
        ),
        ("INSERT INTO clean SELECT metres, bike, speed FROM rides", "CAST(… AS INT)"),
        ("INSERT INTO clean SELECT ride, bike FROM rides", "The query has 2 columns (ride, bike), and 3"),
        ("INSERT INTO clean (ride, nope) SELECT ride, bike FROM rides", "has no column 'nope'"),
        ("INSERT INTO clean (ride, ride) SELECT ride, ride FROM rides", "twice"),
        ("INSERT INTO clean SELECT ride, bike, speed FROM rides LIMIT 5", "LIMIT has no place"),
        ("INSERT INTO clean SELECT ride, bike, AVG(speed) FROM rides GROUP BY ride, bike", "is append-only"),
    ],
)
def test_refused(sql: str, says: str) -> None:
    with pytest.raises(InvalidRequest) as error:
        insert(sql)
    assert says in str(error.value)


def test_rows_that_change_go_to_a_table_with_the_same_key() -> None:
    plan = insert("INSERT INTO keyed SELECT bike, COUNT(*) FROM rides GROUP BY bike", KEYED)
    assert (plan.changelog, plan.key) == ("upsert", ("bike",))
    with pytest.raises(InvalidRequest, match="replace each other by"):
        insert("INSERT INTO keyed SELECT note AS bike, COUNT(*) AS n FROM rides GROUP BY note, ride", KEYED)
    with pytest.raises(InvalidRequest, match="Add GROUP BY"):
        insert("INSERT INTO keyed SELECT MAX(bike) AS bike, COUNT(*) AS n FROM rides", KEYED)


def test_a_table_by_another_key_than_its_sources_is_keyed_again() -> None:
    named = "CREATE TABLE n (PRIMARY KEY (name) NOT ENFORCED) AS SELECT name, id FROM riders"
    table, plan = create(named)
    assert plan is not None
    assert (table.primary_key, plan.changelog, plan.key) == (("name",), "upsert", ("name",))
    assert len(plan.stages) == 1
    assert "a row whose name changes is deleted where it was" in plan.warnings[0]
    # Without its own key nobody knows which row it was.
    with pytest.raises(InvalidRequest, match="replace each other by"):
        create(named.replace(", id", ", UPPER(name) AS other"))


def test_rows_that_do_not_change_may_go_to_a_keyed_table() -> None:
    assert (
        insert("INSERT INTO keyed SELECT COALESCE(bike, ''), metres FROM rides", KEYED).changelog == "append"
    )


def test_moments_and_clocks_are_not_mixed_up() -> None:
    target = TableInfo("times", struct(("m", MOMENT), ("c", CLOCK)))
    insert("INSERT INTO times SELECT began, noted FROM rides", target)
    with pytest.raises(InvalidRequest, match="is TIMESTAMP_LTZ, the query gives TIMESTAMP"):
        insert("INSERT INTO times SELECT noted, noted FROM rides", target)


def test_a_table_as_a_query() -> None:
    table, plan = create(
        "CREATE TABLE paid (PRIMARY KEY (ride) NOT ENFORCED, WATERMARK FOR began AS began - INTERVAL "
        "'3' SECOND) AS SELECT ride, "
        "fare, began FROM rides"
    )
    assert plan is not None
    assert [(f.name, name_of(f.dataType), f.nullable) for f in table.columns.fields] == [
        ("ride", "INT", False),
        ("fare", "DECIMAL(8, 2)", True),
        ("began", "TIMESTAMP_LTZ", True),
    ]
    assert (table.changelog, table.primary_key) == ("upsert", ("ride",))
    assert table.watermark == Watermark("began", 3_000)
    assert "raise_error" in values(plan)["ride"]


def test_a_table_with_all_its_columns_as_a_query() -> None:
    table, plan = create(
        "CREATE TABLE paid (ride INT NOT NULL, fare DECIMAL(10, 2), began TIMESTAMP_LTZ(3)) AS SELECT "
        "COALESCE(ride, 0) AS ride, fare, "
        "began FROM rides"
    )
    assert table.columns["fare"].dataType == DecimalType(10, 2)
    assert table.changelog == "append"
    assert plan is not None
    assert plan.columns == table.columns or plan.columns.names == table.columns.names


def test_a_table_alone() -> None:
    table, plan = create("CREATE TABLE t (a INT, b TIMESTAMP(3), WATERMARK FOR `$rowtime` AS `$rowtime`)")
    assert plan is None
    assert table.watermark == Watermark("$rowtime", 0)


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("CREATE TABLE t (a INT, PRIMARY KEY (b) NOT ENFORCED)", "PRIMARY KEY of table 't' names 'b'"),
        (
            "CREATE TABLE t (a INT) DISTRIBUTED BY HASH(b) INTO 2 BUCKETS",
            "DISTRIBUTED BY of table 't' names 'b'",
        ),
        ("CREATE TABLE t (a INT, WATERMARK FOR a AS a)", "WATERMARK is on 'a', which is INT"),
        ("CREATE TABLE t (a INT) WITH ('changelog.mode' = 'upsert')", "has no key"),
        ("CREATE TABLE t (a INT) WITH ('changelog.mode' = 'both')", "'append', 'upsert' or 'retract'"),
        ("CREATE TABLE t AS SELECT bike, COUNT(*) AS n FROM rides GROUP BY bike", "is append-only"),
        ("CREATE TABLE t AS SELECT NULL AS a FROM rides", "has no type"),
    ],
)
def test_refused_tables(sql: str, says: str) -> None:
    with pytest.raises(InvalidRequest) as error:
        create(sql)
    assert says in str(error.value)


FIRST = (
    "SELECT bike, metres AS n FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY {} ORDER BY began) AS nth "
    "FROM {}) WHERE nth = 1"
)


@pytest.mark.parametrize(
    ("query", "replaced"),
    [
        (FIRST.format("bike", "bare"), True),
        (FIRST.format("bike", "bare") + " AND fare > 3", True),
        (f"SELECT * FROM ({FIRST.format('bike', 'bare')})", True),
        # Not by the table's key.
        (FIRST.format("bike, metres", "bare"), False),
        # Somebody said how late rows may come.
        (FIRST.format("bike", "rides"), False),
        # What is made of the rows would be another one each time.
        (f"SELECT bike, COUNT(*) AS n FROM ({FIRST.format('bike', 'bare')}) GROUP BY bike", False),
        (f"SELECT UPPER(bike) AS bike, n FROM ({FIRST.format('bike', 'bare')})", False),
    ],
)
def test_a_first_row_is_replaced_by_a_lesser_one_in_a_table_of_its_key(query: str, replaced: bool) -> None:
    found = insert(f"INSERT INTO keyed {query}", KEYED)
    kinds = [type(step) for step in found.root.walk()]
    assert (KeepBest in kinds, KeepFirst in kinds) == (replaced, not replaced)
    if replaced:
        assert (found.changelog, found.key) == ("upsert", ("bike",))
        assert not any("waits" in warning for warning in found.warnings)
    _, made = create(f"CREATE TABLE k (bike STRING, n BIGINT, PRIMARY KEY (bike) NOT ENFORCED) AS {query}")
    assert made is not None
    assert (KeepBest in [type(step) for step in made.root.walk()]) is replaced


@pytest.mark.parametrize(
    "query",
    [
        "SELECT 1, CAST(NOW() AS STRING), speed FROM rides",
        "SELECT 1, bike, speed FROM rides WHERE began < CURRENT_TIMESTAMP",
        "SELECT 1, bike, UNIX_TIMESTAMP() FROM rides",
        "SELECT 1, bike, MAX(speed) FROM rides WHERE CURRENT_DATE > CAST(began AS DATE) GROUP BY bike",
    ],
)
def test_what_ends_has_no_clock(query: str) -> None:
    target = replace(TARGET, primary_key=("bike",), changelog="upsert")
    insert(f"INSERT INTO clean {query}", target)
    with pytest.raises(InvalidRequest, match="something else each time") as refused:
        insert(f"INSERT INTO clean {query}", target, Options(bounded=True))
    assert "RESET 'sql.snapshot.mode'" in refused.value.remedy
    plain = (
        "INSERT INTO clean SELECT 1, CAST(UNIX_TIMESTAMP(CAST(began AS STRING)) AS STRING), speed FROM rides"
    )
    insert(plain, options=Options(bounded=True))
    words = "INSERT INTO clean SELECT 1, CONCAT('it''s now() \\', bike, ' rand()'), speed FROM rides"
    insert(words, options=Options(bounded=True))
