"""Plans over rows that are taken back whole, and into tables that say so."""

import pytest

from headgate.errors import InvalidRequest
from headgate.sql.changes import RowChanges
from headgate.sql.insert import plan_create
from headgate.sql.planner import Plan, plan
from headgate.sql.script import parse_statement
from headgate.sql.stateful import AggregateRows
from headgate.sql.statements import CreateTable, Select
from headgate.sql.tables import TableInfo
from tests.support.dimensions import FACTS

RETRACT = "WITH ('changelog.mode' = 'retract')"
COUNTED = "SELECT h, COUNT(*) AS n FROM d GROUP BY h"


def planned(sql: str) -> Plan:
    statement = parse_statement(sql)
    assert isinstance(statement, Select)
    return plan(statement.query, FACTS)


def created(sql: str) -> tuple[TableInfo, Plan]:
    statement = parse_statement(sql)
    assert isinstance(statement, CreateTable)
    table, made = plan_create(statement, FACTS)
    assert made is not None
    return table, made


def test_with_a_key_rows_replace_each_other() -> None:
    made = planned("SELECT id, v FROM p WHERE v > 1")
    assert (made.changelog, made.key, made.stages) == ("upsert", ("id",), ())
    assert "Scan p (retract)" in made.explain()


def test_without_one_each_record_is_a_change() -> None:
    made = planned("SELECT h, v + 1 AS w FROM m WHERE v > 1")
    assert (made.changelog, made.key, made.stages, made.stateful) == ("retract", (), (), False)
    assert made.output_mode == "append"
    assert "Output retract" in made.explain()
    grouped = planned("SELECT h, MAX(v) AS w FROM m GROUP BY h")
    # It needs no row of before to know what is taken back.
    assert grouped.stages == ()
    (groups,) = (step for step in grouped.root.walk() if isinstance(step, AggregateRows))
    assert groups.taken_back
    assert (grouped.changelog, grouped.key) == ("upsert", ("h",))


@pytest.mark.parametrize("key", ["", "(PRIMARY KEY (h) NOT ENFORCED) "])
def test_a_result_that_changes_is_written_as_its_changes(key: str) -> None:
    table, made = created(f"CREATE TABLE o {key}{RETRACT} AS {COUNTED}")
    assert table.changelog == "retract"
    assert (made.changelog, made.output_mode) == ("retract", "update")
    changes = [step for step in made.root.walk() if isinstance(step, RowChanges)]
    # The rows of `d` as changes, and then the groups as changes.
    assert [step.kind is not None for step in changes] == [True, False]
    # The last of them stands in the query that writes.
    assert len(made.stages) == 2


def test_what_only_comes_goes_into_a_retract_table_as_it_is() -> None:
    _, made = created(f"CREATE TABLE o {RETRACT} AS SELECT id, v FROM f")
    assert (made.changelog, made.stages) == ("append", ())


def test_a_part_of_the_key_has_one_row_of_each() -> None:
    _, made = created(
        f"CREATE TABLE o (PRIMARY KEY (h) NOT ENFORCED) {RETRACT} AS "
        "SELECT h, stars, COUNT(*) AS n FROM d GROUP BY h, stars"
    )
    assert made.changelog == "retract"
    assert any("greatest stars" in warning for warning in made.warnings)


def test_the_row_need_not_show_its_key_where_nothing_is_told_by_it() -> None:
    _, made = created(f"CREATE TABLE o {RETRACT} AS SELECT COUNT(*) AS n FROM d GROUP BY h")
    assert made.columns.names == ["n"]


def test_the_only_row_of_a_result_changes_too() -> None:
    _, made = created(f"CREATE TABLE o {RETRACT} AS SELECT COUNT(*) AS n FROM f")
    (stage,) = made.stages
    # All of it goes through one partition, so that it stays in order.
    assert list(stage.key) == [name for name in stage.runnable.columns.names if name.startswith("$only")]
    assert made.columns.names == ["n"]


@pytest.mark.parametrize(
    ("sql", "key"),
    [
        ("SELECT DISTINCT h, v FROM m", ("h", "v")),
        (
            "SELECT h, n, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY h ORDER BY v) AS n FROM m) "
            "WHERE n <= 2",
            ("h", "n"),
        ),
        ("SELECT f.h, COUNT(*) AS n FROM f JOIN m ON m.h = f.h GROUP BY f.h", ("h",)),
        ("SELECT h, COUNT(*) AS n FROM (SELECT h FROM m UNION ALL SELECT h FROM f) GROUP BY h", ("h",)),
    ],
)
def test_rows_without_a_key_get_one_from_what_gathers_them(sql: str, key: tuple[str, ...]) -> None:
    made = planned(sql)
    assert (made.changelog, made.key) == ("upsert", key)


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("SELECT `$rowtime`, h FROM m", "no column '$rowtime'"),
        ("SELECT h, NOW() AS t FROM m", "time of day"),
        ("SELECT h FROM m WHERE t < NOW()", "time of day"),
        ("SELECT h, COUNT(*) FILTER (WHERE t < NOW()) AS n FROM d GROUP BY h", "time of day"),
        ("SELECT h FROM m UNION ALL SELECT h FROM f", "no column tells them apart"),
        ("SELECT f.id, m.v FROM f JOIN m ON m.id = f.id AND m.t BETWEEN f.t AND f.t", "PRIMARY KEY"),
        ("SELECT f.id FROM f JOIN m FOR SYSTEM_TIME AS OF f.t AS m ON m.id = f.id", "with a PRIMARY KEY"),
        ("SELECT h FROM m LIMIT 3", "LIMIT of rows that are taken back"),
        ("SELECT h, LISTAGG(CAST(v AS STRING)) AS l FROM m GROUP BY h", "LISTAGG over rows that change"),
        (
            "SELECT h, COUNT(*) AS n FROM TABLE(SESSION(TABLE m PARTITION BY h, DESCRIPTOR(t), "
            "INTERVAL '1' DAY)) GROUP BY window_start, window_end, h",
            "SESSION over rows that change",
        ),
    ],
)
def test_refused(sql: str, says: str) -> None:
    with pytest.raises(InvalidRequest) as error:
        planned(sql)
    assert says.lower() in str(error.value).lower()


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("CREATE TABLE o AS SELECT h, v FROM m", "'changelog.mode' = 'retract'"),
        ("CREATE TABLE o (PRIMARY KEY (h) NOT ENFORCED) AS SELECT h, v FROM m", "have no key"),
        (f"CREATE TABLE o (PRIMARY KEY (h) NOT ENFORCED) {RETRACT} AS SELECT h, v FROM m", "have no key"),
        (
            f"CREATE TABLE o (PRIMARY KEY (n) NOT ENFORCED) {RETRACT} AS {COUNTED}",
            "replace each other by (h)",
        ),
        (
            f"CREATE TABLE o (PRIMARY KEY (n) NOT ENFORCED) {RETRACT} AS SELECT COUNT(*) AS n FROM d",
            "without a key",
        ),
    ],
)
def test_refused_tables(sql: str, says: str) -> None:
    with pytest.raises(InvalidRequest) as error:
        created(sql)
    assert says.lower() in str(error.value).lower()
