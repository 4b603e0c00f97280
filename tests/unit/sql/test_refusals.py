"""What cannot be planned is refused by name, with what would work; it never runs as something else."""

import pytest
from sqlglot import exp

from headgate.errors import InvalidRequest
from headgate.sql.expressions import Compiler
from headgate.sql.functions import FUNCTIONS, Session
from headgate.sql.planner import Options
from headgate.sql.scope import Scope
from headgate.sql.typed import string
from tests.unit.sql.tables import planned

WINDOW = (
    "FROM TABLE(TUMBLE(TABLE rides, DESCRIPTOR(began), INTERVAL '1' HOUR)) GROUP BY window_start, window_end"
)


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("SELECT nope FROM rides", "no column 'nope'"),
        ("SELECT rid FROM rides", "Is it 'ride'?"),
        ("SELECT ride FROM ridez", "Is it 'rides'?"),
        (
            "SELECT b.bike FROM rides r JOIN rides b ON r.ride = b.ride WHERE bike = 'x'",
            "'bike' is ambiguous",
        ),
        ("SELECT bike FROM fleet.public.bikes", "written in backticks"),
        ("SELECT FOO(ride) FROM rides", "function FOO is not known"),
        ("SELECT LENGTH(bike) FROM rides", "write CHAR_LENGTH"),
        ("SELECT UUID() FROM rides", "tried again would have other values"),
        ("SELECT PROCTIME() FROM rides", "PROCTIME is not supported"),
        ("SELECT UPPER(ride) FROM rides", "must be a STRING"),
        ("SELECT UPPER() FROM rides", "UPPER has 0 arguments"),
        ("SELECT DATE_FORMAT(began, 'YYYY-MM') FROM rides", "write yyyy"),
        ("SELECT DATE_FORMAT(began, bike) FROM rides", "written down"),
        ("SELECT EXTRACT(MILLENNIUM FROM began) FROM rides", "EXTRACT does not know MILLENNIUM"),
        ("SELECT CAST(began AS BIGINT) FROM rides", "EXTRACT(EPOCH FROM t)"),
        ("SELECT CAST(metres AS TIMESTAMP(3)) FROM rides", "TO_TIMESTAMP_LTZ"),
        ("SELECT ride / 0 FROM rides", "divided by 0"),
        ("SELECT ride + bike FROM rides", "takes numbers"),
        ("SELECT began - noted FROM rides", "TIMESTAMPDIFF"),
        ("SELECT ride = bike FROM rides", "no type in common"),
        ("SELECT CASE WHEN ride THEN 1 END FROM rides", "a condition is expected"),
        ("SELECT ride FROM rides WHERE ride", "a condition is expected"),
        ("SELECT stops[0] FROM rides", "1 is the first"),
        ("SELECT ride[1] FROM rides", "has no elements"),
        ("SELECT rider.age FROM rides", "no field 'age'"),
        ("SELECT facts = facts FROM rides", "MAPs cannot be compared"),
        ("SELECT JSON_VALUE(note, '$.a[*]') FROM rides", "without wildcards"),
        ("SELECT ride FROM rides WHERE EXISTS (SELECT 1 FROM bare)", "needs an equality and a bound of time"),
        ("SELECT ride FROM rides WHERE ride IN (SELECT ride FROM bare)", "IN takes a list"),
        ("SELECT (SELECT ride FROM bare) FROM rides", "a query as a value"),
        ("SELECT note SIMILAR TO 'a' FROM rides", "REGEXP(s, pattern)"),
        ("SELECT note ILIKE 'a' FROM rides", "LOWER(s) LIKE"),
        ("SELECT ride FROM rides ORDER BY ride", "ORDER BY is not supported"),
        ("SELECT ride FROM (SELECT ride FROM rides LIMIT 3)", "LIMIT inside a query"),
        ("SELECT ride FROM rides LIMIT 3 OFFSET 2", "OFFSET is not supported"),
        ("SELECT ride FROM rides UNION SELECT ride FROM bare", "Write UNION ALL"),
        ("SELECT ride FROM rides EXCEPT SELECT ride FROM bare", "EXCEPT is not supported"),
        ("SELECT ride, bike FROM rides UNION ALL SELECT ride FROM bare", "UNION ALL of 2 and 1"),
        ("SELECT ride FROM rides UNION ALL SELECT bike FROM bare", "no type in common"),
        (
            "SELECT ride FROM rides QUALIFY ROW_NUMBER() OVER (PARTITION BY bike ORDER BY began) = 1",
            "QUALIFY",
        ),
        ("SELECT ride FROM rides TABLESAMPLE (10 PERCENT)", "TABLESAMPLE is not supported"),
        ("WITH RECURSIVE r AS (SELECT ride FROM r) SELECT ride FROM r", "RECURSIVE"),
        ("SELECT DISTINCT ON (ride) ride FROM rides", "DISTINCT ON"),
        ("SELECT 1", "FROM is missing"),
        ("SELECT a FROM (VALUES (1)) AS t(a)", "VALUES"),
        ("SELECT ride, SUM(fare) OVER (PARTITION BY bike) FROM rides", "ordered by one column of time"),
        (
            "SELECT ride, SUM(fare) OVER (PARTITION BY bike ORDER BY began ROWS BETWEEN 3 PRECEDING "
            "AND CURRENT ROW) "
            "AS s FROM rides",
            "ROWS BETWEEN is not supported",
        ),
        ("SELECT ride, SUM(fare) OVER w AS s FROM rides", "no WINDOW w"),
        (
            "SELECT ride, SUM(fare) OVER (PARTITION BY bike ORDER BY noted) AS s FROM rides",
            "with a WATERMARK",
        ),
        ("SELECT ride, ROW_NUMBER() OVER (ORDER BY began) AS n FROM rides", "needs PARTITION BY"),
        (
            "SELECT ride, ROW_NUMBER() OVER (PARTITION BY bike ORDER BY began) AS n FROM rides",
            "`= 1` must stand",
        ),
        (
            "SELECT ride FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY bike ORDER BY began) AS n FROM "
            "rides) WHERE n <= 3",
            "which is not among its columns",
        ),
        (
            "SELECT ride FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY bike ORDER BY began NULLS "
            "LAST) AS n FROM rides) "
            "WHERE n = 1",
            "NULL is the least value",
        ),
        (
            "SELECT ride FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY bike ORDER BY began, fare "
            "DESC) AS n FROM rides) "
            "WHERE n = 1",
            "goes one way",
        ),
        ("SELECT r.ride FROM rides r JOIN bare b ON r.fare > b.fare", "needs an equality"),
        ("SELECT r.ride FROM rides r CROSS JOIN bare b", "needs an equality"),
        ("SELECT r.ride FROM rides r RIGHT JOIN bare b ON r.ride = b.ride", "would wait for ever"),
        ("SELECT ride FROM rides JOIN bare USING (ride)", "USING"),
        ("SELECT ride FROM rides NATURAL JOIN bare", "NATURAL JOIN"),
        ("SELECT r.ride FROM rides r LEFT SEMI JOIN bare b ON r.ride = b.ride", "SEMI JOIN is not supported"),
        (
            "SELECT r.ride FROM rides r JOIN riders FOR SYSTEM_TIME AS OF r.began AS d ON r.note = d.name",
            "needs an equality with each column of the PRIMARY KEY",
        ),
        ("SELECT r.ride FROM rides r FULL JOIN riders d ON r.ride = d.id", "FULL JOIN of rows that change"),
        ("SELECT d.id FROM riders d JOIN rides r ON r.note = d.name", "no column tells them apart"),
        ("SELECT r.ride FROM rides r JOIN riders d ON r.note = d.name", "no column tells them apart"),
        (
            "SELECT r.ride FROM rides r JOIN bare FOR SYSTEM_TIME AS OF r.began AS d ON r.ride = d.ride",
            "takes a table with a PRIMARY KEY",
        ),
        (
            "SELECT r.ride FROM bare r JOIN riders FOR SYSTEM_TIME AS OF r.began AS d ON r.ride = d.id",
            "needs a column with a WATERMARK",
        ),
        ("SELECT LISTAGG(name) AS n FROM riders", "LISTAGG over rows that change"),
        ("SELECT name FROM riders", "replace each other by id"),
        ("SELECT ride, bike FROM rides GROUP BY ride", "neither in GROUP BY nor in an aggregate"),
        ("SELECT COUNT(*) AS n FROM rides GROUP BY bike", "replace each other by bike"),
        ("SELECT * FROM rides GROUP BY ride", "do not go together"),
        ("SELECT ride FROM rides GROUP BY 1", "not their places"),
        ("SELECT ride FROM rides GROUP BY GROUPING SETS ((ride), ())", "GROUPING SETS is not supported"),
        ("SELECT ride FROM rides WHERE COUNT(*) > 1", "COUNT is an aggregate"),
        ("SELECT ride, SUM(MAX(fare)) AS s FROM rides GROUP BY ride", "aggregate of an aggregate"),
        ("SELECT ride, SUM(bike) AS s FROM rides GROUP BY ride", "SUM takes a number"),
        ("SELECT ride, SUM(DISTINCT fare) AS s FROM rides GROUP BY ride", "SUM(DISTINCT …) is not supported"),
        (
            "SELECT id FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY name ORDER BY id) AS n FROM riders) "
            "WHERE n = 1",
            "replace each other by name",
        ),
        (
            "SELECT window_start, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE bare, DESCRIPTOR(began), "
            "INTERVAL '1' HOUR)) GROUP BY "
            "window_start, window_end",
            "ALTER TABLE bare MODIFY WATERMARK FOR `began`",
        ),
        (f"SELECT window_start, COUNT(*) AS n {WINDOW.replace('began', 'bike')}", "takes a column of time"),
        (f"SELECT window_start, COUNT(*) AS n {WINDOW.replace('1', '0')}", "more than 0"),
        (WINDOW.replace("FROM", "SELECT window_start FROM").replace("HOUR", "MONTH"), "fixed length of time"),
        (
            "SELECT window_start FROM TABLE(HOP(TABLE rides, DESCRIPTOR(began), INTERVAL '7' MINUTE, "
            "INTERVAL '1' HOUR)) GROUP "
            "BY window_start, window_end",
            "not a multiple",
        ),
        (
            "SELECT window_start FROM TABLE(SESSION(TABLE rides PARTITION BY bike, DESCRIPTOR(began), "
            "INTERVAL '1' HOUR))",
            "SESSION windows are made by GROUP BY",
        ),
        ("SELECT TUMBLE_START(began, INTERVAL '1' HOUR) AS a FROM rides", "belongs to a GROUP BY"),
        (
            "SELECT TUMBLE_START(began, INTERVAL '2' HOUR) AS a FROM rides GROUP BY TUMBLE(began, "
            "INTERVAL '1' HOUR)",
            "not in GROUP BY",
        ),
        ("SELECT s FROM rides CROSS JOIN UNNEST(ride) AS t(s)", "takes an array or a map"),
        ("SELECT s FROM rides CROSS JOIN UNNEST(stops) AS t(s, u)", "2 are named"),
        ("SELECT s FROM UNNEST(ARRAY[1]) AS t(s)", "stands beside the table"),
        ("SELECT ride, ride FROM rides", "is in the result twice"),
        ("SELECT MASK_HASH(note, bike) FROM rides", "written down"),
        ("SELECT MASK_TOKEN(note, 'k', 3) FROM rides", "8 to 43"),
    ],
)
def test_refused(sql: str, says: str) -> None:
    with pytest.raises(InvalidRequest) as error:
        planned(sql)
    assert says.lower() in str(error.value).lower()


