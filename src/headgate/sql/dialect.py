"""The dialect: how text becomes tokens, and queries trees.

Functions stay what they are called: each becomes an `Anonymous` call, for the planner knows what a name means
here, and it is often not what it means elsewhere.
"""

from typing import Any, ClassVar

from sqlglot import Dialect, exp, tokens
from sqlglot.dialects.dialect import NormalizationStrategy
from sqlglot.errors import ErrorLevel, ParseError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from headgate.errors import InvalidRequest
from headgate.sql.type_names import TypeParser

UNITS = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND")
WINDOW_FUNCTIONS = ("TUMBLE", "HOP", "CUMULATE", "SESSION")


class CastTo(exp.Expression):
    """CAST and TRY_CAST; `to` is a SqlType."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "to": True, "safe": False}


class JsonCall(exp.Expression):
    """JSON_VALUE and its kin, with what they do when there is nothing or too much."""

    arg_types: ClassVar[dict[str, bool]] = {
        "name": True,
        "this": True,
        "path": True,
        "returning": False,
        "on_empty": False,
        "on_error": False,
    }


class WindowTable(exp.Expression):
    """`TABLE(TUMBLE(TABLE t, DESCRIPTOR(c), INTERVAL …))`."""

    arg_types: ClassVar[dict[str, bool]] = {
        "name": True,
        "this": True,
        "column": True,
        "spans": True,
        "keys": False,
        "alias": False,
    }


class StatementTokenizer(tokens.Tokenizer):
    IDENTIFIERS: ClassVar[Any] = ["`"]
    QUOTES: ClassVar[Any] = ["'"]
    STRING_ESCAPES: ClassVar[Any] = ["'"]
    COMMENTS: ClassVar[Any] = ["--", ("/*", "*/")]
    # No word swallows the rest of its statement.
    COMMANDS: ClassVar[Any] = set()
    # `$rowtime` is a name.
    VAR_SINGLE_TOKENS: ClassVar[Any] = {"$"}
    SINGLE_TOKENS: ClassVar[Any] = {
        **{mark: kind for mark, kind in tokens.Tokenizer.SINGLE_TOKENS.items() if mark not in '"$#'},
    }
    KEYWORDS: ClassVar[Any] = {
        word: kind
        for word, kind in tokens.Tokenizer.KEYWORDS.items()
        # Kept as plain words: the planner, or the parser of statements, knows them.
        if word
        not in (
            "SESSION",
            "/*+",
            "{%",
            "%}",
            "{{+",
            "-%}",
            "{{-",
            "+}}",
            "SHOW",
            "SET",
            "RESET",
            "EXPLAIN",
            "DESCRIBE",
        )
        and kind
        not in (TokenType.COMMAND, TokenType.COPY, TokenType.PRAGMA, TokenType.DESCRIBE, TokenType.CACHE)
    }


class QueryParser(TypeParser):
    """Queries and expressions."""

    FUNCTIONS: ClassVar[Any] = {}
    NO_PAREN_FUNCTIONS: ClassVar[Any] = {}
    NO_PAREN_FUNCTION_PARSERS: ClassVar[Any] = {
        "CASE": lambda self: self._parse_case(),
    }
    FUNCTION_PARSERS: ClassVar[Any] = {
        "CAST": lambda self: self._cast(safe=False),
        "TRY_CAST": lambda self: self._cast(safe=True),
        "EXTRACT": lambda self: self._extract(),
        "POSITION": lambda self: self._in_pair("POSITION"),
        "SUBSTRING": lambda self: self._substring(),
        "TRIM": lambda self: self._trim(),
        "CEIL": lambda self: self._to_unit("CEIL"),
        "CEILING": lambda self: self._to_unit("CEIL"),
        "FLOOR": lambda self: self._to_unit("FLOOR"),
        "OVERLAY": lambda self: self._overlay(),
        "JSON_VALUE": lambda self: self._json("JSON_VALUE"),
        "JSON_QUERY": lambda self: self._json("JSON_QUERY"),
        "JSON_EXISTS": lambda self: self._json("JSON_EXISTS"),
        "JSON_OBJECT": lambda self: self._json_object(),
    }
    TYPE_NAME_TOKENS: ClassVar[Any] = set()

    # --- functions with a grammar of their own

    def _call(self, name: str, *args: exp.Expr | None) -> exp.Anonymous:
        return self.expression(exp.Anonymous(this=name, expressions=[a for a in args if a is not None]))

    def _cast(self, safe: bool) -> exp.Expr:
        this = self._parse_assignment()
        self._expect("AS")
        return self.expression(CastTo(this=this, to=self.sql_type(), safe=safe))

    def _extract(self) -> exp.Expr:
        unit = self._parse_var(any_token=True, upper=True)
        self._expect("FROM")
        return self._call("EXTRACT", unit, self._parse_assignment())

    def _in_pair(self, name: str) -> exp.Expr:
        first = self._parse_bitwise()
        if not self._match_text_seq("IN"):
            self._expect(",")
        return self._call(name, first, self._parse_assignment())

    def _substring(self) -> exp.Expr:
        args = [self._parse_assignment()]
        if self._match_text_seq("FROM") or self._match(TokenType.COMMA):
            args.append(self._parse_assignment())
            if self._match_text_seq("FOR") or self._match(TokenType.COMMA):
                args.append(self._parse_assignment())
        return self._call("SUBSTRING", *args)

    def _trim(self) -> exp.Expr:
        side = "BOTH"
        if self._match_texts(("BOTH", "LEADING", "TRAILING")):
            side = self._prev.text.upper()
        what: exp.Expr | None = exp.Literal.string(" ")
        if self._match_text_seq("FROM"):
            this = self._parse_assignment()
        else:
            this = self._parse_assignment()
            if self._match_text_seq("FROM"):
                what, this = this, self._parse_assignment()
            elif self._match(TokenType.COMMA):
                what = self._parse_assignment()
        return self._call("TRIM", exp.Var(this=side), what, this)

    def _to_unit(self, name: str) -> exp.Expr:
        args = [self._parse_assignment()]
        if self._match_text_seq("TO"):
            args.append(self._parse_var(any_token=True, upper=True))
        elif self._match(TokenType.COMMA):
            args.append(self._parse_assignment())
        return self._call(name, *args)

    def _overlay(self) -> exp.Expr:
        this = self._parse_bitwise()
        self._expect("PLACING")
        put = self._parse_bitwise()
        self._expect("FROM")
        start = self._parse_bitwise()
        count = self._parse_bitwise() if self._match_text_seq("FOR") else None
        return self._call("OVERLAY", this, put, start, count)

    def _json(self, name: str) -> exp.Expr:
        this = self._parse_assignment()
        self._expect(",")
        path = self._parse_assignment()
        returning = self.sql_type() if self._match_text_seq("RETURNING") else None
        on: dict[str, Any] = {}
        while self._curr and self._curr.token_type != TokenType.R_PAREN:
            does: Any
            if self._match_text_seq("NULL"):
                does = "NULL"
            elif self._match_text_seq("ERROR"):
                does = "ERROR"
            elif self._match_text_seq("DEFAULT"):
                does = self._parse_assignment()
            elif name == "JSON_EXISTS" and self._match_texts(("TRUE", "FALSE", "UNKNOWN")):
                does = self._prev.text.upper()
            else:
                self.refuse(f"{name} does not know '{self._curr.text}'")
            self._expect("ON")
            if not self._match_texts(("EMPTY", "ERROR")):
                self.refuse(f"{name} knows ON EMPTY and ON ERROR")
            on["on_" + self._prev.text.lower()] = does
        return self.expression(JsonCall(name=name, this=this, path=path, returning=returning, **on))

    def _json_object(self) -> exp.Expr:
        args: list[exp.Expr | None] = []
        while self._curr and self._curr.token_type != TokenType.R_PAREN:
            self._match_text_seq("KEY")
            args.append(self._parse_bitwise())
            if not self._match_text_seq("VALUE") and not self._match(TokenType.COLON):
                self._expect("VALUE")
            args.append(self._parse_assignment())
            if not self._match(TokenType.COMMA):
                break
        if self._curr and self._curr.token_type != TokenType.R_PAREN:
            self.refuse(f"JSON_OBJECT does not know '{self._curr.text}'")
        return self._call("JSON_OBJECT", *args)

    # --- tables

    def _parse_table(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
        if self._curr and self._next and self._curr.text.upper() == "TABLE" and self._next.text == "(":
            return self._window_table()
        return super()._parse_table(*args, **kwargs)

    def _window_table(self) -> exp.Expr:
        self._advance(2)
        name = self._curr.text.upper() if self._curr else ""
        if name not in WINDOW_FUNCTIONS:
            self.refuse(f"table function {name} is not known; there are {', '.join(WINDOW_FUNCTIONS)}")
        self._advance()
        self._expect("(")
        table: exp.Expr | None = None
        column: exp.Expr | None = None
        keys: list[exp.Expr] = []
        spans: list[exp.Expr | None] = []
        while True:
            self._named_argument()
            if table is None:
                table = self._window_input()
                if self._match_text_seq("PARTITION", "BY") or self._match(TokenType.PARTITION_BY):
                    wrapped = self._match(TokenType.L_PAREN)
                    keys = self._window_keys()
                    if wrapped:
                        self._match_r_paren()
            elif self._match_text_seq("DESCRIPTOR"):
                self._expect("(")
                column = self._parse_column()
                self._match_r_paren()
            else:
                spans.append(self._parse_bitwise())
            if not self._match(TokenType.COMMA):
                break
        self._match_r_paren()
        self._match_r_paren()
        if column is None or not spans:
            self.refuse(f"{name} takes a table, DESCRIPTOR(column) and INTERVALs")
        alias = self._parse_table_alias()
        return self.expression(
            WindowTable(name=name, this=table, column=column, spans=spans, keys=keys, alias=alias)
        )

    def _window_keys(self) -> list[exp.Expr]:
        keys = [self._parse_column()]
        while (
            self._curr
            and self._curr.token_type == TokenType.COMMA
            and self._next.text.upper() != "DESCRIPTOR"
        ):
            self._advance()
            keys.append(self._parse_column())
        return [key for key in keys if key is not None]

    def _named_argument(self) -> None:
        """`SIZE => INTERVAL …`: the order is the same, the names are for readers."""
        if self._next and self._next.token_type == TokenType.FARROW:
            self._advance(2)

    def _window_input(self) -> exp.Expr:
        if self._match_text_seq("TABLE"):
            table = self._parse_table_parts()
            if table is None:
                self.refuse("expected the name of a table")
            return table
        if self._match(TokenType.L_PAREN):
            query = self._parse_select()
            self._match_r_paren()
            return self.expression(exp.Subquery(this=query))
        raise self.error("a window function takes TABLE name, or a query in parentheses")


class HeadgateDialect(Dialect):
    # What is quoted and what is not are the same name; letters mean what they are.
    NORMALIZATION_STRATEGY = NormalizationStrategy.CASE_SENSITIVE
    ALIAS_POST_VERSION = True
    TYPED_DIVISION = True

    Tokenizer = StatementTokenizer
    Parser = QueryParser


def tokenize(text: str) -> list[Token]:
    try:
        return list(HeadgateDialect().tokenize(text))
    except TokenError as error:
        raise InvalidRequest(
            f"The text cannot be read: {error}", "Close every quote, backtick and comment."
        ) from error


def run_parser(kind: type[QueryParser], method: Any, found: list[Token], sql: str) -> Any:
    """What one statement's tokens say; InvalidRequest with line and column if they say nothing."""
    instance = kind(error_level=ErrorLevel.IMMEDIATE, dialect=HeadgateDialect())
    try:
        return instance._parse(method, found, sql)[0]
    except ParseError as error:
        first = error.errors[0] if error.errors else {}
        line, col, word = first.get("line"), first.get("col"), first.get("highlight") or ""
        what = str(first.get("description") or error).rstrip(".")
        near = f" near '{word}'" if word.strip() else ""
        raise InvalidRequest(f"Line {line}, column {col}: {what}{near}.") from error
