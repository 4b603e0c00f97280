"""Plans over versions and rows that change: which operators, which cuts, what goes through them."""

import pytest

from headgate.errors import InvalidRequest
from headgate.sql.changes import RowChanges
from headgate.sql.durations import format_ms
from headgate.sql.insert import plan_create
from headgate.sql.planner import Options, Plan, plan
from headgate.sql.rolling import RollingRows
from headgate.sql.script import parse_statement
from headgate.sql.stateful import AggregateRows, JoinRows, KeepTop
from headgate.sql.statements import CreateTable, Select
from headgate.sql.temporal import Age, VersionJoin
from headgate.sql.updating import LatestOfBoth
from headgate.statements.runnable import tables_read
from tests.support.dimensions import CASES, FACTS


def planned(sql: str) -> Plan:
    statement = parse_statement(sql)
    assert isinstance(statement, Select)
    return plan(statement.query, FACTS)


def created(sql: str) -> Plan:
    statement = parse_statement(sql)
    assert isinstance(statement, CreateTable)
    _, made = plan_create(statement, FACTS)
    assert made is not None
    return made


def names(columns: list[str]) -> list[str]:
    return [column.rpartition("#")[0] for column in columns]


def kinds(plan: Plan) -> list[str]:
    return [type(step).__name__ for step in plan.root.walk()]


def test_temporal_joins_chain_in_one_query() -> None:
    made = planned(CASES["temporal-chain"].sql)
    joins = [step for step in made.root.walk() if isinstance(step, VersionJoin)]
    assert [join.how for join in joins] == ["inner", "inner"]
    assert (made.stages, made.changelog, made.output_mode) == ((), "append", "append")
    assert {source.table.name: source.watermark is not None for source in made.sources} == {
        "f": True,
        "c": True,
        "h": True,
    }
    assert "grows with the changes of that table" in made.explain()


@pytest.mark.parametrize(
    ("condition", "age"),
    [
        ("c.u >= f.t - INTERVAL '90' DAY", Age(90 * 86_400_000)),
        ("f.t < c.u + INTERVAL '1' HOUR", Age(3_600_000, below=True)),
        ("c.u BETWEEN f.t - INTERVAL '1' HOUR AND f.t", Age(3_600_000)),
        (
            "c.u + INTERVAL '9' SECOND >= f.t - INTERVAL '1' SECOND AND c.u > f.t - INTERVAL '10' SECOND",
            Age(10_000, below=True),
        ),
    ],
)
def test_a_bound_of_their_age_frees_versions(condition: str, age: Age) -> None:
    for how in ("", "LEFT"):
        made = planned(
            f"SELECT f.id, c.n FROM f AS f {how} JOIN c FOR SYSTEM_TIME AS OF f.t AS c "
            f"ON c.k = f.k AND {condition}"
        )
        (join,) = (step for step in made.root.walk() if isinstance(step, VersionJoin))
        assert (join.age, join.behind_ms) == (age, age.most_ms)
        assert "FilterRows" not in kinds(made)
        assert f"versions until it is {format_ms(age.most_ms)} past them" in made.explain()
        assert "kept for ever" not in made.explain()


@pytest.mark.parametrize(
    "condition",
    [
        "c.u <= f.t - INTERVAL '1' HOUR",
        "c.u >= f.t + INTERVAL '1' HOUR",
        "c.u >= f.t - INTERVAL '1' MONTH",
        "c.u >= f.t - INTERVAL '0.0005' SECOND",
        "c.n <> 'x'",
    ],
)
def test_what_is_no_bound_of_an_age_is_asked_of_the_version_that_is_found(condition: str) -> None:
    sql = f"SELECT f.id FROM f AS f {{}} JOIN c FOR SYSTEM_TIME AS OF f.t AS c ON c.k = f.k AND {condition}"
    made = planned(sql.format(""))
    (join,) = (step for step in made.root.walk() if isinstance(step, VersionJoin))
    assert join.age is None
    assert kinds(made).index("FilterRows") < kinds(made).index("VersionJoin")
    with pytest.raises(InvalidRequest, match="bound of the version's age"):
        planned(sql.format("LEFT"))


def test_a_ttl_is_a_bound_of_versions_that_have_none() -> None:
    sql = "SELECT f.id FROM f AS f JOIN c FOR SYSTEM_TIME AS OF f.t AS c ON c.k = f.k"
    for more, age in (
        ("", Age(3_600_000, ttl=True)),
        (" AND c.u >= f.t - INTERVAL '1' DAY", Age(86_400_000)),
    ):
        statement = parse_statement(sql + more)
        assert isinstance(statement, Select)
        made = plan(statement.query, FACTS, Options(state_ttl_ms=3_600_000))
        (join,) = (step for step in made.root.walk() if isinstance(step, VersionJoin))
        assert join.age == age
        assert any("sql.state-ttl" in warning for warning in made.warnings) == age.ttl


