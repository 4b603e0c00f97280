"""Plans over versions and rows that change: which operators, which cuts, what goes through them."""

import pytest

from headgate.errors import InvalidRequest
from headgate.sql.changes import RowChanges
from headgate.sql.durations import format_ms
from headgate.sql.insert import plan_create
from headgate.sql.lookups import LatestPair, VersionPairs
from headgate.sql.meetings import JoinSigned
from headgate.sql.planner import Options, Plan, plan
from headgate.sql.rolling import RollingRows
from headgate.sql.script import parse_script, parse_statement
from headgate.sql.signed import KeepLeft
from headgate.sql.stateful import AggregateRows, JoinRows, KeepTop
from headgate.sql.statements import CreateTable, CreateView, Select
from headgate.sql.tables import Catalog
from headgate.sql.temporal import Age, VersionJoin
from headgate.sql.updating import LatestOfBoth
from headgate.statements.runnable import tables_read
from tests.support.changing_cases import CASES
from tests.support.dimensions import FACTS


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
        assert (join.age, join.behind_ms) == (age, 0)
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
    made = CASES["temporal-reviewed"].plan(FACTS)
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


def test_a_left_row_by_its_own_key_with_the_row_that_it_names() -> None:
    made = planned(CASES["lookup"].sql)
    assert (made.changelog, made.key, made.output_mode) == ("upsert", ("id",), "update")
    (stage,) = made.stages
    assert stage.runnable.output_mode == "append"
    assert [source.table.name for source in stage.runnable.sources] == ["d", "c"]
    assert "stars" not in names(stage.runnable.columns.names)
    (pairs,) = (step for step in made.root.walk() if isinstance(step, VersionPairs))
    (latest,) = (step for step in made.root.walk() if isinstance(step, LatestPair))
    assert (names(list(latest.keys)), latest.also, latest.how) == (["id"], None, "inner")
    assert "every version of both sides" in made.explain()
    assert pairs.state() is not None


def test_a_bound_of_time_is_a_condition_on_the_row_that_is_named() -> None:
    lookup, own = planned(CASES["lookup-left-within"].sql), planned(CASES["changes-within"].sql)
    (latest,) = (step for step in lookup.root.walk() if isinstance(step, LatestPair))
    assert latest.how == "left"
    assert latest.also is not None
    assert "INTERVAL" in latest.also.sql
    (both,) = (step for step in own.root.walk() if isinstance(step, LatestOfBoth))
    assert both.met is not None
    assert own.stages == ()
    # Event time has no part in it: nothing is late.
    assert all(source.watermark is None for source in own.sources)


def test_a_join_by_more_than_the_key_is_not_told_apart_by_what_may_change() -> None:
    made = planned("SELECT d.id, x.v FROM d AS d JOIN d AS x ON x.id = d.id AND x.h = d.h")
    assert made.key == ("id",)
    (both,) = (step for step in made.root.walk() if isinstance(step, LatestOfBoth))
    assert both.met is not None
    more = planned(
        "SELECT d.id, g.n FROM d AS d JOIN (SELECT id, h, COUNT(*) AS n FROM d GROUP BY id, h) AS "
        "g ON g.id = d.id AND g.h = d.h"
    )
    assert more.key == ("id",)
    assert any(isinstance(step, LatestPair) for step in more.root.walk())


def test_pairs_of_rows_that_change_are_told_apart_by_both_keys() -> None:
    made = planned(CASES["pairs-of-changes"].sql)
    assert (made.changelog, made.key) == ("upsert", ("id", "other"))
    (join,) = (step for step in made.root.walk() if isinstance(step, JoinSigned))
    assert join.state() == "every change of both sides; kept for ever"
    assert [stage.runnable.output_mode for stage in made.stages] == ["update", "update", "append"]


