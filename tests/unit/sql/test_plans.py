"""Queries become the operators that they should: no Spark is needed to know that."""

from typing import TypeVar

import pytest

from headgate.errors import InvalidRequest
from headgate.sql import planner
from headgate.sql.operators import AssignWindows, FilterRows, Operator, ScanRows, UnionRows, UnnestRows
from headgate.sql.planner import Options, Plan
from headgate.sql.pruning import mentioned
from headgate.sql.script import parse_statement
from headgate.sql.stateful import AggregateRows, DistinctRows, JoinRows, KeepBest, KeepEarliest, KeepFirst
from headgate.sql.statements import Select
from headgate.sql.tables import SourceWatermark
from headgate.sql.types import name_of
from tests.unit.sql.tables import catalog, planned

HOUR = 3_600_000
Step = TypeVar("Step", bound=Operator)
FIRST = (
    "SELECT ride, bike FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY bike ORDER BY {}) AS n FROM "
    "{}) WHERE n = 1"
)


def steps(plan: Plan, kind: type[Operator]) -> list[Operator]:
    return [step for step in plan.root.walk() if isinstance(step, kind)]


def one(plan: Plan, kind: type[Step]) -> Step:
    (found,) = [step for step in plan.root.walk() if isinstance(step, kind)]
    return found


def shape(plan: Plan) -> list[tuple[str, str]]:
    return [(field.name, name_of(field.dataType)) for field in plan.columns.fields]


def test_columns_have_their_types_before_anything_runs() -> None:
    plan = planned(
        "SELECT ride, fare * 2 AS twice, metres / 2 AS half, speed, rider.name AS who, stops[1] AS "
        "first, CAST(began AS DATE) AS "
        "day, COALESCE(note, '-') AS note, `$rowtime`, `$offset` AS at FROM rides"
    )
    assert shape(plan) == [
        ("ride", "INT"),
        ("twice", "DECIMAL(19, 2)"),
        ("half", "BIGINT"),
        ("speed", "DOUBLE"),
        ("who", "STRING"),
        ("first", "STRING"),
        ("day", "DATE"),
        ("note", "STRING"),
        ("$rowtime", "TIMESTAMP_LTZ"),
        ("at", "BIGINT"),
    ]
    assert not plan.columns["note"].nullable
    assert (plan.changelog, plan.key, plan.output_mode, plan.stateful) == ("append", (), "append", False)
    assert [(source.table.name, source.watermark) for source in plan.sources] == [("rides", None)]


def test_star_leaves_out_the_systems_columns() -> None:
    assert "$rowtime" not in planned("SELECT * FROM rides").columns.names
    assert planned("SELECT r.*, 1 AS x FROM rides r").columns.names[-1] == "x"


def test_names_are_found_whatever_their_letters_if_that_is_clear() -> None:
    assert planned("SELECT R.Ride FROM rides R").columns.names == ["Ride"]


def test_keep_first_by_event_time_is_append() -> None:
    plan = planned(FIRST.format("began", "rides"), Options(state_ttl_ms=HOUR))
    step = one(plan, KeepFirst)
    assert step.ttl_ms == HOUR
    assert (plan.changelog, plan.output_mode) == ("append", "append")
    assert plan.sources[0].watermark == SourceWatermark("began", 5_000)
    assert plan.warnings == ()
    assert "kept 1 hour of event time (sql.state-ttl)" in plan.explain()
    # The order of rows within one batch is for Spark an order of the stream.
    assert plan.settings["spark.sql.streaming.unsupportedOperationCheck"] == "false"


def test_keep_first_without_a_watermark_waits_for_the_record_and_says_which_alter_would_help() -> None:
    plan = planned(FIRST.format("began ASC", "bare"))
    assert plan.sources[0].watermark == SourceWatermark("$rowtime", 5_000, None, False)
    step = one(plan, KeepFirst)
    assert [name.partition("#")[0] for name in (step.event, *step.by)] == [
        "$rowtime",
        "began",
        "$partition",
        "$offset",
    ]
    assert plan.changelog == "append"
    assert "ALTER TABLE bare MODIFY WATERMARK FOR `began`" in plan.warnings[0]
    assert "SET 'sql.state-ttl'" in plan.warnings[1]