def test_what_is_left_out_anyway_is_left_out_before_versions_are_looked_up() -> None:
    made = planned("SELECT f.id FROM f AS f JOIN c FOR SYSTEM_TIME AS OF f.t AS c ON c.k = f.k WHERE f.v > 3")
    steps = kinds(made)
    assert steps.index("VersionJoin") < steps.index("FilterRows")


def test_an_updating_join_above_temporal_ones_is_a_query_of_its_own() -> None:
    made = planned(CASES["temporal-reviewed"].sql)
    assert (made.changelog, made.key, made.output_mode) == ("upsert", ("id",), "update")
    (stage,) = made.stages
    assert stage.runnable.output_mode == "append"
    assert names(stage.runnable.columns.names) == ["id", "n", "n"]
    assert names(list(stage.key)) == ["id"]
    assert [source.table.name for source in made.sources] == ["$stage1", "r"]
    assert tables_read(made) == ["c", "f", "h", "r"]
    assert any(isinstance(step, LatestOfBoth) for step in made.root.walk())


def test_windows_over_rows_that_change_take_rows_back_and_never_close() -> None:
    made = planned(CASES["windows-of-changes"].sql)
    assert (made.changelog, made.key) == ("upsert", ("window_start", "window_end", "h"))
    (stage,) = made.stages
    assert names(stage.runnable.columns.names) == ["id", "h", "v", "t", "$sign"]
    assert any(isinstance(step, RowChanges) for step in made.root.walk())
    (groups,) = (step for step in made.root.walk() if isinstance(step, AggregateRows))
    assert groups.taken_back
    assert made.output_mode == "update"
    assert any("never" in w or "stay open" in w for w in made.warnings)


def test_groups_of_groups_are_three_queries() -> None:
    made = planned(CASES["groups-of-groups"].sql)
    assert [stage.name for stage in made.stages] == ["$stage1", "$stage2"]
    assert [stage.runnable.output_mode for stage in made.stages] == ["update", "update"]


def test_a_table_with_a_part_of_the_key_has_one_row_of_each() -> None:
    made = created(
        "CREATE TABLE o (PRIMARY KEY (h) NOT ENFORCED) AS "
        "SELECT h, stars, COUNT(*) AS n FROM d GROUP BY h, stars"
    )
    assert made.key == ("h",)
    assert len(made.stages) == 3
    assert any("greatest stars" in warning for warning in made.warnings)


def test_rolling_aggregates_share_their_work() -> None:
    made = planned(CASES["rolling"].sql)
    (rolling,) = (step for step in made.root.walk() if isinstance(step, RollingRows))
    assert rolling.span_ms == 8_000
    assert len(rolling.values) == 4
    assert (made.changelog, made.output_mode, made.stages) == ("append", "append", ())


def test_top_n_is_told_apart_by_its_place() -> None:
    made = planned(CASES["top"].sql)
    assert (made.changelog, made.key) == ("upsert", ("k", "n"))
    (top,) = (step for step in made.root.walk() if isinstance(step, KeepTop))
    assert (top.most, top.greatest) == (2, True)


def test_exists_is_a_join_within_its_bound() -> None:
    for name, how in (("exists", "left_semi"), ("not-exists", "left")):
        made = planned(CASES[name].sql)
        (join,) = (step for step in made.root.walk() if isinstance(step, JoinRows))
        assert join.how == how
        assert join.bound is not None
        assert made.columns.names == ["id", "v"]


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("SELECT * FROM TABLE(TUMBLE(TABLE d, DESCRIPTOR(t), INTERVAL '1' DAY))", "are for GROUP BY"),
        (
            "SELECT h, COUNT(*) AS n FROM TABLE(SESSION(TABLE d PARTITION BY h, DESCRIPTOR(t), "
            "INTERVAL '1' DAY)) "
            "GROUP BY window_start, window_end, h",
            "SESSION over rows that change",
        ),
        (
            "SELECT d.id FROM d AS d JOIN r AS r ON r.id = d.id AND r.u BETWEEN d.t AND d.t + "
            "INTERVAL '1' DAY",
            "rows do not change",
        ),
        (
            "SELECT d.id FROM d AS d JOIN c FOR SYSTEM_TIME AS OF d.t AS c ON c.k = d.h",
            "over rows that change is not supported",
        ),
        (
            "SELECT f.id FROM f AS f JOIN c FOR SYSTEM_TIME AS OF f.v AS c ON c.k = f.k",
            "needs a column with a WATERMARK",
        ),
        ("SELECT f.id FROM f AS f RIGHT JOIN c FOR SYSTEM_TIME AS OF f.t AS c ON c.k = f.k", "RIGHT JOIN"),
        ("SELECT * FROM c FOR SYSTEM_TIME AS OF NOW()", "stands behind JOIN"),
        ("SELECT id FROM f AS f WHERE EXISTS (SELECT 1 FROM r AS r WHERE r.id = f.id)", "bound of time"),
        ("SELECT SUM(n) AS s FROM (SELECT COUNT(*) AS n FROM f)", "without a key"),
    ],
)
def test_refused(sql: str, says: str) -> None:
    with pytest.raises(InvalidRequest) as error:
        planned(sql)
    assert says.lower() in str(error.value).lower()
