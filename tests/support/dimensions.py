"""Queries over facts, versions and rows that change, and what a plain computation gives for each."""

import random
from collections.abc import Callable
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

    def version(self, table: str, key: str, value: Any, t: int) -> Record | None:
        """What was valid at a time: the greatest time, then the last that came."""
        found = [
            (r.t, place, r)
            for place, r in enumerate(getattr(self, table))
            if r[key] == value and r.t <= t and r.op != BEFORE
        ]
        last = max(found, key=lambda one: one[:2], default=None)
        return None if last is None or last[2].deletes else last[2]

    def current(self, table: str, key: str) -> dict[Any, Record]:
        """The last row of each key, without those that were deleted."""
        last = {r[key]: r for r in getattr(self, table)}
        return {k: r for k, r in last.items() if not r.deletes}

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


@dataclass(frozen=True)
class Case:
    sql: str
    rows: Callable[[Facts], list[tuple[Any, ...]]]
    #: Of rows that change: by which columns they replace each other.
    key: tuple[str, ...] = ()

    @property
    def changes(self) -> bool:
        return bool(self.key)


def _latest(facts: Facts, id_: int) -> Record | None:
    found = [r for r in facts.r if r["id"] == id_]
    return found[-1] if found else None


def _temporal(facts: Facts) -> list[tuple[Any, ...]]:
    pairs = [(f, facts.version("c", "k", f["k"], f.t)) for f in facts.f]
    return [(f["id"], f["v"], c["n"], at(f.t)) for f, c in pairs if c is not None]


def _temporal_left(facts: Facts) -> list[tuple[Any, ...]]:
    pairs = [(f, facts.version("c", "k", f["k"], f.t)) for f in facts.f]
    return [(f["id"], None if c is None else c["n"]) for f, c in pairs]


def _chain(facts: Facts) -> list[tuple[Any, ...]]:
    found = []
    for f in facts.f:
        c, h = facts.version("c", "k", f["k"], f.t), facts.version("h", "h", f["h"], f.t)
        if c is not None and h is not None:
            found.append((f["id"], c["n"], h["n"]))
    return found


def _reviewed(facts: Facts) -> list[tuple[Any, ...]]:
    found = {}
    for id_, c, h in _chain(facts):
        r = _latest(facts, id_)
        found[id_] = (id_, c, h, None if r is None else r["stars"])
    return list(found.values())


def _groups(rows: list[Record], by: Callable[[Record], Any]) -> dict[Any, list[Record]]:
    found: dict[Any, list[Record]] = {}
    for row in rows:
        found.setdefault(by(row), []).append(row)
    return found


def _counted(facts: Facts, table: str = "d") -> list[tuple[Any, ...]]:
    found = []
    for h, rows in _groups(list(facts.current(table, "id").values()), lambda r: r["h"]).items():
        stars = [r["stars"] for r in rows if r["stars"] is not None]
        found.append(
            (
                h,
                len(rows),
                len(stars),
                sum(r["v"] for r in rows),
                sum(stars) / len(stars) if stars else None,
                min(stars, default=None),
                max(r["v"] for r in rows),
                len(set(stars)),
            )
        )
    return found


