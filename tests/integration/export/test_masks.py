"""The masks of exports beside those of statements, on the same texts: each gives what the other gives."""

import random
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from headgate.export.definition import Mask
from headgate.export.masks import _text_mask
from headgate.sql.functions.masks import MASKS, pads, secret_columns
from headgate.sql.functions.table import Session
from headgate.sql.typed import Typed
from headgate.sql.types import INT, STRING

KEY = "a key of some length, ünïcode too"
LETTERS = "ab@.+-0123456789 _é漢😀ß²Ⅷ\t'\"*"
KNOWN = [
    "",
    "@",
    "a@b",
    "ab@x.nl",
    "@x.nl",
    "anneke@example.org",
    "a@b@c.org",
    "+31 6 1234-5678",
    "7",
    "NL91ABNA",
]


def text(value: str) -> Typed:
    return Typed(f"'{value}'", STRING, False, known=True, literal=value)


def number(value: int) -> Typed:
    return Typed(f"{value}", INT, False, known=True, literal=value)


CASES: list[tuple[str, dict[str, Any], list[Typed]]] = [
    ("MASK_HASH", {"mask": "hash", "secret": "k"}, [text("k")]),
    ("MASK_TOKEN", {"mask": "token", "secret": "k", "length": 43}, [text("k"), number(43)]),
    ("MASK_EMAIL", {"mask": "email"}, []),
    ("MASK_PHONE", {"mask": "phone"}, []),
    ("MASK_PARTIAL", {"mask": "partial", "front": 2, "back": 3}, [number(2), number(3)]),
    ("MASK_PARTIAL", {"mask": "partial", "front": 0, "back": 0}, [number(0), number(0)]),
]


@pytest.fixture(scope="module")
def texts() -> list[str]:
    chance = random.Random(11)
    return KNOWN + ["".join(chance.choices(LETTERS, k=chance.randint(0, 18))) for _ in range(2_000)]


@pytest.mark.parametrize(
    ("name", "mask", "arguments"), CASES, ids=[f"{c[0]}-{n}" for n, c in enumerate(CASES)]
)
def test_a_mask_gives_what_the_function_of_statements_gives(
    spark: SparkSession, texts: list[str], name: str, mask: dict[str, Any], arguments: list[Typed]
) -> None:
    (function,) = [one for one in MASKS if one.name == name]
    typed = function.apply([Typed("v", STRING), *arguments], Session())
    frame = spark.createDataFrame([(one,) for one in texts], "v string")
    for column, pad in zip(secret_columns("k"), pads(KEY), strict=True):
        frame = frame.withColumn(column, f.lit(bytearray(pad)))
    by_spark = [row[0] for row in frame.selectExpr(typed.sql).collect()]
    hide = _text_mask(Mask.model_validate(mask), lambda _: KEY)
    assert [hide(one) for one in texts] == by_spark
