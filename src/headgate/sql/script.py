"""A script: statements with semicolons between them, SETs and comments among them."""

from sqlglot.tokenizer_core import Token, TokenType

from headgate.errors import InvalidRequest
from headgate.sql.ddl import StatementParser
from headgate.sql.dialect import run_parser, tokenize
from headgate.sql.statements import InsertInto, Statement, StatementSet
from headgate.sql.type_names import refusal


def parse_script(text: str) -> list[Statement]:
    """The statements in their order. One that cannot be read is an InvalidRequest with its line and
    column, and then none of them is given."""
    statements: list[Statement] = []
    pending: list[InsertInto] | None = None
    opened: Token | None = None
    for found in _split(tokenize(text)):
        words = [token.text.upper() for token in found[:4]]
        begins = words[:4] == ["EXECUTE", "STATEMENT", "SET", "BEGIN"]
        if begins or words[:3] == ["BEGIN", "STATEMENT", "SET"]:
            if pending is not None:
                raise refusal("a statement set cannot be inside another", found[0])
            pending, opened = [], found[0]
            found = found[4:] if begins else found[3:]
        if pending is not None and words[:1] == ["END"] and len(found) == 1:
            if not pending:
                raise refusal("the statement set is empty", found[0])
            statements.append(StatementSet(tuple(pending)))
            pending = None
            continue
        if not found:
            continue
        _check_words(found)
        statement: Statement = run_parser(StatementParser, StatementParser.statement, found, text)
        if pending is None:
            statements.append(statement)
        elif isinstance(statement, InsertInto):
            pending.append(statement)
        else:
            raise refusal("a statement set holds INSERT INTO statements", found[0])
    if pending is not None:
        raise refusal("the statement set has no END;", opened)
    return statements


def parse_statement(text: str) -> Statement:
    """The one statement of this text."""
    found = parse_script(text)
    if len(found) != 1:
        raise InvalidRequest(f"Expected one statement, found {len(found)}.")
    return found[0]


def _check_words(tokens: list[Token]) -> None:
    """What no query here can have, however it goes on."""
    for token in tokens:
        if token.token_type != TokenType.IDENTIFIER and token.text.upper() == "MATCH_RECOGNIZE":
            raise refusal(
                "MATCH_RECOGNIZE is not supported: Spark has no operator for patterns of rows. An "
                "interval join of "
                "the table with itself finds one event after another, a SESSION window those that "
                "belong together",
                token,
            )


def _split(tokens: list[Token]) -> list[list[Token]]:
    parts: list[list[Token]] = [[]]
    for token in tokens:
        if token.token_type == TokenType.SEMICOLON:
            parts.append([])
        else:
            parts[-1].append(token)
    return [part for part in parts if part]