def test_keep_first_by_a_time_of_the_clock_has_a_moment_beside_it() -> None:
    plan = planned(
        "SELECT id FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY id ORDER BY at) AS n FROM clocked) "
        "WHERE n = 1"
    )
    assert plan.sources[0].watermark == SourceWatermark("$event", 1_000, "CAST(`at` AS timestamp)")


@pytest.mark.parametrize("order", ["began DESC", "fare", "fare DESC", "began, ride"])
def test_other_orders_give_rows_that_change(order: str) -> None:
    plan = planned(FIRST.format(order, "rides"))
    assert one(plan, KeepBest).greatest == ("DESC" in order)
    assert (plan.changelog, plan.key, plan.output_mode) == ("upsert", ("bike",), "update")


@pytest.mark.parametrize("condition", ["n = 1", "1 = n", "n <= 1", "n < 2", "n = 1 AND fare > 3"])
def test_ways_to_say_the_first(condition: str) -> None:
    sql = FIRST.format("began", "rides").replace("n = 1", condition)
    assert len(steps(planned(sql), KeepFirst)) == 1


def test_an_interval_join_by_comma_and_by_on_are_the_same() -> None:
    comma = planned(
        "SELECT r.ride FROM rides r, `fleet.public.bikes` b WHERE r.bike = b.bike AND b.bought BETWEEN "
        "r.began - INTERVAL '96' "
        "HOUR AND r.began AND r.fare > 1"
    )
    on = planned(
        "SELECT r.ride FROM rides r JOIN `fleet.public.bikes` b ON r.bike = b.bike AND b.bought >= "
        "r.began - INTERVAL '96' HOUR "
        "AND r.began >= b.bought WHERE r.fare > 1"
    )
    for plan in (comma, on):
        bound = one(plan, JoinRows).bound
        assert bound is not None
        assert (bound.lower_ms, bound.upper_ms) == (0, 96 * HOUR)
        assert [source.watermark for source in plan.sources] == [
            SourceWatermark("began", 5_000),
            SourceWatermark("bought", 10_000),
        ]
        assert plan.warnings == ()
        assert len(steps(plan, FilterRows)) == 1
        assert "right rows until the watermark is 4 days past them" in plan.explain()


def test_a_join_without_a_watermark_is_regular_and_says_which_alter_would_bound_it() -> None:
    sql = (
        "SELECT r.ride FROM rides r JOIN `fleet.public.bikes` b ON r.bike = b.bike AND b.checked "
        "BETWEEN r.began - INTERVAL '1' "
        "HOUR AND r.began"
    )
    plan = planned(sql)
    join = one(plan, JoinRows)
    assert join.bound is None
    assert [source.watermark for source in plan.sources] == [None, None]
    assert "kept for ever" in plan.warnings[0]
    assert "ALTER TABLE `fleet.public.bikes` MODIFY WATERMARK FOR `checked`" in plan.warnings[0]
    bounded = planned(sql, Options(state_ttl_ms=HOUR))
    join = one(bounded, JoinRows)
    assert join.bound is not None
    assert (join.bound.lower_ms, join.bound.upper_ms, join.ttl_ms) == (-HOUR, HOUR, HOUR)
    assert {source.watermark.column for source in bounded.sources if source.watermark} == {"$rowtime"}


def test_a_ttl_never_shortens_an_interval_join_or_a_window() -> None:
    join = planned(
        "SELECT r.ride FROM rides r JOIN `fleet.public.bikes` b ON r.bike = b.bike AND b.bought BETWEEN "
        "r.began - INTERVAL '96' "
        "HOUR AND r.began",
        Options(state_ttl_ms=1_000),
    )
    bound = one(join, JoinRows).bound
    assert bound is not None
    assert bound.upper_ms == 96 * HOUR
    window = planned(
        "SELECT window_start, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE rides, DESCRIPTOR(began), INTERVAL "
        "'1' DAY)) GROUP BY "
        "window_start, window_end",
        Options(state_ttl_ms=1_000),
    )
    assert one(window, AssignWindows).size_ms == 24 * HOUR