def test_a_query_that_counts_a_join_counts_every_row() -> None:
    # The facts have no key: the last of each hotel would not be all of them.
    for sql in (
        "SELECT h.n, COUNT(*) AS c FROM f AS f JOIN h AS h ON h.h = f.h GROUP BY h.n",
        "SELECT n, COUNT(*) AS c FROM (SELECT h.n FROM f AS f JOIN h AS h ON h.h = f.h) GROUP BY n",
        "WITH j AS (SELECT h.n FROM f AS f JOIN h AS h ON h.h = f.h) SELECT DISTINCT n FROM j",
    ):
        assert any(isinstance(step, JoinSigned) for step in planned(sql).root.walk())
    (view,) = parse_script("CREATE VIEW v AS SELECT h.n, f.t FROM f AS f JOIN h AS h ON h.h = f.h")
    assert isinstance(view, CreateView)
    of_a_view = parse_statement("SELECT n, COUNT(*) AS c FROM v GROUP BY n")
    assert isinstance(of_a_view, Select)
    seen = plan(of_a_view.query, Catalog(FACTS.tables, {"v": view}))
    assert any(isinstance(step, JoinSigned) for step in seen.root.walk())
    left = planned(CASES["facts-with-their-row"].sql)
    (latest,) = (step for step in left.root.walk() if isinstance(step, LatestPair))
    assert names(list(latest.keys)) == ["$partition", "$offset"]
    told = planned(
        "SELECT f.`$partition` AS p, f.`$offset` AS o, f.id, h.n FROM f AS f JOIN h AS h ON h.h = f.h AND "
        "h.u BETWEEN f.t - INTERVAL '1' DAY AND f.t"
    )
    assert told.key == ("p", "o")
    alone = "SELECT f.h, h.n FROM f AS f JOIN h AS h ON h.h = f.h"
    by_hotel = created(f"CREATE TABLE o (PRIMARY KEY (h) NOT ENFORCED) AS {alone}")
    assert by_hotel.key == ("h",)
    assert any("the same (h) the last" in warning for warning in by_hotel.warnings)
    every = planned(alone)
    assert (every.changelog, every.key) == ("retract", ())


def test_different_rows_of_those_that_change_are_told_apart_by_all_columns() -> None:
    made = planned(CASES["distinct-changes"].sql)
    assert (made.changelog, made.key) == ("upsert", ("h", "v"))
    (groups,) = (step for step in made.root.walk() if isinstance(step, AggregateRows))
    assert groups.taken_back
    assert planned("SELECT DISTINCT n FROM (SELECT h, COUNT(*) AS n FROM d GROUP BY h)").key == ("n",)


def test_the_first_of_rows_that_change_gives_its_place_to_the_next() -> None:
    one, two = planned(CASES["best-left"].sql), planned(CASES["top-left"].sql)
    assert (one.key, two.key) == (("h",), ("h", "n"))
    for made, most in ((one, 1), (two, 2)):
        (kept,) = (step for step in made.root.walk() if isinstance(step, KeepLeft))
        assert kept.most == most
        assert names(list(kept.order))[-1] == "id"
        # What tells the records of the topic between apart is no part of a row.
        assert not any(name.startswith("$") for name in kept.columns)
        assert "taken back" in made.explain()
    by = planned(
        "SELECT h, n, id FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY h ORDER BY v + 1) AS n FROM d) "
        "WHERE n <= 3"
    )
    assert "$key" in names(by.stages[0].runnable.columns.names)


def test_a_number_above_a_cut_is_made_above_it() -> None:
    made = planned(
        "SELECT k, n, v FROM (SELECT f.k, r.stars AS v, ROW_NUMBER() OVER (PARTITION BY f.k ORDER BY r.stars "
        "DESC) AS n FROM f AS f JOIN r AS r ON r.id = f.id AND "
        "r.u BETWEEN f.t AND f.t + INTERVAL '6' SECOND) WHERE n <= 2"
    )
    (stage,) = made.stages
    assert "n" not in names(stage.runnable.columns.names)


def test_rows_are_numbered_before_they_are_taken_apart() -> None:
    made = planned(
        "SELECT k, x FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY t) AS n FROM f) AS g "
        "CROSS JOIN UNNEST(ARRAY[g.h, g.k]) AS e(x) WHERE n = 1"
    )
    steps = kinds(made)
    assert steps.index("UnnestRows") < steps.index("KeepFirst")


