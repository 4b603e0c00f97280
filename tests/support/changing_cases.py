"""Queries over rows that change, wherever they may stand; with those over versions, all cases."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tests.support.dimension_cases import VERSIONED, Case, groups
from tests.support.dimensions import FACTS, Facts, Record
from tests.support.queries import clock


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
        for k, rows in groups(facts.f, lambda r: r["k"]).items()
    ]


def _bag_left(facts: Facts) -> list[tuple[Any, ...]]:
    matches = groups(facts.r, lambda r: r["id"])
    found = []
    for k, rows in groups(facts.f, lambda r: r["k"]).items():
        stars = [[r["stars"] for r in matches.get(f["h"], [])] for f in rows]
        found.append((k, sum(len(s) or 1 for s in stars), sum(map(len, stars)), sum(map(sum, stars))))
    return found


def _windows_joined(facts: Facts) -> list[tuple[Any, ...]]:
    hotels = facts.current("h", "h")
    rows = groups([d for d in _rows(facts) if d["h"] in hotels], lambda r: (r.t // 10 * 10, r["h"]))
    return [
        (clock(start), clock(start + 10), h, hotels[h]["n"], len(found)) for (start, h), found in rows.items()
    ]


def _top_left(most: int, order: Callable[[Record], Any], down: bool) -> Callable[[Facts], list[Any]]:
    def rows(facts: Facts) -> list[Any]:
        found = []
        for h, of in groups(_rows(facts), lambda r: r["h"]).items():
            best = sorted(of, key=lambda r: (order(r), r["id"]), reverse=down)[:most]
            found += [(h, place, r["id"], r["v"]) for place, r in enumerate(best, 1)]
        return found

    return rows


def _united(facts: Facts) -> list[tuple[Any, ...]]:
    found = groups([*_rows(facts), *facts.f], lambda r: r["h"])
    return [(h, len(rows), sum(r["v"] for r in rows), max(r["v"] for r in rows)) for h, rows in found.items()]


def _elements(facts: Facts) -> list[tuple[Any, ...]]:
    found: dict[int, int] = {}
    for d in _rows(facts):
        for x in (d["h"], d["stars"]):
            if x is not None:
                found[x] = found.get(x, 0) + 1
    return list(found.items())


def _top_of_many(facts: Facts) -> list[tuple[Any, ...]]:
    found = []
    for h, rows in groups(facts.left(), lambda r: r["h"]).items():
        found += [(h, place, v) for place, v in enumerate(sorted(r["v"] for r in rows)[:2], 1)]
    return found


def _pairs_of_many(facts: Facts) -> list[tuple[Any, ...]]:
    one, other = (groups(rows, lambda r: r["h"]) for rows in (facts.f, facts.left()))
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
    "bag-left": Case(
        "SELECT f.k, COUNT(*) AS n, COUNT(r.stars) AS m, COALESCE(SUM(r.stars), 0) AS s FROM f AS f "
        "LEFT JOIN r AS r ON r.id = f.h GROUP BY f.k",
        _bag_left,
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
CASES = VERSIONED | {
    # However late a row is, it counts there.
    name: replace(case, late="".join(FACTS.tables))
    for name, case in _CHANGING.items()
}