@pytest.mark.parametrize(
    ("function", "kind", "size", "step"),
    [
        ("TUMBLE(TABLE rides, DESCRIPTOR(began), INTERVAL '1' HOUR)", "TUMBLE", HOUR, HOUR),
        (
            "TUMBLE(DATA => TABLE rides, TIMECOL => DESCRIPTOR(began), SIZE => INTERVAL '1' HOUR)",
            "TUMBLE",
            HOUR,
            HOUR,
        ),
        (
            "HOP(TABLE rides, DESCRIPTOR(began), INTERVAL '30' MINUTE, INTERVAL '1' HOUR)",
            "HOP",
            HOUR,
            HOUR // 2,
        ),
        (
            "CUMULATE(TABLE rides, DESCRIPTOR(began), INTERVAL '10' MINUTE, INTERVAL '1' HOUR)",
            "CUMULATE",
            HOUR,
            HOUR // 6,
        ),
    ],
)
def test_window_tables(function: str, kind: str, size: int, step: int) -> None:
    plan = planned(
        f"SELECT window_start, window_end, window_time, bike, COUNT(*) AS n, SUM(fare) AS f FROM "
        f"TABLE({function}) GROUP BY "
        "window_start, window_end, window_time, bike"
    )
    windows = one(plan, AssignWindows)
    assert (windows.kind, windows.size_ms, windows.step_ms) == (kind, size, step)
    assert shape(plan) == [
        ("window_start", "TIMESTAMP"),
        ("window_end", "TIMESTAMP"),
        ("window_time", "TIMESTAMP_LTZ"),
        ("bike", "STRING"),
        ("n", "BIGINT"),
        ("f", "DECIMAL(38, 2)"),
    ]
    assert (plan.changelog, plan.output_mode) == ("append", "append")


def test_the_older_form_of_windows() -> None:
    plan = planned(
        "SELECT TUMBLE_START(began, INTERVAL '1' HOUR) AS a, TUMBLE_END(began, INTERVAL '1' HOUR) AS b, "
        "bike, AVG(fare) AS mean FROM "
        "rides GROUP BY TUMBLE(began, INTERVAL '1' HOUR), bike"
    )
    assert one(plan, AggregateRows).window is not None
    assert shape(plan)[0] == ("a", "TIMESTAMP")
    session = planned(
        "SELECT SESSION_START(began, INTERVAL '5' MINUTE) AS a, bike, COUNT(*) AS n FROM rides GROUP BY "
        "SESSION(began, INTERVAL "
        "'5' MINUTE), bike"
    )
    gap = one(session, AggregateRows).session
    assert gap is not None
    assert gap.gap_ms == 300_000


def test_windows_of_a_zone_begin_at_its_hours() -> None:
    sql = (
        "SELECT window_start, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE rides, DESCRIPTOR(began), INTERVAL "
        "'1' DAY)) GROUP BY "
        "window_start, window_end"
    )
    assert one(planned(sql, Options(zone="Asia/Tokyo")), AssignWindows).start_ms == 15 * HOUR
    with pytest.raises(InvalidRequest, match="summer time"):
        planned(sql, Options(zone="Europe/Amsterdam"))
    assert (
        one(
            planned(sql.replace("1' DAY", "15' MINUTE"), Options(zone="Europe/Amsterdam")), AssignWindows
        ).start_ms
        == 0
    )


def test_a_window_over_the_record_time() -> None:
    plan = planned(
        "SELECT window_start, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE bare, DESCRIPTOR(`$rowtime`), "
        "INTERVAL '1' DAY)) GROUP BY "
        "window_start, window_end"
    )
    assert plan.sources[0].watermark == SourceWatermark("$rowtime", 5_000, None, False)


def test_groups_without_a_window_change() -> None:
    plan = planned("SELECT bike, COUNT(*) AS n FROM rides GROUP BY bike HAVING COUNT(*) > 1 AND bike <> ''")
    assert (plan.changelog, plan.key, plan.output_mode) == ("upsert", ("bike",), "update")
    assert "THEN 'u' ELSE 'd' END" in plan.explain()
    assert "kept for ever" in plan.explain()


def test_the_key_of_a_group_may_be_an_expression() -> None:
    plan = planned("SELECT COALESCE(bike, '?') AS b, MAX(fare) AS m FROM rides GROUP BY COALESCE(bike, '?')")
    assert plan.key == ("b",)
    assert planned("SELECT UPPER(bike) AS b, COUNT(*) AS n FROM rides GROUP BY b").key == ("b",)


def test_one_row_for_all() -> None:
    plan = planned("SELECT COUNT(*) AS n, COUNT(DISTINCT bike) AS bikes FROM rides")
    assert (plan.changelog, plan.key) == ("upsert", ())


