"""The clauses of a query as its tokens show them: where tables are named, and where conditions stand.

Text that Spark is to run is never printed from a tree, which could change it: it is edited in place, and this
says at which places.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from sqlglot.tokenizer_core import Token, TokenType

_SET_OPERATORS = (TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT)
_CLAUSES = {
    TokenType.WITH: "WITH",
    TokenType.SELECT: "SELECT",
    TokenType.WHERE: "WHERE",
    TokenType.GROUP_BY: "GROUP BY",
    TokenType.HAVING: "HAVING",
    TokenType.ORDER_BY: "ORDER BY",
    TokenType.SORT_BY: "ORDER BY",
    TokenType.CLUSTER_BY: "ORDER BY",
    TokenType.DISTRIBUTE_BY: "ORDER BY",
    TokenType.LIMIT: "LIMIT",
    TokenType.OFFSET: "LIMIT",
    TokenType.FETCH: "LIMIT",
    TokenType.QUALIFY: "QUALIFY",
    TokenType.WINDOW: "WINDOW",
    TokenType.ON: "ON",
    TokenType.USING: "ON",
    **dict.fromkeys(_SET_OPERATORS, ""),
}
_ENDS_CONDITION = frozenset(_CLAUSES.values()) - {"SELECT", "WHERE", "ON"}


@dataclass
class _Frame:
    """What a parenthesis holds. `reads_tables`: a query in a place of tables, not one that gives a value."""

    reads_tables: bool
    clause: str = ""
    where: int | None = None


@dataclass(frozen=True)
class Clauses:
    """Indexes of tokens: the first of each table's name, and the first and last of each WHERE condition.

    Conditions are those of queries that are read as tables: not of a subquery inside an expression, which may
    be about a row of the query around it.
    """

    tables: Sequence[int] = ()
    conditions: Sequence[tuple[int, int]] = ()


@dataclass
class _Scan:
    tokens: Sequence[Token]
    frames: list[_Frame] = field(default_factory=lambda: [_Frame(True)])
    tables: list[int] = field(default_factory=list)
    conditions: list[tuple[int, int]] = field(default_factory=list)

    @property
    def top(self) -> _Frame:
        return self.frames[-1]

    def run(self) -> Clauses:
        for place, token in enumerate(self.tokens):
            kind = token.token_type
            if kind == TokenType.L_PAREN:
                self.frames.append(_Frame(self._opens_table(place)))
            elif kind == TokenType.R_PAREN:
                self._end_condition(place)
                if len(self.frames) > 1:
                    self.frames.pop()
            elif kind == TokenType.SEMICOLON or token.text == "|>":
                self._end_condition(place)
                self.top.clause = ""
            else:
                self._step(place, token)
        self._end_condition(len(self.tokens))
        return Clauses(tuple(self.tables), tuple(self.conditions))

    def _step(self, place: int, token: Token) -> None:
        frame, kind = self.top, token.token_type
        if kind == TokenType.FROM:
            if self._is_from_clause(place):
                frame.clause = "FROM"
                self._name_table(place + 1)
        elif kind in (TokenType.JOIN, TokenType.COMMA):
            if frame.clause == "ON" or (kind == TokenType.JOIN and frame.clause != ""):
                frame.clause = "FROM"
            if frame.clause == "FROM":
                self._name_table(place + 1)
        elif kind in _CLAUSES and not self._is_name(place):
            if _CLAUSES[kind] in ("ON", "WITH", "WINDOW") and frame.clause not in ("FROM", "", "HAVING"):
                return
            if _CLAUSES[kind] in _ENDS_CONDITION:
                self._end_condition(place)
            frame.clause = _CLAUSES[kind]
            if frame.clause == "WHERE":
                frame.where = place + 1

    def _is_from_clause(self, place: int) -> bool:
        """Not that of `EXTRACT(DAY FROM t)` or `IS DISTINCT FROM`."""
        before = self.tokens[place - 1].token_type if place else None
        if before == TokenType.DISTINCT or self._is_name(place):
            return False
        first = before is None or (before == TokenType.L_PAREN and self.top.reads_tables)
        return self.top.clause in ("SELECT", "WITH") or (self.top.clause == "" and first)

    def _is_name(self, place: int) -> bool:
        """A word behind a dot is a name, whatever else it may be."""
        return place > 0 and self.tokens[place - 1].token_type == TokenType.DOT

    def _name_table(self, place: int) -> None:
        if place < len(self.tokens) and self.tokens[place].token_type != TokenType.L_PAREN:
            self.tables.append(place)

    def _opens_table(self, place: int) -> bool:
        """Whether a parenthesis holds what is read as a table."""
        if not self.top.reads_tables:
            return False
        before = self.tokens[place - 1] if place else None
        if before is None or before.token_type in _SET_OPERATORS:
            return True
        if before.token_type in (TokenType.ALL, TokenType.DISTINCT):
            return place > 1 and self.tokens[place - 2].token_type in _SET_OPERATORS
        match before.token_type:
            case TokenType.FROM | TokenType.JOIN | TokenType.COMMA:
                return self.top.clause == "FROM"
            case TokenType.ALIAS:
                return self.top.clause == "WITH"
            case TokenType.L_PAREN:
                return self.top.clause == ""
        return False

    def _end_condition(self, place: int) -> None:
        frame = self.top
        if frame.where is not None and frame.reads_tables and frame.where < place:
            self.conditions.append((frame.where, place - 1))
        frame.where = None


def scan_clauses(tokens: Sequence[Token]) -> Clauses:
    return _Scan(tokens).run()


def name_chain(tokens: Sequence[Token], place: int) -> Iterator[int]:
    """The indexes of the parts of a dotted name that begins at `place`."""
    while place < len(tokens):
        yield place
        if place + 2 >= len(tokens) or tokens[place + 1].token_type != TokenType.DOT:
            return
        place += 2
