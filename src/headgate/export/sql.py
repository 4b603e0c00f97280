"""The SQL of an export: its period is put in, each table held at one snapshot, its rows in a total order.

Text that Spark is to run is edited at its tokens, never printed from a tree. `:from` and `:to` become typed
literals of moments that Headgate has computed: nothing that anybody has written is put into a query.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlglot import Dialect
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from headgate.errors import InvalidRequest
from headgate.export.schedule import Bounds
from headgate.spark import CATALOG
from headgate.sql.athena import quoted
from headgate.sql.clauses import name_chain, scan_clauses

PARAMETERS = ("from", "to")
# Another answer each time that they are asked.
VOLATILE = frozenset(
    (
        "aes_encrypt",
        "curdate",
        "current_date",
        "current_time",
        "current_timestamp",
        "input_file_block_length",
        "input_file_block_start",
        "input_file_name",
        "java_method",
        "localtimestamp",
        "monotonically_increasing_id",
        "now",
        "rand",
        "randn",
        "random",
        "randstr",
        "reflect",
        "shuffle",
        "spark_partition_id",
        "try_reflect",
        "uniform",
        "unix_timestamp",
        "uuid",
    )
)
# What they give may depend on the order in which rows come.
ORDERED = frozenset(
    (
        "any_value",
        "approx_count_distinct",
        "approx_percentile",
        "array_agg",
        "collect_list",
        "collect_set",
        "first",
        "first_value",
        "lag",
        "last",
        "last_value",
        "lead",
        "listagg",
        "max_by",
        "min_by",
        "mode",
        "nth_value",
        "ntile",
        "percentile_approx",
        "row_number",
        "string_agg",
    )
)
# Sums of binary fractions depend on the order in which they are added.
SUMMING = frozenset(
    (
        "avg",
        "corr",
        "covar_pop",
        "covar_samp",
        "kurtosis",
        "mean",
        "regr_intercept",
        "regr_r2",
        "regr_slope",
        "skewness",
        "stddev",
        "stddev_pop",
        "stddev_samp",
        "sum",
        "var_pop",
        "var_samp",
        "variance",
    )
)
# They need no parentheses.
_BARE = frozenset({"current_date", "current_time", "current_timestamp", "localtimestamp"})
# Texts that are another time each day, where they are taken for one.
_TODAY = frozenset({"now", "today", "tomorrow", "yesterday"})
_TIMES = ("DATE", "TIMESTAMP")
_FRACTIONS = frozenset({"DOUBLE", "FLOAT", "REAL"})
_NO_TABLE = (TokenType.VALUES, TokenType.LATERAL)
_BEFORE_PATH = frozenset({TokenType.VAR, TokenType.IDENTIFIER, TokenType.R_BRACKET, TokenType.R_PAREN})
_ROWS = "`$rows`"


@dataclass(frozen=True, order=True)
class TableName:
    """A table of the lake, by its namespace and its name."""

    namespace: tuple[str, ...]
    name: str

    def __str__(self) -> str:
        return ".".join([*self.namespace, self.name])


@dataclass(frozen=True)
class _Edit:
    """`start` up to `end` of a text becomes something else."""

    start: int
    end: int
    text: str


def check_sql(text: str) -> None:
    """Raises ValueError for what cannot be an export, as far as its text tells."""
    try:
        tokens = _tokens(_bound(text, lambda _: "NULL"))
        _check_form(tokens)
        names = [parts for _, _, parts in _tables(_bound(text, lambda _: "NULL"), tokens)]
    except InvalidRequest as error:
        raise ValueError(f"{error.message} {error.remedy}".strip()) from error
    if not names:
        raise ValueError("it reads no table of the lake")


def tables_of(text: str, cluster: str) -> tuple[frozenset[TableName], frozenset[str]]:
    """The tables that a query names, and the names that it gives to queries of its own (WITH)."""
    bound = _bound(text, lambda _: "NULL")
    tokens = _tokens(bound)
    own = _own_names(tokens)
    found = {_table_name(parts, cluster) for _, _, parts in _tables(bound, tokens)}
    return frozenset(found), own


def check_incremental(text: str, table: str) -> None:
    """Raises ValueError where a query cannot be about the changes of a table, named as its topic is."""
    bound = _bound(text, lambda _: "NULL")
    named = [parts[-1] for _, _, parts in _tables(bound, _tokens(bound))]
    if named.count(table) != 1:
        raise ValueError(
            f"incremental: the query names table '{table}' {named.count(table)} times; name it once"
        )
    if bound != text:
        raise ValueError(
            "incremental: a run is about what was committed since the one before; leave :from and :to out"
        )


def bind(text: str, bounds: Bounds) -> str:
    """The query with its period in it, as typed literals."""
    moments = {"from": bounds.start, "to": bounds.end}
    return _bound(text, lambda name: timestamp_literal(moments[name]))


def timestamp_literal(at: datetime) -> str:
    return f"TIMESTAMP_LTZ '{at.astimezone(UTC):%Y-%m-%d %H:%M:%S.%f}Z'"


def at_snapshot(table: TableName, snapshot: int) -> str:
    """A table as it was, as a relation of SQL."""
    return f"{'.'.join(map(quoted, [CATALOG, *table.namespace, table.name]))} VERSION AS OF {snapshot:d}"


def pin(text: str, cluster: str, relations: Mapping[TableName, str]) -> str:
    """The query with each of its tables replaced by a relation. `text` is bound."""
    tokens = _tokens(text)
    edits = [
        _Edit(start, end, f"{relations[table]}{_alias(tokens, end, table)}")
        for start, end, parts in _tables(text, tokens)
        for table in [_table_name(parts, cluster)]
    ]
    return _edited(text, edits)


def without_end(text: str) -> str:
    """A query without the semicolon behind it."""
    tokens = _tokens(text)
    if tokens and tokens[-1].token_type == TokenType.SEMICOLON:
        return text[: tokens[-1].start]
    return text


def exploded(text: str, columns: Sequence[str]) -> str:
    """A query with a row for each element of its arrays of these names, which come last; of an empty array,
    one row with NULL."""
    for name in columns:
        column = quoted(name)
        elements = f"explode_outer({_ROWS}.{column}) AS {column}"
        text = f"SELECT * EXCEPT ({column}), {elements} FROM (\n{text}\n) AS {_ROWS}"
    return text


def shape_query(text: str) -> str:
    """A query that gives the columns of another, and no row."""
    return f"SELECT * FROM (\n{text}\n) AS {_ROWS} LIMIT 0"


def rows_query(text: str, columns: Sequence[tuple[Sequence[str], str]], order: Sequence[str]) -> str:
    """The rows of a query, each path of `columns` under its name, ordered by names of columns."""
    selected = ", ".join(f"{_path(path)} AS {quoted(name)}" for path, name in columns)
    ordered = ", ".join(f"{quoted(name)} ASC NULLS FIRST" for name in order)
    return f"SELECT {selected} FROM (\n{text}\n) AS {_ROWS} ORDER BY {ordered}"


def unrepeatable(text: str, has_fractions: bool, fractions: Set[str] = frozenset()) -> list[str]:
    """Why a query may give other rows when it is asked again. `has_fractions`: it gives FLOAT or DOUBLE;
    `fractions` are columns of its tables that are, which it may sum and give as something else."""
    tokens = _tokens(_bound(text, lambda _: "NULL"))
    called = {
        token.text.lower()
        for place, token in enumerate(tokens)
        if _is_call(tokens, place) or token.text.lower() in _BARE
    }
    words = {token.text.upper() for token in tokens}
    has_fractions = has_fractions or not words.isdisjoint(_FRACTIONS | {name.upper() for name in fractions})
    reasons = [f"{name.upper()} gives another value each time" for name in sorted(called & VOLATILE)]
    reasons += [f"{name.upper()} depends on the order of rows" for name in sorted(called & ORDERED)]
    if has_fractions:
        reasons += [
            f"{name.upper()} of binary fractions depends on the order of rows"
            for name in sorted(called & SUMMING)
        ]
    if any(_is_today(tokens, place) for place in range(len(tokens))):
        reasons.append("a time like 'now' or 'today' is another each time")
    if any(_is_frame_of_rows(tokens, place) for place in range(len(tokens) - 1)):
        reasons.append("a frame of ROWS depends on the order of rows that are equal in its order")
    if any(token.token_type in (TokenType.LIMIT, TokenType.OFFSET) for token in tokens):
        reasons.append("LIMIT takes any of rows that are equal in its order")
    if "TABLESAMPLE" in words:
        reasons.append("TABLESAMPLE takes other rows each time")
    return reasons


def _is_call(tokens: Sequence[Token], place: int) -> bool:
    after = tokens[place + 1].token_type if place + 1 < len(tokens) else None
    return after == TokenType.L_PAREN and tokens[place].token_type != TokenType.IDENTIFIER


def _is_today(tokens: Sequence[Token], place: int) -> bool:
    """Whether a text is a moment of its own: `TIMESTAMP 'now'`, `CAST('today' AS DATE)`, `'now'::DATE`."""
    token = tokens[place]
    if token.token_type != TokenType.STRING or token.text.strip().lower() not in _TODAY:
        return False
    around = [*tokens[max(0, place - 1) : place], *tokens[place + 1 : place + 3]]
    return any(one.text.upper().startswith(_TIMES) for one in around)


def _is_frame_of_rows(tokens: Sequence[Token], place: int) -> bool:
    after = tokens[place + 1]
    is_bound = (
        after.text.upper() in ("BETWEEN", "UNBOUNDED", "CURRENT") or after.token_type == TokenType.NUMBER
    )
    return tokens[place].text.upper() == "ROWS" and is_bound


def _tokens(text: str) -> Sequence[Token]:
    try:
        return Dialect.get_or_raise("spark").tokenize(text)
    except TokenError as error:
        raise InvalidRequest("A quote, a backtick or a comment is not closed.") from error


def _bound(text: str, literal: Callable[[str], str]) -> str:
    tokens = _tokens(text)
    edits = []
    for place in range(len(tokens) - 1):
        colon, word = tokens[place], tokens[place + 1]
        if colon.token_type != TokenType.COLON or word.start != colon.end + 1:
            continue
        before = tokens[place - 1] if place else None
        if before is not None and before.end + 1 == colon.start and before.token_type in _BEFORE_PATH:
            continue  # a path into a VARIANT: `payload:from`
        name = text[word.start : word.end + 1].lower()
        if name not in PARAMETERS:
            raise InvalidRequest(f"There is no parameter :{name}.", "There are :from and :to.")
        edits.append(_Edit(colon.start, word.end + 1, f"({literal(name)})"))
    return _edited(text, edits)


def _edited(text: str, edits: Sequence[_Edit]) -> str:
    for edit in sorted(edits, key=lambda edit: edit.start, reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


def _check_form(tokens: Sequence[Token]) -> None:
    first = tokens[0].token_type if tokens else None
    if first not in (TokenType.SELECT, TokenType.WITH, TokenType.L_PAREN):
        raise InvalidRequest("It is no query.", "Begin with SELECT or WITH.")
    depth, top = 0, set()
    for token in tokens[:-1]:
        if token.token_type == TokenType.SEMICOLON:
            raise InvalidRequest("It is more than one query.", "Write one SELECT.")
    for token in tokens:
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        if depth < 0:
            raise InvalidRequest("A parenthesis is closed that was not opened.")
        if depth == 0:
            top.add(token.token_type)
    if depth:
        raise InvalidRequest("A parenthesis is not closed.")
    if TokenType.ORDER_BY in top and TokenType.LIMIT not in top:
        raise InvalidRequest(
            "It ends with ORDER BY.",
            "Leave it out, and name its columns under `order_by`: all others follow.",
        )


def _tables(text: str, tokens: Sequence[Token]) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """Where tables of the lake are named: the beginning, the end, and the parts of the name."""
    own = _own_names(tokens)
    for first in scan_clauses(tokens).tables:
        places = list(name_chain(tokens, first))
        last = places[-1]
        after = tokens[last + 1] if last + 1 < len(tokens) else None
        if tokens[first].token_type in _NO_TABLE or (after and after.token_type == TokenType.L_PAREN):
            continue
        if text[tokens[first].start] in "\"'":
            raise InvalidRequest("A table's name stands in quotes.", "Write it in backticks.")
        parts = tuple(_name(text, tokens[place]) for place in places)
        if len(parts) == 1 and parts[0].lower() in own:
            continue
        behind = text[tokens[last].end + 1 : tokens[last].end + 2]
        if "$" in parts[-1] or behind == "$":
            raise InvalidRequest(f"'{parts[-1]}' is no table.", "Exports read rows, not metadata of tables.")
        words = [token.text.upper() for token in tokens[last + 1 : last + 5]]
        if "OF" in words and words[0] in ("VERSION", "TIMESTAMP", "FOR", "SYSTEM_VERSION", "SYSTEM_TIME"):
            raise InvalidRequest(
                f"It reads '{parts[-1]}' at another time.",
                "Leave the time travel out: a run reads each table at one snapshot, and says at which.",
            )
        yield tokens[first].start, tokens[last].end + 1, parts


def _own_names(tokens: Sequence[Token]) -> frozenset[str]:
    """The names of WITH, in lower case."""
    names = set()
    for place, token in enumerate(tokens[:-2]):
        before = tokens[place - 1].text.upper() if place else ""
        if before not in ("WITH", "RECURSIVE", ","):
            continue
        after = place + 1
        if tokens[after].token_type == TokenType.L_PAREN:
            while after < len(tokens) - 2 and tokens[after].token_type != TokenType.R_PAREN:
                after += 1
            after += 1
        if tokens[after].text.upper() == "AS" and tokens[after + 1].token_type == TokenType.L_PAREN:
            names.add(token.text.strip("`").lower())
    return frozenset(names)


def _table_name(parts: Sequence[str], cluster: str) -> TableName:
    if len(parts) > 1 and parts[0].lower() == CATALOG:
        parts = parts[1:]
    namespace = tuple(parts[:-1]) or (cluster,)
    return TableName(namespace, parts[-1])


def _alias(tokens: Sequence[Token], end: int, table: TableName) -> str:
    """The table's own name for it where the query gives it none: columns may be called by it."""
    after = next((token for token in tokens if token.start >= end), None)
    names = (TokenType.ALIAS, TokenType.VAR, TokenType.IDENTIFIER)
    return "" if after is not None and after.token_type in names else f" AS {quoted(table.name)}"


def _name(text: str, token: Token) -> str:
    raw = text[token.start : token.end + 1]
    if raw[0] == "`" and raw[-1] == "`" and len(raw) > 1:
        return raw[1:-1].replace("``", "`")
    return raw


def _path(path: Sequence[str]) -> str:
    return ".".join([_ROWS, *map(quoted, path)])
