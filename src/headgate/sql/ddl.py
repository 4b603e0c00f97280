"""The parser of statements: everything that is not a query."""

from typing import Any

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from headgate.errors import InvalidRequest
from headgate.sql.dialect import QueryParser
from headgate.sql.durations import interval_ms
from headgate.sql.statements import (
    AlterTableAdd,
    AlterTableDropWatermark,
    AlterTableModifyWatermark,
    AlterTableReset,
    AlterTableSet,
    Column,
    CreateTable,
    CreateView,
    Describe,
    Distribution,
    Drop,
    Explain,
    InsertInto,
    Query,
    Reset,
    Select,
    SetOption,
    Show,
    Statement,
    StatementSet,
    WatermarkClause,
)
from headgate.sql.type_names import refusal

_KNOWN = (
    "CREATE TABLE, CREATE VIEW, INSERT INTO, EXECUTE STATEMENT SET, ALTER TABLE, DROP, SET, RESET, SHOW, "
    "DESCRIBE, EXPLAIN and SELECT"
)
_SHOWN: dict[str, Any] = {"TABLES": "tables", "VIEWS": "views", "STATEMENTS": "statements", "JOBS": "jobs"}


class StatementParser(QueryParser):
    """One statement's tokens in, one statement out."""

    def statement(self) -> Statement:
        token = self._curr
        match token.text.upper() if token else "":
            case "CREATE":
                self._advance()
                return self._create()
            case "INSERT":
                return self._insert()
            case "ALTER":
                self._advance()
                self._expect("TABLE")
                return self._alter()
            case "DROP":
                self._advance()
                return self._drop()
            case "SET":
                self._advance()
                return self._set()
            case "RESET":
                self._advance()
                return Reset(self._key() if self._curr else None)
            case "SHOW":
                self._advance()
                return self._show()
            case "DESCRIBE" | "DESC":
                self._advance()
                extended = bool(self._match_text_seq("EXTENDED"))
                return Describe(self.table_name(), extended)
            case "EXPLAIN":
                self._advance()
                self._match_text_seq("PLAN", "FOR")
                return self._explain(token)
            case "SELECT" | "WITH" | "(":
                return Select(self._query())
            case "VALUES":
                self.refuse("VALUES alone is no statement: a statement reads a table")
        raise self.error(f"'{token.text}' begins no statement that is known; there are {_KNOWN}", token)

    def _explain(self, token: Token) -> Explain:
        inner = self.statement()
        if not isinstance(inner, (Select, InsertInto, CreateTable, StatementSet)):
            raise refusal("EXPLAIN takes a query, INSERT INTO or CREATE TABLE … AS", token)
        if isinstance(inner, CreateTable) and inner.query is None:
            raise refusal("there is nothing to explain in a CREATE TABLE without AS", token)
        return Explain(inner)

    # --- names, options, queries

    def table_name(self) -> str:
        """A table's name is a topic's: one word, or anything in backticks."""
        name = self.name_here()
        if self._match(TokenType.DOT):
            self.refuse(
                f"a table has one name: a topic with dots in it is written in backticks, `{name}."
                f"{self._curr.text if self._curr else ''}…`",
                self._prev,
            )
        return name

    def _names(self) -> tuple[str, ...]:
        self._expect("(")
        names = [self.name_here()]
        while self._match(TokenType.COMMA):
            names.append(self.name_here())
        self._close_paren()
        return tuple(names)

    def _close_paren(self) -> None:
        self._expect(")")

    def _string(self) -> str:
        if not self._match(TokenType.STRING):
            self.refuse(f"expected text in quotes, found '{self._curr.text if self._curr else 'the end'}'")
        return str(self._prev.text)

    def _key(self) -> str:
        """The key of an option: in quotes, or bare words with dots and dashes between them."""
        if self._match(TokenType.STRING):
            return str(self._prev.text)
        parts: list[str] = []
        while self._curr and self._curr.token_type != TokenType.EQ:
            parts.append(self._curr.text)
            self._advance()
        if not parts:
            self.refuse("expected the name of an option")
        return "".join(parts)

    def _options(self) -> dict[str, str]:
        self._expect("(")
        found: dict[str, str] = {}
        while True:
            token = self._curr
            key = self._string()
            if key in found:
                raise refusal(f"option '{key}' is set twice", token)
            self._expect("=")
            found[key] = self._string()
            if not self._match(TokenType.COMMA):
                break
        self._close_paren()
        return found

    def _query(self) -> Query:
        start = self._curr
        tree = self._parse_query_expression()
        end = self._prev
        if not isinstance(tree, exp.Query):
            self.refuse("expected a query, SELECT …", start)
        return Query(tree, self.sql[start.start : end.end + 1] if start and end else "")

    def _parse_query_expression(self) -> exp.Expr | None:
        if self._match(TokenType.WITH, advance=False):
            with_clause = self._parse_with()
            this = self._parse_set_operations(self._parse_select())
            if isinstance(this, exp.Query) and with_clause is not None:
                this.set("with_", with_clause)
            return this
        found = self._parse_set_operations(self._parse_select(nested=False, parse_set_operation=False))
        return self._parse_query_modifiers(found) if found is not None else None

    # --- CREATE

    def _create(self) -> Statement:
        replace = bool(self._match_text_seq("OR", "REPLACE"))
        self._match_text_seq("TEMPORARY")
        if self._match_text_seq("VIEW"):
            return self._create_view(replace)
        if self._match_text_seq("TABLE"):
            if replace:
                self.refuse("CREATE OR REPLACE TABLE would lose the topic: drop it first")
            return self._create_table()
        found = self._curr
        raise self.error(
            f"CREATE {found.text if found else ''} is not known: there are CREATE TABLE and CREATE VIEW"
        )

    def _if_not_exists(self) -> bool:
        return bool(self._match_text_seq("IF", "NOT", "EXISTS"))

    def _comment(self) -> str | None:
        return self._string() if self._match_text_seq("COMMENT") else None

    def _create_view(self, replace: bool) -> CreateView:
        if_not_exists = self._if_not_exists()
        name = self.table_name()
        columns = self._names() if self._curr and self._curr.token_type == TokenType.L_PAREN else ()
        comment = self._comment()
        self._expect("AS")
        return CreateView(name, self._query(), columns, if_not_exists, replace, comment)

    def _create_table(self) -> CreateTable:
        if_not_exists = self._if_not_exists()
        name = self.table_name()
        columns: list[Column] = []
        keys: tuple[str, ...] = ()
        watermark: WatermarkClause | None = None
        if self._match(TokenType.L_PAREN):
            while not self._match(TokenType.R_PAREN):
                if self._match_text_seq("PRIMARY", "KEY") or self._match(TokenType.PRIMARY_KEY):
                    keys = self._unique(keys, self._names(), "PRIMARY KEY")
                    self._not_enforced()
                elif self._match_text_seq("CONSTRAINT"):
                    self.name_here()
                    if not self._match(TokenType.PRIMARY_KEY):
                        self._expect("PRIMARY", "KEY")
                    keys = self._unique(keys, self._names(), "PRIMARY KEY")
                    self._not_enforced()
                elif self._match_text_seq("WATERMARK"):
                    if watermark is not None:
                        self.refuse("a table has one WATERMARK", self._prev)
                    watermark = self._watermark()
                else:
                    column, is_key = self._column()
                    columns.append(column)
                    if is_key:
                        keys = self._unique(keys, (column.name,), "PRIMARY KEY")
                if not self._match(TokenType.COMMA):
                    self._close_paren()
                    break
        comment = self._comment()
        distribution = self._distribution()
        options = self._options() if self._match_text_seq("WITH") else {}
        if self._match_text_seq("LIKE"):
            self.refuse("CREATE TABLE … LIKE is not known: name the columns", self._prev)
        query = self._query() if self._match_text_seq("AS") else None
        self._check_names(columns)
        if not columns and query is None:
            self.refuse(f"table '{name}' has no columns: name them, or add AS SELECT …")
        return CreateTable(
            name, tuple(columns), keys, watermark, distribution, options, query, if_not_exists, comment
        )

    def _unique(self, old: tuple[str, ...], new: tuple[str, ...], what: str) -> tuple[str, ...]:
        if old:
            self.refuse(f"a table has one {what}", self._prev)
        return new

    def _check_names(self, columns: list[Column]) -> None:
        seen: set[str] = set()
        for column in columns:
            if column.name.lower() in seen:
                self.refuse(f"column '{column.name}' is there twice (letters do not tell names apart)")
            seen.add(column.name.lower())

    def _not_enforced(self) -> None:
        if not self._match_text_seq("NOT", "ENFORCED"):
            self.refuse("a PRIMARY KEY is NOT ENFORCED here: say so")

    def _column(self) -> tuple[Column, bool]:
        token = self._curr
        name = self.name_here()
        if name.startswith("$"):
            raise refusal(f"column '{name}' is the system's: it is there without being named", token)
        if self._match_text_seq("AS"):
            self.refuse(
                f"column '{name}' is computed: write its expression into the query that reads or fills it"
            )
        kind = self.sql_type()
        nullable, is_key, comment = True, False, None
        while True:
            if self._match_text_seq("NOT", "NULL"):
                nullable = False
            elif self._match_text_seq("NULL"):
                nullable = True
            elif self._match_text_seq("PRIMARY", "KEY") or self._match(TokenType.PRIMARY_KEY):
                self._not_enforced()
                is_key = True
            elif self._match_text_seq("COMMENT"):
                comment = self._string()
            elif self._match_text_seq("METADATA"):
                self.refuse(
                    f"column '{name}': METADATA is there without being named, as $rowtime, $partition, "
                    f"$offset"
                )
            else:
                break
        return Column(name, kind, nullable, comment), is_key

    def _watermark(self) -> WatermarkClause:
        self._expect("FOR")
        column = self.name_here()
        self._expect("AS")
        token = self._curr
        expression = self._parse_assignment()
        return WatermarkClause(column, watermark_delay(column, expression, token))

    def _distribution(self) -> Distribution | None:
        columns: tuple[str, ...] = ()
        if self._match_text_seq("DISTRIBUTED", "BY") or self._match_text_seq("DISTRIBUTED BY"):
            self._match_text_seq("HASH")
            columns = self._names()
        elif not self._match_text_seq("DISTRIBUTED"):
            return None
        buckets = None
        if self._match_text_seq("INTO"):
            buckets = self.number_here()
            if buckets < 1:
                self.refuse("a table has at least one bucket", self._prev)
            self._expect("BUCKETS")
        return Distribution(columns, buckets)

    # --- INSERT, ALTER, DROP, SET, SHOW

    def _insert(self) -> InsertInto:
        self._advance()
        if self._match_text_seq("OVERWRITE"):
            self.refuse("INSERT OVERWRITE: a topic is only added to", self._prev)
        self._expect("INTO")
        table = self.table_name()
        columns: tuple[str, ...] = ()
        if (
            self._curr
            and self._curr.token_type == TokenType.L_PAREN
            and self._next.text.upper() not in ("SELECT", "WITH", "(")
        ):
            columns = self._names()
        if self._curr and self._curr.text.upper() == "VALUES":
            self.refuse(
                "INSERT INTO … VALUES: a statement runs on a table; produce single records with a producer"
            )
        return InsertInto(table, self._query(), columns)

    def _alter(self) -> Statement:
        self._match_text_seq("IF", "EXISTS")
        table = self.table_name()
        if self._match_text_seq("ADD"):
            return self._alter_add(table)
        if self._match_text_seq("MODIFY"):
            if self._match_text_seq("("):
                self._expect("WATERMARK")
                watermark = self._watermark()
                self._close_paren()
            else:
                if not self._match_text_seq("WATERMARK"):
                    self.refuse("MODIFY knows WATERMARK; columns are added, not changed")
                watermark = self._watermark()
            return AlterTableModifyWatermark(table, watermark)
        if self._match_text_seq("SET"):
            return AlterTableSet(table, self._options())
        if self._match_text_seq("RESET"):
            self._expect("(")
            keys = [self._string()]
            while self._match(TokenType.COMMA):
                keys.append(self._string())
            self._close_paren()
            return AlterTableReset(table, tuple(keys))
        if self._match_text_seq("DROP"):
            self._expect("WATERMARK")
            return AlterTableDropWatermark(table)
        raise self.error("ALTER TABLE knows ADD (…), MODIFY WATERMARK, DROP WATERMARK, SET (…) and RESET (…)")

    def _alter_add(self, table: str) -> Statement:
        wrapped = bool(self._match(TokenType.L_PAREN))
        columns: list[Column] = []
        while True:
            if self._match_text_seq("WATERMARK"):
                watermark = self._watermark()
                if wrapped:
                    self._close_paren()
                if columns:
                    self.refuse("add columns and the WATERMARK one after the other")
                return AlterTableModifyWatermark(table, watermark)
            self._match_text_seq("COLUMN")
            column, is_key = self._column()
            if is_key or not column.nullable:
                self.refuse(f"column '{column.name}' must be nullable: records that are there do not have it")
            columns.append(column)
            if not wrapped or not self._match(TokenType.COMMA):
                break
        if wrapped:
            self._close_paren()
        self._check_names(columns)
        return AlterTableAdd(table, tuple(columns))

    def _drop(self) -> Drop:
        self._match_text_seq("TEMPORARY")
        if not self._match_texts(("TABLE", "VIEW", "STATEMENT")):
            self.refuse("DROP knows TABLE, VIEW and STATEMENT")
        kind: Any = self._prev.text.lower()
        if_exists = bool(self._match_text_seq("IF", "EXISTS"))
        if kind == "statement" and self._match(TokenType.STRING):
            return Drop(kind, self._prev.text, if_exists)
        return Drop(kind, self.table_name(), if_exists)

    def _set(self) -> SetOption:
        if not self._curr:
            return SetOption()
        key = self._key()
        self._expect("=")
        return SetOption(key, self._string())

    def _show(self) -> Show:
        if self._match_text_seq("CREATE"):
            if not self._match_texts(("TABLE", "VIEW")):
                self.refuse("SHOW CREATE knows TABLE and VIEW")
            what: Any = "create table" if self._prev.text.upper() == "TABLE" else "create view"
            return Show(what, self.table_name())
        if self._match_texts(("FUNCTIONS",)):
            return Show("functions", like=self._like())
        if not self._match_texts(tuple(_SHOWN)):
            self.refuse("SHOW knows TABLES, VIEWS, STATEMENTS, FUNCTIONS, CREATE TABLE and CREATE VIEW")
        return Show(_SHOWN[self._prev.text.upper()], like=self._like())

    def _like(self) -> str | None:
        return self._string() if self._match_text_seq("LIKE") else None


def watermark_delay(column: str, expression: exp.Expr | None, at: Token | None) -> int:
    """The delay of `column` or `column - INTERVAL …`; nothing else is a watermark here."""

    def wrong() -> InvalidRequest:
        return refusal(
            f"a watermark is written `{column}` or `{column} - INTERVAL '5' SECOND`: the same column, "
            f"less a time",
            at,
        )

    while isinstance(expression, exp.Paren):
        expression = expression.this
    if isinstance(expression, exp.Column) and expression.name == column:
        return 0
    if (
        isinstance(expression, exp.Sub)
        and isinstance(expression.this, exp.Column)
        and expression.this.name == column
        and isinstance(expression.expression, exp.Interval)
    ):
        delay = interval_ms(expression.expression)
        if delay is None:
            raise refusal("a watermark's delay is a fixed time: no months and years", at)
        if delay < 0:
            raise wrong()
        return delay
    raise wrong()
