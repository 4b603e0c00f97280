"""SQL on topics reaches neither Java nor files: functions and tables are known ones, in every spelling."""

import pytest

from headgate.errors import HeadgateError
from headgate.lake_functions import removed_functions
from headgate.sql.functions import FUNCTIONS
from tests.unit.sql.tables import planned

CALL = "('java.lang.System', 'nanoTime')"


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT reflect{CALL} FROM rides",
        f"SELECT ReFlEcT{CALL} FROM rides",
        f"SELECT `reflect`{CALL} FROM rides",
        f"SELECT system.builtin.reflect{CALL} FROM rides",
        f"SELECT `system`.`builtin`.`java_method`{CALL} FROM rides",
        f"WITH x AS (SELECT try_reflect{CALL} AS a FROM rides) SELECT a FROM x",
        f"SELECT ride FROM rides WHERE reflect{CALL} = 'x'",
        f"SELECT ride FROM (SELECT ride, reflect{CALL} AS a FROM rides)",
        f"SELECT COUNT(*) FROM rides GROUP BY java_method{CALL}",
        f"SELECT IDENTIFIER('reflect'){CALL} FROM rides",
        f"SELECT CASE WHEN ride > 1 THEN reflect{CALL} END FROM rides",
        "SELECT * FROM text.`/etc/passwd`",
        "SELECT * FROM `csv`.`/etc/passwd`",
        "SELECT * FROM IDENTIFIER('text.`/etc/passwd`')",
        "SELECT * FROM TABLE(reflect('a', 'b'))",
        "SELECT * FROM read_files('/etc/passwd')",
        "SELECT TRANSFORM(ride) USING 'cat' AS a FROM rides",
        "SELECT ride FROM rides, LATERAL TABLE(reflect('a', 'b'))",
    ],
)
def test_no_spelling_is_planned(sql: str) -> None:
    with pytest.raises(HeadgateError):
        planned(sql)


def test_no_function_of_the_language_is_one_that_the_lake_removes() -> None:
    assert not {name.lower() for name in FUNCTIONS} & set(removed_functions())