def _windows(facts: Facts) -> list[tuple[Any, ...]]:
    rows = _groups(list(facts.current("d", "id").values()), lambda r: (r.t // 10 * 10, r["h"]))
    return [
        (clock(start), clock(start + 10), h, len(found), sum(r["v"] for r in found))
        for (start, h), found in rows.items()
    ]


def _many(facts: Facts) -> list[tuple[Any, ...]]:
    rows = [r for r in facts.left() if r["v"] >= 1]
    return [
        (
            h,
            len(found),
            sum(r["v"] for r in found),
            min(r["v"] for r in found),
            len({r["id"] for r in found}),
        )
        for h, found in _groups(rows, lambda r: r["h"]).items()
    ]


def _many_windows(facts: Facts) -> list[tuple[Any, ...]]:
    rows = _groups(facts.left(), lambda r: ((r.row_t or 0) // 10 * 10, r["h"]))
    return [
        (clock(start), clock(start + 10), h, len(found), sum(r["v"] for r in found))
        for (start, h), found in rows.items()
    ]


def _kept_joined(facts: Facts) -> list[tuple[Any, ...]]:
    kept = facts.current("p", "id")
    return [
        (id_, r["stars"], kept[id_]["v"] if id_ in kept else None)
        for id_, r in facts.current("d", "id").items()
    ]


def _kept_versions(facts: Facts) -> list[tuple[Any, ...]]:
    pairs = [(f, facts.version("p", "id", f["id"], f.t)) for f in facts.f]
    return [(f["id"], None if p is None else p["v"]) for f, p in pairs]


def _joined(facts: Facts) -> list[tuple[Any, ...]]:
    last = {f["id"]: f for f in facts.f}
    found = []
    for id_, f in last.items():
        r = _latest(facts, id_)
        found.append((id_, f["v"], None if r is None else r["stars"]))
    return found


def _both_change(facts: Facts) -> list[tuple[Any, ...]]:
    hotels = facts.current("h", "h")
    counts = _groups(list(facts.current("d", "id").values()), lambda r: r["h"])
    return [(h, len(rows), hotels[h]["n"] if h in hotels else None) for h, rows in counts.items()]


def _exists(wanted: bool) -> Callable[[Facts], list[tuple[Any, ...]]]:
    def rows(facts: Facts) -> list[tuple[Any, ...]]:
        return [
            (f["id"], f["v"])
            for f in facts.f
            if any(r["id"] == f["id"] and f.t <= r.t <= f.t + 6 and r["stars"] > 1 for r in facts.r) == wanted
        ]

    return rows


def _rolling(facts: Facts) -> list[tuple[Any, ...]]:
    found = []
    for f in facts.f:
        near = [o for o in facts.f if o["k"] == f["k"] and f.t - 8 <= o.t <= f.t]
        close = [o for o in near if f.t - 3 <= o.t]
        found.append(
            (
                f["id"],
                sum(o["v"] for o in near),
                len({o["h"] for o in near}),
                len(close),
                max(o["v"] for o in close),
            )
        )
    return found


def _top(facts: Facts) -> list[tuple[Any, ...]]:
    found = []
    for k, rows in _groups(facts.f, lambda r: r["k"]).items():
        order = sorted(rows, key=lambda r: (r["v"], r["id"]), reverse=True)
        found += [(k, place, r["v"], r["id"]) for place, r in enumerate(order[:2], 1)]
    return found


def _sizes(facts: Facts) -> list[tuple[Any, ...]]:
    counts = _groups(facts.f, lambda r: r["k"])
    sizes = _groups([Record({"n": len(rows)}, 0) for rows in counts.values()], lambda r: r["n"])
    return [(n, len(rows)) for n, rows in sizes.items()]


def _meetings(facts: Facts) -> list[tuple[Any, ...]]:
    pairs = [(f, r) for f in facts.f for r in facts.r if f["id"] == r["id"] and f.t <= r.t <= f.t + 6]
    counts: dict[int, list[int]] = {}
    for f, r in pairs:
        counts.setdefault(f["k"], []).append(r["stars"])
    return [(k, len(stars), sum(stars)) for k, stars in counts.items()]


CASES = {
    "temporal": Case(
        "SELECT f.id, f.v, c.n, f.t FROM f AS f JOIN c FOR SYSTEM_TIME AS OF f.t AS c ON c.k = f.k", _temporal
    ),
    "temporal-left": Case(
        "SELECT f.id, x.n FROM f AS f LEFT JOIN c FOR SYSTEM_TIME AS OF f.t AS x ON f.k = x.k", _temporal_left
    ),
    "temporal-chain": Case(
        "SELECT f.id, c.n AS cn, h.n AS hn FROM f AS f JOIN c FOR SYSTEM_TIME AS OF f.t AS c ON c.k = f.k "
        "JOIN h FOR SYSTEM_TIME AS OF f.t AS h ON h.h = f.h",
        _chain,
    ),
    "temporal-reviewed": Case(
        "SELECT f.id, c.n AS cn, h.n AS hn, r.stars FROM f AS f JOIN c FOR SYSTEM_TIME AS OF f.t AS "
        "c ON c.k = f.k "
        "JOIN h FOR SYSTEM_TIME AS OF f.t AS h ON h.h = f.h LEFT JOIN r AS r ON r.id = f.id",
        _reviewed,
        ("id",),
    ),
    "groups-of-changes": Case(
        "SELECT h, COUNT(*) AS n, COUNT(stars) AS m, SUM(v) AS s, AVG(stars) AS a, MIN(stars) AS least, "
        "MAX(v) AS most, COUNT(DISTINCT stars) AS x FROM d GROUP BY h",
        _counted,
        ("h",),
    ),
    "windows-of-changes": Case(
        "SELECT window_start, window_end, h, COUNT(*) AS n, SUM(v) AS s "
        "FROM TABLE(TUMBLE(TABLE d, DESCRIPTOR(t), INTERVAL '10' SECOND)) GROUP BY window_start, "
        "window_end, h",
        _windows,
        ("window_start", "window_end", "h"),
    ),
    "filtered-changes": Case(
        "SELECT h, COUNT(*) AS n FROM d WHERE stars >= 2 GROUP BY h HAVING COUNT(*) > 1",
        lambda facts: [
            (h, len(rows))
            for h, rows in _groups(
                [r for r in facts.current("d", "id").values() if (r["stars"] or 0) >= 2], lambda r: r["h"]
            ).items()
            if len(rows) > 1
        ],
        ("h",),
    ),
    "groups-of-kept": Case(
        "SELECT h, COUNT(*) AS n, COUNT(stars) AS m, SUM(v) AS s, AVG(stars) AS a, MIN(stars) AS least, "
        "MAX(v) AS most, COUNT(DISTINCT stars) AS x FROM p GROUP BY h",
        lambda facts: _counted(facts, "p"),
        ("h",),
    ),
    "groups-of-many": Case(
        "SELECT h, COUNT(*) AS n, SUM(v) AS s, MIN(v) AS least, COUNT(DISTINCT id) AS x FROM m WHERE v >= 1 "
        "GROUP BY h",
        _many,
        ("h",),
    ),
    "windows-of-many": Case(
        "SELECT window_start, window_end, h, COUNT(*) AS n, SUM(v) AS s "
        "FROM TABLE(TUMBLE(TABLE m, DESCRIPTOR(t), INTERVAL '10' SECOND)) GROUP BY window_start, "
        "window_end, h",
        _many_windows,
        ("window_start", "window_end", "h"),
    ),
    "kept-joined": Case(
        "SELECT d.id, d.stars, p.v FROM d AS d LEFT JOIN p AS p ON p.id = d.id", _kept_joined, ("id",)
    ),
    "kept-versions": Case(
        "SELECT f.id, p.v FROM f AS f LEFT JOIN p FOR SYSTEM_TIME AS OF f.t AS p ON p.id = f.id",
        _kept_versions,
    ),
    "left-join": Case(
        "SELECT f.id, f.v, r.stars FROM f AS f LEFT JOIN r AS r ON r.id = f.id", _joined, ("id",)
    ),
    "inner-join-of-changes": Case(
        "SELECT d.id, d.v, x.v AS w FROM d AS d JOIN (SELECT id, v FROM d WHERE stars > 1) AS x ON "
        "x.id = d.id",
        lambda facts: [
            (r["id"], r["v"], r["v"])
            for r in facts.current("d", "id").values()
            if r["stars"] is not None and r["stars"] > 1
        ],
        ("id",),
    ),
    "groups-joined": Case(
        "SELECT g.h, g.n, h.n AS name FROM (SELECT h, COUNT(*) AS n FROM d GROUP BY h) AS g "
        "LEFT JOIN h AS h ON h.h = g.h",
        _both_change,
        ("h",),
    ),
    "exists": Case(
        "SELECT id, v FROM f AS f WHERE EXISTS (SELECT 1 FROM r AS r WHERE r.id = f.id AND stars > 1 AND "
        "u BETWEEN f.t AND f.t + INTERVAL '6' SECOND)",
        _exists(True),
    ),
    "not-exists": Case(
        "SELECT id, v FROM f AS f WHERE v >= 0 AND NOT EXISTS (SELECT 1 FROM r AS r WHERE r.id = f.id AND "
        "stars > 1 AND "
        "u BETWEEN f.t AND f.t + INTERVAL '6' SECOND)",
        _exists(False),
    ),
    "rolling": Case(
        "SELECT id, SUM(v) OVER w AS s, COUNT(DISTINCT h) OVER w AS hs, "
        "COUNT(*) OVER (PARTITION BY k ORDER BY t RANGE BETWEEN INTERVAL '3' SECOND PRECEDING AND "
        "CURRENT ROW) "
        "AS n, MAX(v) OVER (PARTITION BY k ORDER BY t RANGE BETWEEN INTERVAL '3' SECOND PRECEDING "
        "AND CURRENT "
        "ROW) AS m FROM f "
        "WINDOW w AS (PARTITION BY k ORDER BY t RANGE BETWEEN INTERVAL '8' SECOND PRECEDING AND CURRENT ROW)",
        _rolling,
    ),
    "top": Case(
        "SELECT k, n, v, id FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC, id DESC) AS n "
        "FROM f) WHERE n <= 2",
        _top,
        ("k", "n"),
    ),
    "groups-of-groups": Case(
        "SELECT n, COUNT(*) AS c FROM (SELECT k, COUNT(*) AS n FROM f WHERE k >= 0 GROUP BY k) GROUP BY n",
        _sizes,
        ("n",),
    ),
    "groups-of-a-join": Case(
        "SELECT f.k, COUNT(*) AS n, SUM(r.stars) AS s FROM f AS f JOIN r AS r ON r.id = f.id AND "
        "r.u BETWEEN f.t AND f.t + INTERVAL '6' SECOND GROUP BY f.k",
        _meetings,
        ("k",),
    ),
}


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
    table = FACTS.tables[name]
    mark = table.watermark
    assert mark is not None
    found = []
    for end in ENDS:
        row: dict[str, Any] = {
            field.name: NOBODY if isinstance(field.dataType, IntegerType) else None
            for field in table.columns.fields
        }
        row[mark.column] = clock(end) if name == "c" else at(end)
        if "v" in row:
            row["v"] = NOTHING
        found.append(row)
    return found
