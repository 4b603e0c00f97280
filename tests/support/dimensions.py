"""Facts, versions of what they are about and rows that change: the tables, and rows for them by chance."""

import random
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from pyspark.sql.types import (
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from headgate.sql.tables import AFTER, BEFORE, CAME, GONE, Catalog, Changelog, TableInfo, Watermark
from tests.support.queries import DELAY, ENDS, NOBODY, NOTHING, at, clock

_INT, _LONG, _TEXT, _TIME = IntegerType(), LongType(), StringType(), TimestampType()


def _table(
    name: str,
    columns: dict[str, Any],
    key: tuple[str, ...] = (),
    time: str = "t",
    changelog: Changelog | None = None,
) -> TableInfo:
    fields = StructType([StructField(column, kind) for column, kind in columns.items()])
    mark = Watermark(time, DELAY * 1000)
    return TableInfo(name, fields, key, changelog or ("upsert" if key else "append"), mark)


FACTS = Catalog(
    {
        "f": _table("f", {"id": _INT, "k": _INT, "h": _INT, "v": _LONG, "t": _TIME}),
        "c": _table("c", {"k": _INT, "n": _TEXT, "u": TimestampNTZType()}, ("k",), "u"),
        "h": _table("h", {"h": _INT, "n": _TEXT, "u": _TIME}, ("h",), "u"),
        "r": _table("r", {"id": _INT, "stars": _INT, "u": _TIME}, time="u"),
        "d": _table("d", {"id": _INT, "h": _INT, "v": _LONG, "stars": _INT, "t": _TIME}, ("id",)),
        # Rows that are taken back whole: by a key, and any number of equal ones.
        "p": _table(
            "p",
            {"id": _INT, "h": _INT, "v": _LONG, "stars": _INT, "t": _TIME},
            ("id",),
            changelog="retract",
        ),
        "m": _table("m", {"id": _INT, "h": _INT, "v": _LONG, "t": _TIME}, changelog="retract"),
    }
)


@dataclass(frozen=True)
class Record:
    """A row as it came: its values, its time, and whether it deletes. In a retract table, what it does, and
    the time of the row if that is another than the record's."""

    values: dict[str, Any]
    t: int
    deletes: bool = False
    op: str = CAME
    row_t: int | None = None

    def __getitem__(self, name: str) -> Any:
        return self.values[name]


@dataclass
class Facts:
    """The rows of each table in the order in which they came."""

    f: list[Record] = field(default_factory=list)
    c: list[Record] = field(default_factory=list)
    h: list[Record] = field(default_factory=list)
    r: list[Record] = field(default_factory=list)
    d: list[Record] = field(default_factory=list)
    p: list[Record] = field(default_factory=list)
    m: list[Record] = field(default_factory=list)
    #: Versions that came when event time had passed them, by table: they serve the facts behind the ends.
    behind: dict[str, list[Record]] = field(default_factory=dict)

    def version(self, table: str, key: str, value: Any, t: int) -> Record | None:
        """What was valid at a time: the greatest time, then the last that came."""
        known = [*getattr(self, table), *(self.behind.get(table, ()) if t > ENDS[-1] else ())]
        found = [
            (r.t, place, r)
            for place, r in enumerate(known)
            if r[key] == value and r.t <= t and r.op != BEFORE
        ]
        last = max(found, key=lambda one: one[:2], default=None)
        return None if last is None or last[2].deletes else last[2]

    def current(self, table: str, key: str) -> dict[Any, Record]:
        """The last row of each key, without those that were deleted."""
        last = {r[key]: r for r in getattr(self, table)}
        return {k: r for k, r in last.items() if not r.deletes}

    def with_late(self, late: "Facts", tables: str, after: "Facts | None" = None) -> "Facts":
        """These rows, of some tables those that came later than they should, and those behind them."""
        whole = Facts(behind={name: getattr(late, name) for name in "ch"})
        for name in FACTS.tables:
            rows = [*getattr(self, name), *(getattr(late, name) if name in tables else [])]
            setattr(whole, name, rows + (getattr(after, name) if after is not None else []))
        return whole

    def left(self) -> list[Record]:
        """The rows of the table without a key: those that came and were not taken back."""
        found: list[Record] = []
        for record in self.m:
            if record.deletes:
                same = (record.values, record.row_t)
                found.remove(next(one for one in found if (one.values, one.row_t) == same))
            else:
                found.append(record)
        return found


def generated(chance: random.Random, size: int) -> Facts:
    """Out of order but none late, repeated, deleted."""
    facts, base = Facts(), 0
    _take_back(facts, random.Random(chance.random()), size)

    def time() -> int:
        return base - chance.randrange(DELAY)

    for n in range(size):
        base += chance.randrange(4)
        keys = {"k": chance.randrange(3), "h": chance.randrange(3)}
        facts.f.append(Record({"id": n, **keys, "v": chance.randrange(9), "t": None}, time()))
        for name, key in (("c", "k"), ("h", "h")):
            if chance.random() < 0.5:
                values = {key: chance.randrange(3), "n": f"{name}{n}"}
                getattr(facts, name).append(Record(values, time(), chance.random() < 0.15))
        if chance.random() < 0.5:
            facts.r.append(Record({"id": chance.randrange(n + 1), "stars": chance.randrange(4)}, time()))
        facts.d.append(
            Record(
                {
                    "id": chance.randrange(size // 2 + 1),
                    "h": chance.randrange(3),
                    "v": chance.randrange(9),
                    "stars": chance.choice([None, 1, 2, 3]),
                },
                time(),
                chance.random() < 0.15,
            )
        )
    return facts


def late_rows(chance: random.Random, size: int) -> Facts:
    """Rows of the times of all others, to be sent when event time has passed them: at least one of each
    table. The facts among them are new ones."""
    late = generated(chance, size)
    for record in late.f:
        record.values["id"] += 1000
    late.c.append(Record({"k": chance.randrange(3), "n": "late"}, chance.randrange(20)))
    late.h.append(Record({"h": chance.randrange(3), "n": "late"}, chance.randrange(20)))
    late.r.append(Record({"id": chance.randrange(6), "stars": chance.randrange(4)}, chance.randrange(20)))
    # Newer than all that came in time, some of them hardly older than the facts behind the ends.
    for table, key in (("c", "k"), ("h", "h")):
        for n in range(size):
            t = ENDS[-1] - DELAY - 1 - chance.randrange(5) if chance.random() < 0.5 else chance.randrange(999)
            row = {key: chance.randrange(3), "n": f"late {table}{n}"}
            getattr(late, table).append(Record(row, t, chance.random() < 0.15))
    return late


def rows_behind_the_ends(chance: random.Random, size: int) -> Facts:
    """Facts that are newer than all rows: they have versions that came late."""
    keys = [{"k": chance.randrange(3), "h": chance.randrange(3)} for _ in range(size)]
    return Facts(
        f=[
            Record({"id": 2000 + n, **key, "v": chance.randrange(9), "t": None}, ENDS[-1] + 1 + n)
            for n, key in enumerate(keys)
        ]
    )


def _take_back(facts: Facts, chance: random.Random, size: int) -> None:
    """Rows that come and are taken back whole, out of order but none late."""
    base = 0
    kept: dict[int, Record] = {}
    many: list[Record] = []

    def put(table: list[Record], op: str, row: Record) -> None:
        minus = op in (BEFORE, GONE)
        t = base - chance.randrange(DELAY) if minus else row.t
        table.append(Record(row.values, t, minus, op, row.row_t))

    for _ in range(size):
        base += chance.randrange(4)
        t = base - chance.randrange(DELAY)
        id_ = chance.randrange(size // 2 + 1)
        before = kept.pop(id_, None)
        gone = before is not None and chance.random() < 0.2
        if before is not None:
            put(facts.p, GONE if gone else BEFORE, before)
        if not gone:
            values = {"id": id_, "h": chance.randrange(3), "v": chance.randrange(9)}
            kept[id_] = Record({**values, "stars": chance.choice([None, 1, 2, 3])}, t, row_t=t)
            put(facts.p, CAME if before is None else AFTER, kept[id_])
        if many and chance.random() < 0.4:
            put(facts.m, GONE, many.pop(chance.randrange(len(many))))
        else:
            values = {"id": chance.randrange(2), "h": chance.randrange(2), "v": chance.randrange(3)}
            many.append(Record(values, t, row_t=t // 7 * 7))
            put(facts.m, CAME, many[-1])


def columns(name: str, record: Record) -> dict[str, Any]:
    """A record as the columns of its table; a delete has its key alone, unless it takes a row back."""
    table = FACTS.tables[name]
    mark = table.watermark
    assert mark is not None
    t = record.t if record.row_t is None else record.row_t
    time: datetime = clock(t) if name == "c" else at(t)
    values = {**record.values, mark.column: time}
    if record.deletes and table.changelog == "upsert":
        return {key: values[key] for key in table.primary_key}
    return values


def ends(name: str) -> list[dict[str, Any]]:
    """Rows far behind all others, which meet none."""
    return [nobody(name, end) for end in ENDS]


def nobody(name: str, t: int) -> dict[str, Any]:
    """A row of a table that meets none but its like: it moves event time."""
    table = FACTS.tables[name]
    mark = table.watermark
    assert mark is not None
    row: dict[str, Any] = {
        field.name: NOBODY if isinstance(field.dataType, IntegerType) else None
        for field in table.columns.fields
    }
    row[mark.column] = clock(t) if name == "c" else at(t)
    if "v" in row:
        row["v"] = NOTHING
    return row
