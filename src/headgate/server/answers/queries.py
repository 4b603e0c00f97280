"""Queries: asked, in the history, and beside each other."""

from typing import Literal

from headgate.server.answers.shape import Maybe, Shape
from headgate.store.queries import QueryState

QueryKind = Literal["live", "snapshot", "lake", "changes"]


class ColumnAnswer(Shape):
    """A column of a result."""

    name: str
    type: str


class StartedQueryAnswer(Shape):
    """A query whose rows can be read. What its rows are is null where only they tell; `key` is that of a
    result that changes."""

    id: str
    kind: QueryKind
    columns: list[ColumnAnswer] | None
    key: list[str] | None
    warnings: list[str]


class QueryTableAnswer(Shape):
    """What a query read of a snapshot, and what it skipped, where that was looked at."""

    table: str
    snapshot_id: str | None
    files: int
    bytes: int
    files_skipped: Maybe[int]
    bytes_skipped: Maybe[int]
    reason: Maybe[str | None]


class QueryAnswer(Shape):
    """A query of the history. Figures are null where nothing is counted."""

    id: str
    kind: QueryKind
    sql: str
    owner: str
    principal: str
    state: QueryState
    error: str
    tables: list[QueryTableAnswer]
    started_at: float
    ended_at: float | None
    seconds: float | None
    rows: int | None
    result_bytes: int | None
    files: int | None
    bytes: int | None
    files_skipped: int | None
    bytes_skipped: int | None


class BesideAnswer(Shape):
    """A figure of two queries."""

    a: float | None
    b: float | None
    difference: float | None
    ratio: float | None


class QueryFiguresAnswer(Shape):
    """What is counted of every query, of two of them."""

    seconds: BesideAnswer
    rows: BesideAnswer
    result_bytes: BesideAnswer
    files: BesideAnswer
    bytes: BesideAnswer
    files_skipped: BesideAnswer
    bytes_skipped: BesideAnswer


class ComparedQueriesAnswer(Shape):
    """Two queries side by side."""

    a: QueryAnswer
    b: QueryAnswer
    same_sql: bool
    same_snapshots: bool
    figures: QueryFiguresAnswer
