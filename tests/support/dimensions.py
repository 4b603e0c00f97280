"""Queries over facts, versions and rows that change, and what a plain computation gives for each."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
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

    def with_late(self, late: "Facts", tables: str) -> "Facts":
        """These rows, and of some tables those that came later than they should."""
        whole = Facts()
        for name in FACTS.tables:
            setattr(whole, name, [*getattr(self, name), *(getattr(late, name) if name in tables else [])])
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


@dataclass(frozen=True)
class Case:
    sql: str
    rows: Callable[[Facts], list[tuple[Any, ...]]]
    #: Of rows that change: by which columns they replace each other.
    key: tuple[str, ...] = ()
    #: The tables whose rows count however late they come: nothing waits for their event time.
    late: str = ""

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


def _young(facts: Facts) -> list[tuple[Any, ...]]:
    found = []
    for f in facts.f:
        c, h = facts.version("c", "k", f["k"], f.t), facts.version("h", "h", f["h"], f.t)
        if h is not None and f.t < h.t + 7:
            found.append((f["id"], c["n"] if c is not None and c.t >= f.t - 4 else None, h["n"]))
    return found


def _named(facts: Facts) -> list[tuple[Record, str | None]]:
    """Each fact with the name that its version has, if that is at most eight seconds old."""
    pairs = [(f, facts.version("c", "k", f["k"], f.t)) for f in facts.f]
    return [(f, c["n"] if c is not None and c.t >= f.t - 8 else None) for f, c in pairs]


def _young_windows(facts: Facts) -> list[tuple[Any, ...]]:
    groups: dict[tuple[int, str], list[Record]] = {}
    for f, name in _named(facts):
        if name is not None:
            groups.setdefault((f.t // 10 * 10, name), []).append(f)
    return [(clock(s), n, len(rows), sum(f["v"] for f in rows)) for (s, n), rows in groups.items()]


def _young_rolling(facts: Facts) -> list[tuple[Any, ...]]:
    return [
        (f["id"], name, sum(o["v"] for o in facts.f if o["k"] == f["k"] and f.t - 9 <= o.t <= f.t))
        for f, name in _named(facts)
    ]


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
        late="r",
    ),
    "groups-of-changes": Case(
        "SELECT h, COUNT(*) AS n, COUNT(stars) AS m, SUM(v) AS s, AVG(stars) AS a, MIN(stars) AS least, "
        "MAX(v) AS most, COUNT(DISTINCT stars) AS x FROM d GROUP BY h",
        _counted,
        ("h",),
        late="d",
    ),
    "windows-of-changes": Case(
        "SELECT window_start, window_end, h, COUNT(*) AS n, SUM(v) AS s "
        "FROM TABLE(TUMBLE(TABLE d, DESCRIPTOR(t), INTERVAL '10' SECOND)) GROUP BY window_start, "
        "window_end, h",
        _windows,
        ("window_start", "window_end", "h"),
        late="d",
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
        late="d",
    ),
    "groups-of-kept": Case(
        "SELECT h, COUNT(*) AS n, COUNT(stars) AS m, SUM(v) AS s, AVG(stars) AS a, MIN(stars) AS least, "
        "MAX(v) AS most, COUNT(DISTINCT stars) AS x FROM p GROUP BY h",
        lambda facts: _counted(facts, "p"),
        ("h",),
        late="p",
    ),
    "groups-of-many": Case(
        "SELECT h, COUNT(*) AS n, SUM(v) AS s, MIN(v) AS least, COUNT(DISTINCT id) AS x FROM m WHERE v >= 1 "
        "GROUP BY h",
        _many,
        ("h",),
        late="m",
    ),
    "windows-of-many": Case(
        "SELECT window_start, window_end, h, COUNT(*) AS n, SUM(v) AS s "
        "FROM TABLE(TUMBLE(TABLE m, DESCRIPTOR(t), INTERVAL '10' SECOND)) GROUP BY window_start, "
        "window_end, h",
        _many_windows,
        ("window_start", "window_end", "h"),
        late="m",
    ),
    "kept-joined": Case(
        "SELECT d.id, d.stars, p.v FROM d AS d LEFT JOIN p AS p ON p.id = d.id",
        _kept_joined,
        ("id",),
        late="dp",
    ),
    "kept-versions": Case(
        "SELECT f.id, p.v FROM f AS f LEFT JOIN p FOR SYSTEM_TIME AS OF f.t AS p ON p.id = f.id",
        _kept_versions,
    ),
    "left-join": Case(
        "SELECT f.id, f.v, r.stars FROM f AS f LEFT JOIN r AS r ON r.id = f.id",
        _joined,
        ("id",),
        late="fr",
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
        late="d",
    ),
    "groups-joined": Case(
        "SELECT g.h, g.n, h.n AS name FROM (SELECT h, COUNT(*) AS n FROM d GROUP BY h) AS g "
        "LEFT JOIN h AS h ON h.h = g.h",
        _both_change,
        ("h",),
        late="dh",
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
        late="f",
    ),
    "groups-of-groups": Case(
        "SELECT n, COUNT(*) AS c FROM (SELECT k, COUNT(*) AS n FROM f WHERE k >= 0 GROUP BY k) GROUP BY n",
        _sizes,
        ("n",),
        late="f",
    ),
    "groups-of-a-join": Case(
        "SELECT f.k, COUNT(*) AS n, SUM(r.stars) AS s FROM f AS f JOIN r AS r ON r.id = f.id AND "
        "r.u BETWEEN f.t AND f.t + INTERVAL '6' SECOND GROUP BY f.k",
        _meetings,
        ("k",),
    ),
    "temporal-of-an-age": Case(
        "SELECT f.id, x.n AS cn, h.n AS hn FROM f AS f LEFT JOIN c FOR SYSTEM_TIME AS OF f.t AS x "
        "ON f.k = x.k AND x.u BETWEEN f.t - INTERVAL '4' SECOND AND f.t "
        "JOIN h FOR SYSTEM_TIME AS OF f.t AS h ON h.h = f.h AND f.t < h.u + INTERVAL '7' SECOND",
        _young,
    ),
    "temporal-in-windows": Case(
        "SELECT TUMBLE_START(f.t, INTERVAL '10' SECOND) AS s, c.n AS cn, COUNT(*) AS m, SUM(f.v) AS v "
        "FROM f AS f JOIN c FOR SYSTEM_TIME AS OF f.t AS c ON c.k = f.k AND c.u >= f.t - INTERVAL '8' SECOND "
        "WHERE f.id >= 0 GROUP BY TUMBLE(f.t, INTERVAL '10' SECOND), c.n",
        _young_windows,
    ),
    "rolling-of-versions": Case(
        "SELECT f.id, c.n, SUM(f.v) OVER (PARTITION BY f.k ORDER BY f.t RANGE BETWEEN INTERVAL '9' SECOND "
        "PRECEDING AND CURRENT ROW) AS s FROM f AS f "
        "LEFT JOIN c FOR SYSTEM_TIME AS OF f.t AS c ON c.k = f.k AND c.u >= f.t - INTERVAL '8' SECOND",
        _young_rolling,
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


def late_rows(chance: random.Random, size: int) -> Facts:
    """Rows of the times of all others, to be sent when event time has passed them: at least one of each
    table. The facts among them are new ones."""
    late = generated(chance, size)
    for record in late.f:
        record.values["id"] += 1000
    late.c.append(Record({"k": chance.randrange(3), "n": "late"}, chance.randrange(20)))
    late.h.append(Record({"h": chance.randrange(3), "n": "late"}, chance.randrange(20)))
    late.r.append(Record({"id": chance.randrange(6), "stars": chance.randrange(4)}, chance.randrange(20)))
    return late


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


# --- rows that change, wherever they may stand


def _rows(facts: Facts) -> list[Record]:
    return list(facts.current("d", "id").values())


def _looked_up(facts: Facts) -> list[tuple[Any, ...]]:
    c = facts.current("c", "k")
    return [(d["id"], d["v"], c[d["stars"]]["n"]) for d in _rows(facts) if d["stars"] in c]


def _named_twice(facts: Facts) -> list[tuple[Any, ...]]:
    h, c = facts.current("h", "h"), facts.current("c", "k")
    return [
        (d["id"], d["v"], h[d["h"]]["n"], c[d["stars"]]["n"] if d["stars"] in c else None)
        for d in _rows(facts)
        if d["h"] in h
    ]


def _near(facts: Facts, key: str, near: int, outer: bool) -> list[tuple[Any, ...]]:
    hotels, found = facts.current("h", "h"), []
    for d in _rows(facts):
        h = hotels.get(d[key])
        h = None if h is None or abs(h.t - d.t) > near else h
        if h is not None or outer:
            found.append((d["id"], d["v"], None if h is None else h["n"]))
    return found


def _both(facts: Facts) -> list[tuple[Any, ...]]:
    return [
        (d["id"], x["id"], d["v"] + x["v"])
        for d in _rows(facts)
        for x in _rows(facts)
        if d["h"] == x["h"] and None not in (d["stars"], x["stars"]) and x["stars"] > d["stars"]
    ]


def _pairs(facts: Facts) -> list[tuple[Any, ...]]:
    found: dict[int, list[int]] = {}
    for d in _rows(facts):
        for f in facts.f:
            if f["h"] == d["h"] and abs(f.t - d.t) <= 5:
                found.setdefault(d["h"], []).append(f["v"])
    return [(h, len(vs), sum(vs), max(vs)) for h, vs in found.items()]


def _counted_left(facts: Facts) -> list[tuple[Any, ...]]:
    hotels = facts.current("h", "h")
    return [
        (k, len(rows), sum(r["h"] in hotels for r in rows), sum(r["v"] for r in rows))
        for k, rows in _groups(facts.f, lambda r: r["k"]).items()
    ]


def _windows_joined(facts: Facts) -> list[tuple[Any, ...]]:
    hotels = facts.current("h", "h")
    rows = _groups([d for d in _rows(facts) if d["h"] in hotels], lambda r: (r.t // 10 * 10, r["h"]))
    return [
        (clock(start), clock(start + 10), h, hotels[h]["n"], len(found)) for (start, h), found in rows.items()
    ]


def _top_left(most: int, order: Callable[[Record], Any], down: bool) -> Callable[[Facts], list[Any]]:
    def rows(facts: Facts) -> list[Any]:
        found = []
        for h, of in _groups(_rows(facts), lambda r: r["h"]).items():
            best = sorted(of, key=lambda r: (order(r), r["id"]), reverse=down)[:most]
            found += [(h, place, r["id"], r["v"]) for place, r in enumerate(best, 1)]
        return found

    return rows


def _united(facts: Facts) -> list[tuple[Any, ...]]:
    groups = _groups([*_rows(facts), *facts.f], lambda r: r["h"])
    return [
        (h, len(rows), sum(r["v"] for r in rows), max(r["v"] for r in rows)) for h, rows in groups.items()
    ]


def _elements(facts: Facts) -> list[tuple[Any, ...]]:
    found: dict[int, int] = {}
    for d in _rows(facts):
        for x in (d["h"], d["stars"]):
            if x is not None:
                found[x] = found.get(x, 0) + 1
    return list(found.items())


def _top_of_many(facts: Facts) -> list[tuple[Any, ...]]:
    found = []
    for h, rows in _groups(facts.left(), lambda r: r["h"]).items():
        found += [(h, place, v) for place, v in enumerate(sorted(r["v"] for r in rows)[:2], 1)]
    return found


def _pairs_of_many(facts: Facts) -> list[tuple[Any, ...]]:
    one, other = (_groups(rows, lambda r: r["h"]) for rows in (facts.f, facts.left()))
    return [
        (h, len(one[h]) * len(other[h]), len(one[h]) * sum(r["v"] for r in other[h]))
        for h in one.keys() & other.keys()
    ]


_CHANGING = {
    "distinct-of-many": Case(
        "SELECT DISTINCT h, v FROM m WHERE id >= 0",
        lambda facts: list({(r["h"], r["v"]) for r in facts.left()}),
        ("h", "v"),
    ),
    "top-of-many": Case(
        "SELECT h, n, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY h ORDER BY v) AS n FROM m) "
        "WHERE n <= 2",
        _top_of_many,
        ("h", "n"),
    ),
    "pairs-of-many": Case(
        "SELECT f.h, COUNT(*) AS n, SUM(m.v) AS s FROM f AS f JOIN m AS m ON m.h = f.h GROUP BY f.h",
        _pairs_of_many,
        ("h",),
    ),
    "lookup": Case("SELECT d.id, d.v, c.n FROM d AS d JOIN c AS c ON c.k = d.stars", _looked_up, ("id",)),
    "lookup-chain": Case(
        "SELECT d.id, d.v, h.n AS hn, c.n AS cn FROM d AS d JOIN h AS h ON h.h = d.h "
        "LEFT JOIN c AS c ON c.k = d.stars",
        _named_twice,
        ("id",),
    ),
    "lookup-left-within": Case(
        "SELECT d.id, d.v, h.n FROM d AS d LEFT JOIN h AS h ON h.h = d.h AND "
        "h.u BETWEEN d.t - INTERVAL '9' SECOND AND d.t + INTERVAL '9' SECOND",
        lambda facts: _near(facts, "h", 9, True),
        ("id",),
    ),
    "changes-within": Case(
        "SELECT d.id, d.v, h.n FROM d AS d JOIN h AS h ON h.h = d.id AND "
        "h.u BETWEEN d.t - INTERVAL '20' SECOND AND d.t + INTERVAL '20' SECOND",
        lambda facts: _near(facts, "id", 20, False),
        ("id",),
    ),
    "pairs-of-changes": Case(
        "SELECT d.id, x.id AS other, d.v + x.v AS s FROM d AS d JOIN d AS x ON x.h = d.h AND "
        "x.stars > d.stars",
        _both,
        ("id", "other"),
    ),
    "groups-of-pairs": Case(
        "SELECT d.h, COUNT(*) AS n, SUM(f.v) AS s, MAX(f.v) AS m FROM f AS f JOIN d AS d ON d.h = f.h AND "
        "f.t BETWEEN d.t - INTERVAL '5' SECOND AND d.t + INTERVAL '5' SECOND GROUP BY d.h",
        _pairs,
        ("h",),
    ),
    "facts-with-their-row": Case(
        "SELECT f.k, COUNT(*) AS n, COUNT(h.n) AS m, SUM(f.v) AS s FROM f AS f LEFT JOIN h AS h ON h.h = f.h "
        "GROUP BY f.k",
        _counted_left,
        ("k",),
    ),
    "windows-of-a-lookup": Case(
        "SELECT TUMBLE_START(d.t, INTERVAL '10' SECOND) AS a, TUMBLE_END(d.t, INTERVAL '10' SECOND) AS b, "
        "h.h, MAX(h.n) AS name, COUNT(*) AS n FROM d AS d JOIN h AS h ON h.h = d.h "
        "GROUP BY TUMBLE(d.t, INTERVAL '10' SECOND), h.h",
        _windows_joined,
        ("a", "b", "h"),
    ),
    "distinct-changes": Case(
        "SELECT DISTINCT h, v FROM d WHERE stars IS NOT NULL",
        lambda facts: list({(r["h"], r["v"]) for r in _rows(facts) if r["stars"] is not None}),
        ("h", "v"),
    ),
    "best-left": Case(
        "SELECT h, n, id, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY h ORDER BY v DESC) AS n FROM d) "
        "WHERE n = 1",
        _top_left(1, lambda r: r["v"], True),
        ("h",),
    ),
    "top-left": Case(
        "SELECT h, n, id, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY h ORDER BY stars) AS n FROM d) "
        "WHERE n <= 2",
        _top_left(2, lambda r: (r["stars"] is not None, r["stars"] or 0), False),
        ("h", "n"),
    ),
    "union-of-changes": Case(
        "SELECT h, COUNT(*) AS n, SUM(v) AS s, MAX(v) AS m FROM (SELECT h, v FROM d UNION ALL SELECT h, v "
        "FROM f) GROUP BY h",
        _united,
        ("h",),
    ),
    "elements-of-changes": Case(
        "SELECT x, COUNT(*) AS n FROM d CROSS JOIN UNNEST(ARRAY[h, stars]) AS e(x) WHERE x IS NOT NULL "
        "GROUP BY x",
        _elements,
        ("x",),
    ),
}
# However late a row is, it counts there.
CASES |= {name: replace(case, late="".join(FACTS.tables)) for name, case in _CHANGING.items()}
