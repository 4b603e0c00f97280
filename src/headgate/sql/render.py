"""Tables as the statements that would make them."""

from collections.abc import Mapping

from headgate.sql.durations import DAY, HOUR, MINUTE, SECOND
from headgate.sql.statements import CreateView, Distribution
from headgate.sql.tables import TableInfo
from headgate.sql.types import name_of, quote


def create_table_text(
    table: TableInfo, options: Mapping[str, str] | None = None, distribution: Distribution | None = None
) -> str:
    """The CREATE TABLE of a table; it can be read back."""
    lines = [
        f"  {quote(f.name)} {name_of(f.dataType)}{'' if f.nullable else ' NOT NULL'}"
        for f in table.columns.fields
    ]
    if table.primary_key:
        lines.append(f"  PRIMARY KEY ({', '.join(map(quote, table.primary_key))}) NOT ENFORCED")
    if table.watermark is not None:
        column = quote(table.watermark.column)
        late = f" - INTERVAL {_interval(table.watermark.delay_ms)}" if table.watermark.delay_ms else ""
        lines.append(f"  WATERMARK FOR {column} AS {column}{late}")
    text = f"CREATE TABLE {quote(table.name)} (\n" + ",\n".join(lines) + "\n)"
    if distribution is not None:
        if distribution.columns:
            text += f" DISTRIBUTED BY HASH({', '.join(map(quote, distribution.columns))})"
        else:
            text += " DISTRIBUTED"
        text += f" INTO {distribution.buckets} BUCKETS" if distribution.buckets else ""
    said = {"changelog.mode": table.changelog, **(options or {})}
    pairs = ",\n".join(f"  {_text(key)} = {_text(value)}" for key, value in said.items())
    return f"{text}\nWITH (\n{pairs}\n)"


def create_view_text(view: CreateView) -> str:
    columns = f" ({', '.join(map(quote, view.columns))})" if view.columns else ""
    return f"CREATE VIEW {quote(view.name)}{columns} AS\n{view.query.text}"


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _interval(ms: int) -> str:
    for unit, size in (("DAY", DAY), ("HOUR", HOUR), ("MINUTE", MINUTE), ("SECOND", SECOND)):
        if ms % size == 0:
            return f"'{ms // size}' {unit}"
    return f"'{ms}' MILLISECOND"
