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

from headgate.sql.tables import Catalog, TableInfo, Watermark
from tests.support.queries import DELAY, ENDS, NOBODY, NOTHING, at, clock

_INT, _LONG, _TEXT, _TIME = IntegerType(), LongType(), StringType(), TimestampType()


def _table(name: str, columns: dict[str, Any], key: tuple[str, ...] = (), time: str = "t") -> TableInfo:
    fields = StructType([StructField(column, kind) for column, kind in columns.items()])
    mark = Watermark(time, DELAY * 1000)
    return TableInfo(name, fields, key, "upsert" if key else "append", mark)


FACTS = Catalog(
    {
        "f": _table("f", {"id": _INT, "k": _INT, "h": _INT, "v": _LONG, "t": _TIME}),
        "c": _table("c", {"k": _INT, "n": _TEXT, "u": TimestampNTZType()}, ("k",), "u"),
        "h": _table("h", {"h": _INT, "n": _TEXT, "u": _TIME}, ("h",), "u"),
        "r": _table("r", {"id": _INT, "stars": _INT, "u": _TIME}, time="u"),
        "d": _table("d", {"id": _INT, "h": _INT, "v": _LONG, "stars": _INT, "t": _TIME}, ("id",)),
    }
)


@dataclass(frozen=True)
class Record:
    """A row as it came: its values, its time, and whether it deletes."""

    values: dict[str, Any]
    t: int
    deletes: bool = False

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

    def version(self, table: str, key: str, value: Any, t: int) -> Record | None:
        """What was valid at a time: the greatest time, then the last that came."""
        found = [
            (r.t, place, r) for place, r in enumerate(getattr(self, table)) if r[key] == value and r.t <= t
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


def _counted(facts: Facts) -> list[tuple[Any, ...]]:
    found = []
    for h, rows in _groups(list(facts.current("d", "id").values()), lambda r: r["h"]).items():
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


def columns(name: str, record: Record) -> dict[str, Any]:
    """A record as the columns of its table; a delete has its key alone."""
    table = FACTS.tables[name]
    mark = table.watermark
    assert mark is not None
    time: datetime = clock(record.t) if name == "c" else at(record.t)
    values = {**record.values, mark.column: time}
    if record.deletes:
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
