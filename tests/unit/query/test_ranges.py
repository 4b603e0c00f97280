"""What is put into a query must be what queries may call."""

from itertools import pairwise

import sqlglot
from sqlglot import exp

from headgate.lake_functions import allowed_functions
from headgate.sql.athena import to_spark


def test_ranges_call_functions_that_queries_may_call() -> None:
    condition = "date_trunc('day', ts) > CURRENT_DATE AND date_trunc('hour', ts) < now() OR year(ts) = 2026"
    (added,) = to_spark(f"SELECT * FROM t WHERE {condition}", "local").ranges
    # Names as Spark will see them.
    tokens = sqlglot.tokenize(added, dialect="spark")
    called = {one.text for one, after in pairwise(tokens) if after.text == "("}
    functions = {name.lower() for name in called if name.isidentifier()} - {"cast", "and", "or"}
    assert functions >= {"typeof", "date_trunc", "current_date", "current_timestamp"}
    assert functions <= allowed_functions()
    assert isinstance(sqlglot.parse_one(added, dialect="spark"), exp.Expr)
