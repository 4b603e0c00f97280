"""Of values that come and are taken back, those that are left: as a plain count gives them."""

import math
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import GroupedData, Row, SparkSession
from pyspark.sql import functions as f

from headgate.sql.functions.retracting import best_left, count_left, first_left

MOST = 3
KINDS: dict[str, Callable[[random.Random], Any]] = {
    "bigint": lambda chance: chance.randint(-5, 5),
    "string": lambda chance: chance.choice(["", "a", "ab", "é", "z"]),
    "double": lambda chance: chance.choice([0.0, -0.0, 1.5, -1.5, math.inf, math.nan]),
    "decimal(9,2)": lambda chance: chance.randint(-3, 3),
    "struct<a:int,b:string>": lambda chance: (chance.choice([None, 1, 2]), chance.choice([None, "x", "y"])),
}


@pytest.mark.parametrize("kind", KINDS)
def test_any_values_that_come_and_are_taken_back(spark: SparkSession, kind: str) -> None:
    chance = random.Random(f"left of {kind}")
    groups = {group: _changes(chance, KINDS[kind], chance.randint(1, 40)) for group in range(30)}
    rows = [(group, value, sign) for group, changes in groups.items() for value, sign in changes]
    if kind.startswith("decimal"):
        frame = spark.createDataFrame(rows, "g int, v bigint, s int").selectExpr(
            "g", f"CAST(v AS {kind}) AS v", "s"
        )
    else:
        frame = spark.createDataFrame(rows, f"g int, v {kind}, s int")
    found = {row["g"]: tuple(row)[1:] for row in _left(frame.groupBy("g"))}
    for group, changes in groups.items():
        left = _counted(changes)
        different = sorted(set(left))
        expected = (
            different[-1] if different else None,
            different[0] if different else None,
            len(different),
            sorted(left)[:MOST],
            sorted(left, reverse=True)[:MOST],
        )
        low, high = ([_comparable(value) for value in found[group][place]] for place in (3, 4))
        assert (*(_comparable(v) for v in found[group][:2]), found[group][2], low, high) == expected


def test_a_group_may_have_many(spark: SparkSession) -> None:
    """It takes no more than a pass: with a look at all of them for each it would be for minutes."""
    count = 200_000
    frame = (
        spark.range(count)
        .selectExpr("id AS v", "1 AS s")
        .unionAll(
            # All but every thousandth are taken back.
            spark.range(count).filter("id % 1000 <> 7").selectExpr("id AS v", "-1 AS s")
        )
    )
    [row] = _left(frame.groupBy())
    assert tuple(row) == (
        count - 1000 + 7,
        7,
        count // 1000,
        [7, 1007, 2007],
        [count - 993, count - 1993, count - 2993],
    )


def _left(grouped: GroupedData) -> list[Row]:
    return grouped.agg(
        f.expr(best_left("v", "s", greatest=True)).alias("greatest"),
        f.expr(best_left("v", "s", greatest=False)).alias("least"),
        f.expr(count_left("v", "s")).alias("different"),
        f.expr(first_left("v", "s", MOST, greatest=False)).alias("low"),
        f.expr(first_left("v", "s", MOST, greatest=True)).alias("high"),
    ).collect()


def _changes(
    chance: random.Random, value: Callable[[random.Random], Any], count: int
) -> list[tuple[Any, int]]:
    """Nothing is taken back before it came."""
    found: list[tuple[Any, int]] = []
    there: list[Any] = []
    for _ in range(count):
        if there and chance.random() < 0.5:
            found.append((there.pop(chance.randrange(len(there))), -1))
        else:
            there.append(value(chance))
            found.append((there[-1], 1))
    return found


def _counted(changes: list[tuple[Any, int]]) -> list[Any]:
    signs: Counter[Any] = Counter()
    for value, sign in changes:
        signs[_comparable(value)] += sign
    return list(signs.elements())


def _comparable(value: Any) -> Any:
    """As Spark orders them: NULL before all, NaN behind all and equal to itself, one zero."""
    if isinstance(value, tuple):
        return tuple((part is not None, part) if part is not None else (False, "") for part in value)
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value + 0.0)
    return value
