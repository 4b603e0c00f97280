"""What comes out of queries that keep no state, of tables that change, and of rows that are not as they
should be."""

from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql.types import (
    ArrayType,
    IntegerType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from headgate.sql.functions.masks import pads
from headgate.sql.insert import plan_insert
from headgate.sql.planner import Options, Plan, plan
from headgate.sql.script import parse_statement
from headgate.sql.statements import InsertInto, Select
from headgate.sql.tables import Catalog, TableInfo, Watermark
from tests.integration.sql.running import Data, Running, final
from tests.support.queries import at, clock

PARTS = TableInfo(
    "parts",
    StructType(
        [
            StructField("id", IntegerType()),
            StructField("name", StringType()),
            StructField("tags", ArrayType(StringType())),
            StructField("sizes", MapType(StringType(), IntegerType())),
            StructField(
                "lines",
                ArrayType(StructType([StructField("n", IntegerType()), StructField("what", StringType())])),
            ),
            StructField("made", TimestampNTZType()),
            StructField("sold", TimestampType()),
        ]
    ),
    watermark=Watermark("made", 1_000),
)
OWNERS = TableInfo(
    "owners",
    StructType([StructField("id", IntegerType(), False), StructField("name", StringType())]),
    ("id",),
    "upsert",
)
TABLES = Catalog({table.name: table for table in (PARTS, OWNERS)})
ROWS: list[dict[str, Any]] = [
    {
        "id": 1,
        "name": "bolt",
        "tags": ["a", "b"],
        "sizes": {"x": 1},
        "lines": [{"n": 1, "what": "p"}, {"n": 2, "what": "q"}],
        "made": clock(0),
        "sold": at(3600),
    },
    {"id": 2, "name": None, "tags": [], "sizes": None, "lines": None, "made": clock(5), "sold": at(5)},
    {"id": 3, "name": "nut", "tags": None, "sizes": {"y": 2}, "lines": [], "made": clock(7), "sold": at(0)},
]
DATA: Data = {"parts": [ROWS]}


def planned(sql: str, options: Options | None = None) -> Plan:
    statement = parse_statement(sql)
    assert isinstance(statement, Select)
    return plan(statement.query, TABLES, options)


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT id, t.tag FROM parts CROSS JOIN UNNEST(tags) AS t(tag)", [(1, "a"), (1, "b")]),
        (
            "SELECT id, t.tag FROM parts LEFT JOIN UNNEST(tags) AS t(tag) ON TRUE",
            [(1, "a"), (1, "b"), (2, None), (3, None)],
        ),
        (
            "SELECT id, tag, n FROM parts CROSS JOIN UNNEST(tags) WITH ORDINALITY AS t(tag, n)",
            [(1, "a", 1), (1, "b", 2)],
        ),
        ("SELECT id, k, v FROM parts, UNNEST(sizes) AS t(k, v)", [(1, "x", 1), (3, "y", 2)]),
        ("SELECT id, n, what FROM parts CROSS JOIN UNNEST(lines) AS t(n, what)", [(1, 1, "p"), (1, 2, "q")]),
        ("SELECT id FROM parts WHERE made < sold", [(1,)]),
        ("SELECT id FROM parts WHERE name <> 'nut'", [(1,)]),
        (
            "SELECT id, `$partition` AS p, `$offset` AS o FROM parts WHERE `$offset` > 0",
            [(2, 1, 1), (3, 0, 2)],
        ),
        (
            "WITH few AS (SELECT id, name FROM parts WHERE id > 1) SELECT COALESCE(name, '?') AS n FROM few",
            [("?",), ("nut",)],
        ),
        (
            "SELECT DATE_FORMAT(FLOOR(made TO HOUR), 'HH:mm') AS h, UPPER(name) AS n FROM parts WHERE "
            "name IS NOT NULL",
            [("00:00", "BOLT"), ("00:00", "NUT")],
        ),
    ],
)
def test_rows(running: Running, sql: str, rows: list[tuple[Any, ...]]) -> None:
    assert sorted(running.batch(planned(sql), DATA), key=repr) == sorted(rows, key=repr)


def test_aggregates(running: Running) -> None:
    sql = (
        "SELECT 1 AS one, COUNT(*) AS n, COUNT(name) AS named, MIN(id) AS least, MAX(id) AS most, "
        "AVG(id) AS mean, FIRST_VALUE(name) "
        "AS first, LAST_VALUE(name) AS last, LISTAGG(name, '+') AS names, ARRAY_AGG(id) AS ids, "
        "COUNT(*) FILTER (WHERE id > 1) "
        "AS more, SUM(id) AS s, VAR_POP(id) AS v FROM parts"
    )
    made = planned(sql)
    # Partition 0 has offsets 0 and 2, partition 1 has offset 1.
    assert running.batch(made, DATA) == [
        (1, 3, 2, 1, 3, 2.0, "bolt", "nut", "bolt+nut", [1, 3, 2], 2, 6, pytest.approx(2 / 3), "u")
    ]