def test_signs_go_through_unions_and_arrays() -> None:
    union, elements = planned(CASES["union-of-changes"].sql), planned(CASES["elements-of-changes"].sql)
    for made in (union, elements):
        (groups,) = (step for step in made.root.walk() if isinstance(step, AggregateRows))
        assert groups.taken_back
        assert len(made.stages) == 1
    assert all(source.watermark is None for source in union.sources)


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
            "no column tells them apart",
        ),
        (
            "SELECT f.id, h.n FROM f AS f LEFT JOIN h AS h ON h.h = f.h AND f.v > 3",
            "`$partition` and `$offset`",
        ),
        (
            "SELECT f.id, h.n FROM f AS f JOIN h AS h ON h.h = f.h AND h.u BETWEEN f.t - INTERVAL '1' DAY "
            "AND f.t",
            "Add `$partition` and `$offset`",
        ),
        ("SELECT h FROM d UNION ALL SELECT h FROM f", "UNION ALL"),
        ("SELECT x FROM d CROSS JOIN UNNEST(ARRAY[h, stars]) AS e(x)", "UNNEST"),
        (
            "SELECT h, COUNT(*) AS n FROM d GROUP BY SESSION(t, INTERVAL '1' DAY), h",
            "SESSION over rows that change",
        ),
        (
            "SELECT id, SUM(v) OVER (PARTITION BY h ORDER BY t RANGE BETWEEN INTERVAL '1' DAY PRECEDING AND "
            "CURRENT ROW) AS s FROM d",
            "An aggregate OVER (…) over rows that change is not supported",
        ),
        (
            "SELECT id FROM d AS d WHERE EXISTS (SELECT 1 FROM r AS r WHERE r.id = d.id AND "
            "u BETWEEN d.t AND d.t + INTERVAL '6' SECOND)",
            "EXISTS over rows that change is not supported",
        ),
        ("SELECT h FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY h ORDER BY v) AS n FROM d)", "`= 1`"),
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


LAST_ROW = "takes the last row of its right side for a table with a PRIMARY KEY"


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        (
            "SELECT d.id FROM d AS d LEFT JOIN r AS r ON r.id = d.id AND r.u BETWEEN d.t AND d.t + "
            "INTERVAL '1' DAY",
            LAST_ROW,
        ),
        ("SELECT f.id, r.stars FROM f AS f LEFT JOIN r AS r ON r.id = f.id AND r.stars > f.v", LAST_ROW),
        # The last row that passes is another than the last row, if that passes.
        ("SELECT f.id, r.stars FROM f AS f LEFT JOIN r AS r ON r.id = f.id WHERE r.stars > 1", LAST_ROW),
        (
            "SELECT x.id, h.n FROM (SELECT f.id, f.h FROM f LEFT JOIN r ON r.id = f.id) AS x LEFT JOIN h ON "
            "h.h = x.h",
            LAST_ROW,
        ),
        ("SELECT d.id FROM d AS d LEFT JOIN d AS x ON x.h = d.h", "by that side's whole key"),
        (
            "SELECT d.id FROM d AS d LEFT JOIN (SELECT h FROM h UNION ALL SELECT h FROM f) AS x ON x.h = d.h",
            "by that side's whole key",
        ),
    ],
)
def test_left_join_that_a_key_does_not_tell_apart_is_refused_there_only(sql: str, says: str) -> None:
    """Into a table by a key; nowhere else, since a bag of its rows is right."""
    with pytest.raises(InvalidRequest) as error:
        created(f"CREATE TABLE o (PRIMARY KEY (id) NOT ENFORCED) AS {sql}")
    assert says.lower() in str(error.value).lower()
    bag = planned(sql)
    assert (bag.changelog, bag.key) == ("retract", ())
    counted = planned(f"SELECT id, COUNT(*) AS n FROM ({sql}) GROUP BY id")
    assert (counted.changelog, counted.key) == ("upsert", ("id",))


def test_last_rows_are_of_those_that_pass_the_where() -> None:
    made = created(
        "CREATE TABLE o (PRIMARY KEY (id) NOT ENFORCED) AS SELECT f.id, r.stars FROM f LEFT JOIN r ON r.id = "
        "f.id WHERE f.v > 3"
    )
    steps = kinds(made)
    assert steps.index("LatestOfBoth") < steps.index("FilterRows")
