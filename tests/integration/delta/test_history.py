"""A table with any history at all: after each step the rows are the same in both formats, in every reader."""

import itertools
import os
import random
from collections.abc import Callable
from pathlib import Path
from zlib import crc32

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import types as t

from headgate.tables.mirror import DeltaMirror, NeedsRewrite
from tests.integration.delta.history import History

SOAK = bool(os.environ.get("HEADGATE_SOAK"))
EXAMPLES, STEPS = (2, 110) if SOAK else (1, 10)
STEP_KINDS = (
    "append",
    "append",
    "append",
    "delete",
    "update",
    "add",
    "drop",
    "again",
    "rename",
    "widen",
    "partition",
    "compact",
    "expire",
    "rollback",
    "restart",
)


class Steps:
    """Each step is something that can happen to the table as it is then."""

    def __init__(self, one: History, seed: int) -> None:
        self.one = one
        self.random = random.Random(seed)
        self.widened = False
        self.dropped: list[tuple[str, t.DataType]] = []
        self.partitions = 0
        # Snapshots that a rollback may go to: since the last change of columns and the last expiry.
        self.back: list[int] = []
        self.number = 0

    def take(self, kind: str) -> None:
        self.number += 1
        getattr(self, kind)()
        try:
            self.one.mirror.catch_up(self.one.table)
        except NeedsRewrite:
            self.one.compact(everything=True)
            self.one.mirror.catch_up(self.one.table)
        self.back.append(self.one.snapshot)
        # A reader says itself that it does not know wider columns.
        self.one.check({"delta-rs": not self.widened})
        self.check_files()

    def append(self) -> None:
        self.one.append(self.random.randrange(1, 40))

    def delete(self) -> None:
        self.one.delete(self.random.randrange(7))

    def update(self) -> None:
        self.one.update(self.random.randrange(5))

    def add(self) -> None:
        kind = self.random.choice([t.IntegerType(), t.StringType(), t.DoubleType(), t.FloatType()])
        self.one.add(f"c{self.number}", kind)
        self.back = []

    def _free(self) -> list[t.StructField]:
        return [field for field in self.one.columns.fields if field.name.startswith("c")]

    def drop(self) -> None:
        if free := self._free():
            field = self.random.choice(free)
            self.one.drop(field.name)
            self.dropped.append((field.name, field.dataType))
            self.back = []

    def again(self) -> None:
        """A name that was there before, for another column."""
        taken = self.one.columns.names
        names = [(name, kind) for name, kind in self.dropped if name not in taken]
        if names:
            self.one.add(*self.random.choice(names))
            self.back = []

    def rename(self) -> None:
        if free := self._free():
            self.one.rename(self.random.choice(free).name, f"c{self.number}r")
            self.back = []

    def widen(self) -> None:
        narrow = [field for field in self._free() if isinstance(field.dataType, t.IntegerType | t.FloatType)]
        if narrow:
            field = self.random.choice(narrow)
            wide = t.LongType() if isinstance(field.dataType, t.IntegerType) else t.DoubleType()
            self.one.widen(field.name, wide)
            self.widened = True
            self.back = []

    def partition(self) -> None:
        if self.partitions < 2:
            self.one.partition(("bucket(2, id)", "days(at)")[self.partitions])
            self.partitions += 1

    def compact(self) -> None:
        self.one.compact()

    def expire(self) -> None:
        self.one.expire(keep_last=self.random.randrange(1, 4))
        self.back = [one for one in self.back if self.one.table.snapshot(one) is not None]

    def rollback(self) -> None:
        ancestors = set(self.one.ancestors())
        if known := [one for one in self.back if one in ancestors]:
            self.one.rollback(self.random.choice(known))

    def restart(self) -> None:
        self.one.mirror = DeltaMirror(self.one.spark, self.one.lake, self.one.topic)

    def check_files(self) -> None:
        """No file of rows but Iceberg's own."""
        known = {
            Path("/" + str(row[0]).removeprefix("file:").lstrip("/"))
            for row in self.one.spark.table(f"{self.one.sql_name}.all_files").select("file_path").collect()
        }
        there = {path for path in self.one.folder.rglob("*.parquet") if "_delta_log" not in path.parts}
        assert there <= known


@pytest.mark.soak
def test_any_history(history: Callable[..., History]) -> None:
    count = itertools.count()

    @settings(
        max_examples=EXAMPLES,
        phases=[Phase.generate],
        deadline=None,
        database=None,
        derandomize=not SOAK,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.lists(st.integers(0, 2**16), min_size=STEPS, max_size=STEPS))
    def run(choices: list[int]) -> None:
        steps = Steps(history(suffix=f"-{next(count)}"), choices[0])
        steps.take("append")
        for number, choice in enumerate(choices):
            # The simplest example, all zeros, is to be a history too.
            steps.take(STEP_KINDS[crc32(f"{number} {choice}".encode()) % len(STEP_KINDS)])

    run()