def test_unions_find_common_types_and_keep_event_time() -> None:
    plan = planned(
        "SELECT window_start, COUNT(*) AS n FROM TABLE(TUMBLE((SELECT ride, fare, began FROM rides "
        "UNION ALL SELECT metres, speed, "
        "began FROM rides), DESCRIPTOR(began), INTERVAL '1' HOUR)) GROUP BY window_start, window_end"
    )
    assert len(steps(plan, UnionRows)) == 1
    mixed = planned("SELECT ride, fare FROM rides UNION ALL SELECT metres, speed FROM rides")
    assert shape(mixed) == [("ride", "BIGINT"), ("fare", "DOUBLE")]


def test_unnest() -> None:
    plan = planned(
        "SELECT ride, t.stop, t.place FROM rides CROSS JOIN UNNEST(stops) WITH ORDINALITY AS t(stop, place)"
    )
    assert shape(plan) == [("ride", "INT"), ("stop", "STRING"), ("place", "INT")]
    assert not one(plan, UnnestRows).outer
    left = planned("SELECT k, v FROM rides LEFT JOIN UNNEST(facts) AS t(k, v) ON TRUE")
    assert one(left, UnnestRows).outer
    comma = planned("SELECT s FROM rides, UNNEST(stops) AS t(s)")
    assert len(steps(comma, UnnestRows)) == 1


def test_views_and_ctes_are_read_in_place() -> None:
    plan = planned(
        "WITH dear AS (SELECT * FROM v WHERE fare > 5), few (r) AS (SELECT ride FROM dear) SELECT r FROM few",
        None,
        "CREATE VIEW v AS SELECT ride, fare FROM rides",
    )
    assert plan.columns.names == ["r"]
    assert len(steps(plan, ScanRows)) == 1


def test_upsert_tables_pass_their_changes_on() -> None:
    plan = planned("SELECT id, UPPER(name) AS n FROM riders WHERE name <> 'x'")
    assert (plan.changelog, plan.key, plan.output_mode) == ("upsert", ("id",), "append")


def test_distinct() -> None:
    plan = planned("SELECT DISTINCT bike FROM rides", Options(state_ttl_ms=HOUR))
    assert one(plan, DistinctRows).ttl_ms == HOUR
    assert plan.changelog == "append"


def test_a_limit_at_the_end() -> None:
    assert planned("SELECT ride FROM rides LIMIT 10").limit == 10


def test_a_key_is_never_shown() -> None:
    def secret(name: str) -> str:
        raise AssertionError("a plan needs no key")

    plan = planned("SELECT MASK_HASH(note, 'pepper') AS h FROM rides", Options(secret=secret))
    assert "<secret pepper>" in plan.explain()
    assert "secret" not in repr(Options(secret=lambda _: "hush"))


def test_rows_of_one_record_have_its_coordinates() -> None:
    assert [name for name, _ in planned("SELECT ride FROM rides").root.record] == [
        "$rowtime",
        "$partition",
        "$offset",
    ]
    assert [name for name, _ in planned("SELECT `$rowtime` FROM rides").root.record] == [
        "$partition",
        "$offset",
    ]
    assert planned(FIRST.format("began", "rides")).root.record == ()
    assert planned("SELECT ride FROM rides UNION ALL SELECT ride FROM bare").root.record == ()


def test_secrets_are_known_by_name() -> None:
    plan = planned(
        "SELECT bike, MASK_HASH(note, 'pepper') AS a FROM rides WHERE MASK_TOKEN(note, 'salt') <> 'x'"
    )
    assert plan.secrets == {"pepper", "salt"}
    assert planned("SELECT bike FROM rides").secrets == frozenset()


def test_what_is_only_passed_on_is_not_kept() -> None:
    seen = mentioned(planned(FIRST.format("began", "rides")).root)
    assert {"ride#1", "bike#1", "began#1", "$partition#1", "$offset#1"} <= seen
    assert not {"note#1", "fare#1", "$headers#1"} & seen
    inner = "SELECT *, ROW_NUMBER() OVER (PARTITION BY bike ORDER BY began) AS n FROM rides"
    used = f"SELECT ride, COALESCE(note, '-') AS note FROM ({inner}) WHERE n = 1 AND fare > 3"
    assert {"note#1", "fare#1"} <= mentioned(planned(used).root)


