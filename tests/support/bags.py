"""Generated joins and groups over bags: rows that repeat, with NULLs. SQLite has the answers."""

import random
import sqlite3
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql.types import IntegerType, LongType, StructField, StructType

from headgate.sql.tables import Catalog, TableInfo

Row = dict[str, Any]
COLUMNS = ("k", "g", "v")
#: An upsert table: the last row of an id counts.
KEYED = "u"


def _table(name: str) -> TableInfo:
    fields = [StructField("k", IntegerType()), StructField("g", IntegerType()), StructField("v", LongType())]
    if name == KEYED:
        return TableInfo(name, StructType([StructField("id", IntegerType()), *fields]), ("id",), "upsert")
    return TableInfo(name, StructType(fields))


BAGS = Catalog({name: _table(name) for name in ("a", "b", "c", KEYED)})


@dataclass
class Bag:
    """A query, and the rows of its tables in the order in which they come."""

    sql: str
    rows: dict[str, list[Row]] = field(default_factory=dict)

    def answer(self) -> list[tuple[Any, ...]]:
        """The rows that SQLite gives."""
        with sqlite3.connect(":memory:") as database:
            for name, rows in self.rows.items():
                columns = BAGS.tables[name].columns.names
                database.execute(f"CREATE TABLE {name} ({', '.join(columns)})")
                whole = list({row["id"]: row for row in rows}.values()) if name == KEYED else rows
                marks = ", ".join("?" for _ in columns)
                database.executemany(
                    f"INSERT INTO {name} VALUES ({marks})",
                    [[row[column] for column in columns] for row in whole if row.get("$op") != "d"],
                )
            return database.execute(self.sql).fetchall()


def generated(chance: random.Random, size: int = 9) -> Bag:
    tables = chance.sample(["a", "b", "c", KEYED], chance.choice([2, 2, 3]))
    return Bag(_query(chance, tables), {name: _rows(chance, name, chance.randrange(size)) for name in tables})


def _rows(chance: random.Random, name: str, size: int) -> list[Row]:
    found: list[Row] = []
    for _ in range(size):
        if found and name != KEYED and chance.random() < 0.4:
            found.append(dict(chance.choice(found)))
            continue
        row: Row = {c: chance.choice([None, 1, 2, 3]) for c in COLUMNS}
        if name == KEYED:
            # The records of a key are in one partition.
            does = "d" if chance.random() < 0.2 else "u"
            row |= {"id": chance.randrange(1, 5), "$op": does, "$partition": 0}
        found.append(row)
    return found


def _query(chance: random.Random, tables: list[str]) -> str:
    """A SELECT over joins of these tables, gathered in one of several ways."""
    first, *others = tables
    source = _source(chance, first)
    known = [first]
    for name in others:
        how = chance.choice(["LEFT JOIN", "LEFT JOIN", "JOIN"])
        source += f" {how} {_source(chance, name)} ON {_condition(chance, name, known)}"
        known.append(name)
    where = f" WHERE {_where(chance, known)}" if chance.random() < 0.3 else ""
    columns = [f"{name}.{column}" for name in known for column in COLUMNS]
    if chance.random() < 0.3:
        shown = chance.sample(columns, 2)
        # A join that nothing gathers is a bag itself.
        how = chance.choice(["SELECT DISTINCT", "SELECT"])
        return f"{how} {shown[0]} AS x0, {shown[1]} AS x1 FROM {source}{where}"
    keys = chance.sample(columns, chance.choice([1, 1, 2]))
    value = chance.choice([c for c in columns if c not in keys])
    shown = [f"{key} AS x{place}" for place, key in enumerate(keys)]
    shown.append("COUNT(*) AS n")
    calls = [f"COUNT({value})", f"SUM({value})", f"MIN({value})", f"MAX({value})", f"COUNT(DISTINCT {value})"]
    shown += [f"{call} AS y{place}" for place, call in enumerate(chance.sample(calls, 2))]
    having = " HAVING COUNT(*) > 1" if chance.random() < 0.2 else ""
    return f"SELECT {', '.join(shown)} FROM {source}{where} GROUP BY {', '.join(keys)}{having}"


def _source(chance: random.Random, name: str) -> str:
    """A table, some of its rows, or its groups."""
    if chance.random() < 0.15:
        return f"(SELECT * FROM {name} WHERE v IS NULL OR v > 1) AS {name}"
    if name != KEYED and chance.random() < 0.2:
        return f"(SELECT k, MAX(g) AS g, COUNT(*) AS v FROM {name} GROUP BY k) AS {name}"
    return f"{name} AS {name}"


def _condition(chance: random.Random, name: str, known: list[str]) -> str:
    other = chance.choice(known)
    key = "id" if name == KEYED and chance.random() < 0.5 else "k"
    found = [f"{name}.{key} = {other}.k"]
    if chance.random() < 0.3:
        found.append(f"{other}.g = {name}.g")
    if chance.random() < 0.2:
        found.append(f"{name}.v >= {other}.v")
    if chance.random() < 0.2:
        found.append(f"{name}.v > 1")
    if chance.random() < 0.15:
        found.append(f"{other}.v > 1")
    return " AND ".join(found)


def _where(chance: random.Random, known: list[str]) -> str:
    name = chance.choice(known)
    return chance.choice([f"{name}.v > 1", f"{name}.g IS NULL", f"{name}.k <> 2"])
