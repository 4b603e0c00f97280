"""The statements of a script, as frozen nouns. They say what was written; nothing here knows a table."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from sqlglot import exp

from headgate.sql.types import SqlType


@dataclass(frozen=True)
class Column:
    """A column of CREATE TABLE or of ALTER TABLE … ADD."""

    name: str
    type: SqlType
    nullable: bool = True
    comment: str | None = None


@dataclass(frozen=True)
class WatermarkClause:
    """`WATERMARK FOR column AS column - INTERVAL …`: how far behind its greatest value rows may come."""

    column: str
    delay_ms: int


@dataclass(frozen=True)
class Distribution:
    """`DISTRIBUTED BY HASH(…) INTO n BUCKETS`: the key of the topic, and its partitions."""

    columns: tuple[str, ...] = ()
    buckets: int | None = None


@dataclass(frozen=True)
class Query:
    """A query and the text that it was written as."""

    tree: exp.Query
    text: str


@dataclass(frozen=True)
class CreateTable:
    """`columns` may be empty for CREATE TABLE … AS: the query has them then."""

    name: str
    columns: tuple[Column, ...] = ()
    primary_key: tuple[str, ...] = ()
    watermark: WatermarkClause | None = None
    distribution: Distribution | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    query: Query | None = None
    if_not_exists: bool = False
    comment: str | None = None


@dataclass(frozen=True)
class CreateView:
    name: str
    query: Query
    columns: tuple[str, ...] = ()
    if_not_exists: bool = False
    or_replace: bool = False
    comment: str | None = None


@dataclass(frozen=True)
class InsertInto:
    """`columns` is empty when the statement names none."""

    table: str
    query: Query
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class StatementSet:
    """Inserts that are one job."""

    inserts: tuple[InsertInto, ...]


@dataclass(frozen=True)
class AlterTableAdd:
    table: str
    columns: tuple[Column, ...]


@dataclass(frozen=True)
class AlterTableModifyWatermark:
    table: str
    watermark: WatermarkClause


@dataclass(frozen=True)
class AlterTableDropWatermark:
    table: str


@dataclass(frozen=True)
class AlterTableSet:
    table: str
    options: Mapping[str, str]


@dataclass(frozen=True)
class AlterTableReset:
    table: str
    keys: tuple[str, ...]


@dataclass(frozen=True)
class Drop:
    kind: Literal["table", "view", "statement"]
    name: str
    if_exists: bool = False


@dataclass(frozen=True)
class SetOption:
    """Without a key: show what is set."""

    key: str | None = None
    value: str | None = None


@dataclass(frozen=True)
class Reset:
    """Without a key: all."""

    key: str | None = None


@dataclass(frozen=True)
class Show:
    """`name` is the table of SHOW CREATE TABLE, `like` the pattern of SHOW TABLES LIKE."""

    what: Literal["tables", "views", "statements", "functions", "create table", "create view", "jobs"]
    name: str | None = None
    like: str | None = None


@dataclass(frozen=True)
class Describe:
    name: str
    extended: bool = False


@dataclass(frozen=True)
class Select:
    query: Query


@dataclass(frozen=True)
class Explain:
    inner: "Select | InsertInto | CreateTable | StatementSet"


Statement = (
    CreateTable
    | CreateView
    | InsertInto
    | StatementSet
    | AlterTableAdd
    | AlterTableModifyWatermark
    | AlterTableDropWatermark
    | AlterTableSet
    | AlterTableReset
    | Drop
    | SetOption
    | Reset
    | Show
    | Describe
    | Select
    | Explain
)
