"""Queries over facts and versions, and what a plain computation gives for each."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from headgate.sql.insert import plan_create
from headgate.sql.planner import Plan, plan
from headgate.sql.script import parse_statement
from headgate.sql.statements import CreateTable, Select
from headgate.sql.tables import Tables
from tests.support.dimensions import Facts, Record
from tests.support.queries import at, clock


@dataclass(frozen=True)
class Case:
    sql: str
    rows: Callable[[Facts], list[tuple[Any, ...]]]
    #: Of rows that change: by which columns they replace each other.
    key: tuple[str, ...] = ()
    #: The tables whose rows count however late they come: nothing waits for their event time.
    late: str = ""
    #: The rows are right only in a table with this key, which keeps the last of each.
    table: bool = False

    @property
    def changes(self) -> bool:
        return bool(self.key)

    def plan(self, tables: Tables) -> Plan:
        """The plan of the query, or of the table that is made of it."""
        if not self.table:
            statement = parse_statement(self.sql)
            assert isinstance(statement, Select)
            return plan(statement.query, tables)
        key = f"PRIMARY KEY ({', '.join(self.key)}) NOT ENFORCED"
        create = parse_statement(f"CREATE TABLE o ({key}) AS {self.sql}")
        assert isinstance(create, CreateTable)
        _, made = plan_create(create, tables)
        assert made is not None
        return made


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


def groups(rows: list[Record], by: Callable[[Record], Any]) -> dict[Any, list[Record]]:
    found: dict[Any, list[Record]] = {}
    for row in rows:
        found.setdefault(by(row), []).append(row)
    return found


def _counted(facts: Facts, table: str = "d") -> list[tuple[Any, ...]]:
    found = []
    for h, rows in groups(list(facts.current(table, "id").values()), lambda r: r["h"]).items():
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
    rows = groups(list(facts.current("d", "id").values()), lambda r: (r.t // 10 * 10, r["h"]))
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
        for h, found in groups(rows, lambda r: r["h"]).items()
    ]


def _many_windows(facts: Facts) -> list[tuple[Any, ...]]:
    rows = groups(facts.left(), lambda r: ((r.row_t or 0) // 10 * 10, r["h"]))
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
    counts = groups(list(facts.current("d", "id").values()), lambda r: r["h"])
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
    for k, rows in groups(facts.f, lambda r: r["k"]).items():
        order = sorted(rows, key=lambda r: (r["v"], r["id"]), reverse=True)
        found += [(k, place, r["v"], r["id"]) for place, r in enumerate(order[:2], 1)]
    return found


def _sizes(facts: Facts) -> list[tuple[Any, ...]]:
    counts = groups(facts.f, lambda r: r["k"])
    sizes = groups([Record({"n": len(rows)}, 0) for rows in counts.values()], lambda r: r["n"])
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


VERSIONED = {
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
        table=True,
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
            for h, rows in groups(
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
        table=True,
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