def at_once(order: str, key: str, record_key: tuple[str, ...], options: Options | None = None) -> Plan:
    """The first by `key` of a table without a watermark, whose records have such keys."""
    tables = catalog()
    tables.record_keys["bare"] = record_key
    sql = FIRST.format(order, "bare").replace("PARTITION BY bike", f"PARTITION BY {key}")
    statement = parse_statement(sql)
    assert isinstance(statement, Select)
    return planner.plan(statement.query, tables, options)


@pytest.mark.parametrize(
    ("order", "key", "record_key", "comes"),
    [
        ("began", "bike", ("bike",), True),
        ("began", "ride, bike", ("bike",), True),
        ("`$rowtime`", "bike", ("bike",), True),
        # Rows of one key may be in several partitions.
        ("began", "bike", ("ride",), False),
        ("began", "bike", ("bike", "ride"), False),
        ("began", "bike", (), False),
        ("began", "UPPER(bike)", ("bike",), False),
    ],
)
def test_the_first_of_a_partition_comes_at_once_where_all_rows_of_a_key_are_in_one(
    order: str, key: str, record_key: tuple[str, ...], comes: bool
) -> None:
    found = at_once(order, key, record_key)
    assert bool(steps(found, KeepEarliest)) is comes
    assert bool(steps(found, KeepFirst)) is not comes
    said = " ".join(found.warnings)
    if comes:
        assert found.sources[0].watermark is None, "nothing is late"
        assert [name for name, _ in found.root.record] == ["$rowtime", "$partition", "$offset"]
        assert "least offset" in said
        assert "MODIFY WATERMARK" in said
        assert found.in_place
    else:
        assert "waits until a later record of 'bare'" in said
        assert "PRIMARY KEY" in said
        assert "'sql.snapshot.mode' = 'now'" in said
        assert not found.in_place


def test_a_first_row_by_a_declared_time_waits_for_it() -> None:
    tables = catalog()
    tables.record_keys["rides"] = ("bike",)
    statement = parse_statement(FIRST.format("began", "rides"))
    assert isinstance(statement, Select)
    found = planner.plan(statement.query, tables)
    assert len(steps(found, KeepFirst)) == 1
    assert "when a later record moves it" in found.explain()


def test_statements_that_were_made_before_go_on_to_wait() -> None:
    found = at_once("began", "bike", ("bike",), Options(first_at_once=False))
    assert len(steps(found, KeepFirst)) == 1


def test_a_ttl_forgets_keys_that_came_at_once() -> None:
    found = at_once("began", "bike", ("bike",), Options(state_ttl_ms=HOUR))
    assert one(found, KeepEarliest).ttl_ms == HOUR
    assert found.sources[0].watermark == SourceWatermark("$rowtime", HOUR, None, False), "late no sooner"


def test_of_a_whole_topic_the_first_is_the_least_by_its_time() -> None:
    found = at_once("began", "bike", ("bike",), Options(bounded=True))
    assert one(found, KeepFirst).by[0] == "began#1"
    assert (found.warnings, found.sources[0].watermark) == ((), None)
    assert "all at once: nothing waits" in found.explain()


def test_a_plan_knows_when_all_that_it_makes_of_a_row_has_come_out() -> None:
    """The watermark for that: of a row in the first second of 1970."""

    def due(sql: str) -> int:
        return planned(sql).due_ms(1000)

    window = (
        "SELECT window_start, COUNT(*) AS n FROM TABLE({}(TABLE rides, DESCRIPTOR(began), {})) "
        "GROUP BY window_start, window_end"
    )
    hour = "INTERVAL '1' HOUR"
    assert due("SELECT ride FROM rides") == 1000
    assert due(FIRST.format("began", "rides")) == 1000
    assert due(window.format("TUMBLE", hour)) == HOUR
    assert due(window.format("HOP", f"INTERVAL '20' MINUTE, {hour}")) == HOUR
    assert due(window.format("CUMULATE", f"INTERVAL '20' MINUTE, {hour}")) == HOUR
    assert due(window.format("SESSION", hour)) == HOUR + 1000
    assert due("SELECT bike, COUNT(*) AS n FROM rides GROUP BY bike") == 1000
    bounded = (
        "SELECT r.ride, o.ride AS other FROM rides r {} rides o ON r.bike = o.bike AND o.began BETWEEN "
        "r.began - INTERVAL '1' HOUR AND r.began + INTERVAL '2' HOUR"
    )
    assert due(bounded.format("JOIN")) == 1000, "pairs wait for nothing"
    assert due(bounded.format("LEFT JOIN")) == 2 * HOUR + 1001
