"""Queries of the lake as users type them, made Spark SQL.

Two ways of writing are read. Spark's, in which "text" is a string; and Athena's, in which "name" is a name.
The second is meant where a double-quoted word stands in the place of a table: no query of Spark's has that.
In both, `t$snapshots` and its like are the metadata of table t, and `AwsDataCatalog` before a database may be
said.
See docs/reference/queries.md and docs/adr/0022.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from sqlglot import Dialect
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from headgate.errors import InvalidRequest
from headgate.spark import CATALOG
from headgate.sql.clauses import name_chain, scan_clauses
from headgate.sql.ranges import add_ranges

AWS_CATALOG = "awsdatacatalog"
# The columns of a table's metadata, where Athena calls some otherwise than Iceberg does.
METADATA = {
    "snapshots": "SELECT committed_at, committed_at AS made_current_at, snapshot_id, parent_id, operation, "
    "manifest_list, summary",
    "history": "SELECT *",
    "files": "SELECT *",
    "manifests": "SELECT *, partition_summaries AS partitions",
    "partitions": "SELECT *, total_data_file_size_in_bytes AS total_size",
    "refs": "SELECT *",
}
_EXPLAIN = re.compile(r"\s*EXPLAIN(\s+(EXTENDED|FORMATTED|COST|CODEGEN))?\s+", re.IGNORECASE)
_QUERIES = ("SELECT", "WITH", "(", "VALUES", "FROM", "TABLE")
_TRAVEL = ("VERSION", "SYSTEM_VERSION", "TIMESTAMP", "SYSTEM_TIME")

Writing = Literal["spark", "athena"]


@dataclass(frozen=True)
class SparkText:
    """What Spark is to run. `ranges` were added to its conditions."""

    text: str
    writing: Writing
    ranges: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Edit:
    """`start` up to `end` of the text becomes something else."""

    start: int
    end: int
    text: str


def to_spark(text: str, cluster: str, zone: str = "UTC") -> SparkText:
    """`cluster` is the database that tables without one are in, `zone` that of the session that will run it.

    What Spark has no word for and is not known here is refused by its name; all else is left to Spark.
    """
    if (explain := _EXPLAIN.match(text)) is not None:
        explained = to_spark(text[explain.end() :], cluster, zone)
        return replace(explained, text=explain[0] + explained.text)
    writing, tokens = _read(text)
    if not tokens or tokens[0].text.upper() not in _QUERIES:
        if writing == "athena":
            raise InvalidRequest(
                f"{tokens[0].text.upper()} cannot be asked with double-quoted names.",
                "Only queries can: begin with SELECT or WITH, or write names in backticks.",
            )
        return SparkText(text, writing)
    edits = list(_edits(text, tokens, writing, cluster))
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end), reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    text, ranges = add_ranges(text, zone)
    return SparkText(text, writing, ranges)


def _read(text: str) -> tuple[Writing, Sequence[Token]]:
    """How a text is written, and its tokens as they are meant there."""
    try:
        tokens = Dialect.get_or_raise("spark").tokenize(text)
    except TokenError:
        # A backslash before a closing quote, which is a letter like any other in Athena.
        athena = _athena_tokens(text)
        if not _names_tables_in_quotes(text, athena):
            raise InvalidRequest(
                "The query cannot be read: a quote, a backtick or a comment is not closed."
            ) from None
        return "athena", athena
    if _names_tables_in_quotes(text, tokens):
        return "athena", _athena_tokens(text)
    return "spark", tokens


def _athena_tokens(text: str) -> Sequence[Token]:
    try:
        return Dialect.get_or_raise("trino").tokenize(text)
    except TokenError as error:
        raise InvalidRequest(
            "The query cannot be read: a quote or a comment is not closed.",
            "Text stands in single quotes, names in double quotes.",
        ) from error


def _names_tables_in_quotes(text: str, tokens: Sequence[Token]) -> bool:
    for first in scan_clauses(tokens).tables:
        for place in name_chain(tokens, first):
            if place < len(tokens) and text[tokens[place].start] == '"':
                return not _is_inline(tokens, first)
    return False


def _is_inline(tokens: Sequence[Token], place: int) -> bool:
    """`FROM VALUES "a", "b"`: rows, not tables."""
    before = place - 1
    while before >= 0 and tokens[before].token_type not in (TokenType.FROM, TokenType.JOIN):
        if tokens[before].token_type == TokenType.VALUES:
            return True
        before -= 1
    return False


def _edits(text: str, tokens: Sequence[Token], writing: Writing, cluster: str) -> Iterator[_Edit]:
    done: set[int] = set()
    for first in scan_clauses(tokens).tables:
        table = _Table.of(text, tokens, first)
        if table is None:
            continue
        edit = table.edit(writing, cluster)
        if edit is not None:
            done.update(range(table.first, table.last + 1))
            yield edit
    if tokens and tokens[-1].token_type == TokenType.SEMICOLON:
        yield _Edit(tokens[-1].start, tokens[-1].end + 1, "")
    if writing == "spark":
        return
    for place, token in enumerate(tokens):
        raw = text[token.start : token.end + 1]
        if place in done:
            continue
        if token.token_type == TokenType.IDENTIFIER and raw.startswith('"'):
            yield _Edit(token.start, token.end + 1, quoted(raw[1:-1].replace('""', '"')))
        elif token.token_type == TokenType.STRING and raw.startswith("'"):
            yield _Edit(token.start, token.end + 1, _string(raw[1:-1].replace("''", "'")))


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _string(value: str) -> str:
    """Where Athena's strings take every letter as it is, Spark's take a backslash for the next."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


