"""Where a SELECT may stand."""

import pytest

from headgate.errors import InvalidRequest
from headgate.sql.script import parse_script
from headgate.statements.asking import check_places


@pytest.mark.parametrize(
    "text",
    [
        "SHOW TABLES; SELECT a FROM t",
        "SELECT a FROM t; SET 'sql.snapshot.mode' = 'now'; SELECT b FROM t; RESET 'sql.snapshot.mode'",
        "SELECT a FROM t; SELECT a FROM lake.local.t",
    ],
)
def test_a_select_comes_last(text: str) -> None:
    check_places(parse_script(text))


@pytest.mark.parametrize(
    "text", ["SELECT a FROM t; SHOW TABLES", "SELECT a FROM lake.local.t; INSERT INTO x SELECT a FROM t"]
)
def test_what_follows_one_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match="comes last"):
        check_places(parse_script(text))