def test_tables_that_change_pass_their_changes_on(running: Running) -> None:
    made = planned("SELECT id, UPPER(name) AS n FROM owners WHERE name <> 'x'")
    changes: list[dict[str, Any]] = [
        {"id": 1, "name": "ann", "$op": "u"},
        {"id": 2, "name": "bo", "$op": "u"},
        {"id": 1, "name": "x", "$op": "u"},
        {"id": 2, "name": None, "$op": "d"},
        {"id": 3, "name": "cy", "$op": "u"},
    ]
    rows = running.stream(made, {"owners": [changes[:2], changes[2:]]})
    assert final(made, rows) == {(3,): (3, "CY")}


def test_null_for_a_column_that_is_not_null_says_which_record_it_was(running: Running) -> None:
    target = TableInfo(
        "named", StructType([StructField("id", IntegerType()), StructField("name", StringType(), False)])
    )
    statement = parse_statement("INSERT INTO named SELECT id, name FROM parts")
    assert isinstance(statement, InsertInto)
    made = plan_insert(statement, target, TABLES)
    with pytest.raises(PySparkException) as error:
        running.batch(made, DATA)
    assert "column 'name' of table 'named' is NOT NULL, and a row has NULL: partition 1, offset 1" in str(
        error.value
    )


def test_a_key_is_in_no_error(running: Running) -> None:
    key = "do-not-show-me"
    made = planned(
        "SELECT CAST(MASK_HASH(name, 'pepper') AS INT) AS n FROM parts", Options(secret=lambda _: key)
    )
    with pytest.raises(PySparkException) as error:
        running.batch(made, DATA)
    shown = str(error.value) + made.explain()
    assert "CAST" in shown
    for part in (key, *(pad.hex() for pad in pads(key)), *(pad.hex().upper() for pad in pads(key))):
        assert part not in shown


def test_a_row_without_a_time_stops_a_keep_first(running: Running) -> None:
    made = planned(
        "SELECT id FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY id ORDER BY made) AS n "
        "FROM parts) WHERE n = 1"
    )
    rows: list[dict[str, Any]] = [{"id": 1, "made": clock(0)}, {"id": 2, "made": None}]
    with pytest.raises(PySparkException, match="a row has no time"):
        running.stream(made, {"parts": [rows]})


def test_times_of_the_clock_are_event_times_too(running: Running) -> None:
    made = planned(
        "SELECT window_start, window_time, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE parts, "
        "DESCRIPTOR(made), INTERVAL '5' SECOND)) "
        "GROUP BY window_start, window_end, window_time"
    )
    ends = [[{"id": 9, "made": clock(10_000)}], [{"id": 9, "made": clock(20_000)}]]
    rows = running.stream(made, {"parts": [ROWS, *ends]})
    assert sorted(rows)[:2] == [(clock(0), clock(4.999), 1), (clock(5), clock(9.999), 2)]


def test_the_sessions_zone(running: Running) -> None:
    made = planned(
        "SELECT id, CAST(sold AS TIMESTAMP(3)) AS here, CAST(made AS TIMESTAMP_LTZ(3)) AS m, made < "
        "sold AS later, "
        "TO_TIMESTAMP('2026-03-29 02:30:00', 'yyyy-MM-dd HH:mm:ss') AS gap FROM parts WHERE id = 1",
        Options(zone="Europe/Amsterdam"),
    )
    ((_, here, moment, later, gap),) = running.batch(made, DATA)
    assert here == datetime(2026, 3, 1, 2, 0)
    assert moment.astimezone(UTC) == datetime(2026, 2, 28, 23, 0, tzinfo=UTC)
    assert later
    # An hour that the zone's clocks skip: a TIMESTAMP has it all the same.
    assert gap == datetime(2026, 3, 29, 2, 30)


def test_rows_of_one_record_have_its_coordinates(running: Running) -> None:
    made = planned("SELECT id, `$offset` AS mine FROM parts WHERE id = 2")
    session = running.session(made)
    rows = made.build(lambda source: running.scan(session, source, DATA, False))
    assert rows.columns == ["id", "mine", "$rowtime", "$partition", "$offset"]
    assert [tuple(row)[:2] + tuple(row)[3:] for row in rows.collect()] == [(2, 1, 1, 1)]