@dataclass(frozen=True)
class _Table:
    """A table's name in a query. `travel`: FOR … AS OF behind it, as text; `has_alias`: an alias follows."""

    parts: tuple[str, ...]
    first: int
    last: int
    start: int
    end: int
    travel: str
    has_alias: bool

    @classmethod
    def of(cls, text: str, tokens: Sequence[Token], first: int) -> "_Table | None":
        """None where something else than a name stands: VALUES, LATERAL, a function."""
        places = list(name_chain(tokens, first))
        last = places[-1]
        after = tokens[last + 1] if last + 1 < len(tokens) else None
        if after is not None and after.token_type == TokenType.L_PAREN:
            return None
        if tokens[first].token_type in (TokenType.VALUES, TokenType.LATERAL):
            return None
        parts = tuple(_name(text, tokens[place]) for place in places)
        if not _names_metadata(parts):
            return cls(parts, first, last, tokens[first].start, tokens[last].end + 1, "", False)
        behind = _travel_end(tokens, last)
        travel = text[tokens[last + 1].start : tokens[behind].end + 1] if behind > last else ""
        following = tokens[behind + 1] if behind + 1 < len(tokens) else None
        alias = following is not None and (
            following.token_type in (TokenType.ALIAS, TokenType.VAR, TokenType.IDENTIFIER)
        )
        return cls(parts, first, behind, tokens[first].start, tokens[behind].end + 1, travel, alias)

    def edit(self, writing: Writing, cluster: str) -> _Edit | None:
        """None where the name can stay as it is."""
        parts = list(self.parts)
        is_aws = len(parts) > 2 and parts[0].lower() == AWS_CATALOG
        if not is_aws and not _names_metadata(self.parts):
            if writing == "spark" or len(parts) == 1:
                return None
            if len(parts) > 2 and parts[0].lower() != CATALOG and parts[0].lower() != cluster.lower():
                raise InvalidRequest(
                    f"There is no catalog '{parts[0]}'.",
                    f'Write "AwsDataCatalog"."{cluster}"."{parts[-1]}", or leave the catalog away.',
                )
        if parts[0].lower() in (AWS_CATALOG, CATALOG) and len(parts) > 2:
            parts = parts[1:]
        if len(parts) > 1 and parts[0].lower() == cluster.lower():
            parts[0] = cluster
        if not _names_metadata(self.parts):
            return _Edit(self.start, self.end, _dotted([CATALOG, *parts]))
        return _Edit(self.start, self.end, self._metadata(parts, cluster))

    def _metadata(self, parts: Sequence[str], cluster: str) -> str:
        table, _, kind = parts[-1].rpartition("$")
        columns = METADATA.get(kind.lower())
        if columns is None or not table:
            raise InvalidRequest(
                f"There is no metadata table '{parts[-1]}'.",
                f"There are {', '.join('$' + name for name in METADATA)}, behind a table's name.",
            )
        space = parts[:-1] or [cluster]
        source = _dotted([CATALOG, *space, table, kind.lower()])
        travel = f" {self.travel}" if self.travel else ""
        alias = "" if self.has_alias else f" AS {quoted(parts[-1])}"
        return f"({columns} FROM {source}{travel}){alias}"


def _name(text: str, token: Token) -> str:
    raw = text[token.start : token.end + 1]
    if raw[0] in '"`' and raw[-1] == raw[0] and len(raw) > 1:
        return raw[1:-1].replace(raw[0] * 2, raw[0])
    return raw


def _names_metadata(parts: Sequence[str]) -> bool:
    """No topic has a $ in its name."""
    return "$" in parts[-1]


def _dotted(parts: Sequence[str]) -> str:
    return ".".join(quoted(part) for part in parts)


def _travel_end(tokens: Sequence[Token], last: int) -> int:
    """The last token of `[FOR] VERSION AS OF 12` behind a name; the name's own where there is none."""
    at = last + 1
    words = [token.text.upper() for token in tokens[at : at + 4]]
    if words[:1] == ["FOR"]:
        at, words = at + 1, words[1:]
    if len(words) < 3 or words[0] not in _TRAVEL or words[1:3] != ["AS", "OF"]:
        return last
    at += 3
    if at < len(tokens) and tokens[at].text.upper() in ("TIMESTAMP", "DATE"):
        at += 1
    if at < len(tokens) and tokens[at].token_type in (TokenType.NUMBER, TokenType.STRING):
        return at
    raise InvalidRequest(
        "The time travel of a metadata table is not understood.",
        "Write FOR VERSION AS OF 12, or FOR TIMESTAMP AS OF TIMESTAMP '2026-01-31 12:00:00'.",
    )
