"""Queries of lake tables inside scripts: told by what they read, left to Spark as they are written.

A name alone is a topic. A lake table is named as its catalog does, `lake.<cluster>.<topic>`.
"""

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from headgate.errors import InvalidRequest
from headgate.spark import CATALOG
from headgate.sql.refusals import refuse

_BEFORE_NAMES = (TokenType.FROM, TokenType.JOIN, TokenType.COMMA)


def names_lake(tokens: list[Token]) -> bool:
    """Whether a query reads a table of the lake: `FROM lake.…`, or behind JOIN or a comma."""
    reading = False
    for before, word, after in zip(tokens, tokens[1:], tokens[2:], strict=False):
        reading = reading or before.token_type == TokenType.FROM
        if (
            reading
            and before.token_type in _BEFORE_NAMES
            and word.text.lower() == CATALOG
            and after.token_type == TokenType.DOT
        ):
            return True
    return False


def check_lake(text: str) -> None:
    """All that a query reads must be of the lake: the name of a topic means a stream everywhere here."""
    try:
        tree = sqlglot.parse_one(text, dialect="spark")
    except (ParseError, TokenError) as error:
        first = error.errors[0] if isinstance(error, ParseError) and error.errors else {}
        what = str(first.get("description") or error).rstrip(".")
        raise InvalidRequest(f"The query of lake tables cannot be read: {what}.") from error
    if not isinstance(tree, exp.Query):
        raise InvalidRequest("Only queries are asked of the lake.", "Begin with SELECT or WITH.")
    named = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    for table in tree.find_all(exp.Table):
        parts = [part.name for part in table.parts]
        if len(parts) == 1 and (parts[0].lower() in named or isinstance(table.this, exp.Func)):
            continue
        if parts[0].lower() != CATALOG or len(parts) < 3:
            raise InvalidRequest(
                f"The query reads lake tables, and '{'.'.join(parts)}', which is none.",
                f"A lake table is {CATALOG}.<cluster>.<topic>; topics and lake tables are not read together: "
                "enable the topic as a table, and read both from the lake.",
            )


def check_no_lake(table: exp.Table) -> None:
    """Refuses a lake table where a stream is wanted."""
    parts = [part.name for part in table.parts]
    if parts[0].lower() == CATALOG and len(parts) > 2:
        refuse(
            f"table '{'.'.join(parts)}' is the lake's, and a statement reads topics.",
            table,
            "A SELECT alone reads the lake; name the topic alone to read its stream.",
        )