def test_the_line_is_named() -> None:
    with pytest.raises(InvalidRequest, match="Line 3: There is no column 'nope'"):
        planned("SELECT ride,\n bike,\n nope FROM rides")


def test_one_event_time_for_a_table() -> None:
    with pytest.raises(InvalidRequest, match="one event time per table"):
        planned(
            "SELECT window_start, COUNT(*) AS n FROM TABLE(TUMBLE((SELECT began, r FROM (SELECT *, "
            "`$rowtime` AS r, ROW_NUMBER() "
            "OVER (PARTITION BY ride ORDER BY began) AS n FROM rides) WHERE n = 1), DESCRIPTOR(r), "
            "INTERVAL '1' HOUR)) GROUP BY "
            "window_start, window_end"
        )


def test_views_that_are_made_of_themselves() -> None:
    with pytest.raises(InvalidRequest, match="made of itself"):
        planned("SELECT a FROM v", None, "CREATE VIEW v AS SELECT a FROM w; CREATE VIEW w AS SELECT a FROM v")


def test_no_zone() -> None:
    sql = f"SELECT window_start, COUNT(*) AS n {WINDOW}"
    with pytest.raises(InvalidRequest, match="no zone 'Nowhere/City'"):
        planned(sql, Options(zone="Nowhere/City"))


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_functions_refuse_a_wrong_count_of_arguments(name: str) -> None:
    function = FUNCTIONS[name]
    if function.most is None:
        return
    with pytest.raises(InvalidRequest, match="arguments"):
        function.apply([string("x")] * (function.most + 1), Session())


def test_every_node_of_a_tree_is_known_or_refused() -> None:
    """A node that the dialect can make and the compiler has never seen."""
    with pytest.raises(InvalidRequest, match="Collate is not known"):
        Compiler(Scope(()), Session()).compile(exp.Collate(this=exp.Null(), expression=exp.Null()))
