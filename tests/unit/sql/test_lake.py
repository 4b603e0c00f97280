"""Which queries are the lake's: told by what they read."""

import pytest

from headgate.errors import InvalidRequest
from headgate.sql.planner import plan
from headgate.sql.script import parse_script
from headgate.sql.statements import InsertInto, LakeQuery, Select
from headgate.sql.tables import Catalog


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM lake.local.rides",
        "SELECT count(*) FROM LAKE.local.`fleet.rides` ORDER BY 1",
        "SELECT * FROM lake.local.rides VERSION AS OF 12",
        "SELECT * FROM lake.local.rides.snapshots",
        "WITH last AS (SELECT max(n) AS n FROM lake.local.a) SELECT b.* FROM lake.local.b b, last",
        "SELECT * FROM (SELECT n FROM lake.local.a) AS x, lake.local.b",
    ],
)
def test_the_lake(text: str) -> None:
    first, second = parse_script(f"-- before\n{text} ;\nSHOW TABLES;")
    assert first == LakeQuery(text)
    assert second is not None


@pytest.mark.parametrize(
    "text", ["SELECT lake.a FROM rides lake", "SELECT lake.`lake`.a FROM rides AS lake", "SELECT n FROM lake"]
)
def test_topics(text: str) -> None:
    assert isinstance(parse_script(text)[0], Select)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SELECT * FROM lake.local.a JOIN rides ON true", "'rides', which is none"),
        ("SELECT * FROM rides, lake.local.a", "'rides', which is none"),
        ("SELECT * FROM lake.local.a WHERE n IN (SELECT n FROM other.b)", "'other.b', which is none"),
        ("SELECT * FROM lake.rides", "'lake.rides', which is none"),
        ("SELECT ((a FROM lake.local.a", "cannot be read"),
    ],
)
def test_what_is_refused(text: str, said: str) -> None:
    with pytest.raises(InvalidRequest, match=said):
        parse_script(text)


def test_a_statement_reads_topics() -> None:
    (insert,) = parse_script("INSERT INTO x SELECT a FROM lake.local.rides")
    assert isinstance(insert, InsertInto)
    with pytest.raises(InvalidRequest, match=r"Table 'lake\.local\.rides' is the lake's"):
        plan(insert.query, Catalog())
