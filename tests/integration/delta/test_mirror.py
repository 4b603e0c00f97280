"""The Delta log follows its table through everything that can happen to it."""

from collections.abc import Callable

import pytest
from pyspark.sql import types as t

from headgate.tables.mirror import NeedsRewrite
from tests.integration.delta.history import History
from tests.support.delta import counted, read_delta_spark

Make = Callable[..., History]
# Said by delta-rs itself: it does not read tables whose columns were widened.
WITHOUT_RS = {"delta-rs": False}


def test_appends_and_deletes(history: Make) -> None:
    one = history()
    one.append(50)
    one.follow()
    one.append(30)
    one.delete(3)
    one.update(1)
    one.follow()
    one.add("extra", t.DoubleType())
    one.append(20)
    one.follow()
    one.compact()
    one.follow()
    one.check_time_travel()


def test_wider_columns(history: Make) -> None:
    one = history()
    one.append(10)
    one.widen("n", t.LongType())
    one.append(10)
    one.follow(WITHOUT_RS)


def test_a_renamed_column_waits_for_its_files(history: Make) -> None:
    one = history()
    one.append(10)
    one.follow()
    before = one.mirror.facts["version"]
    one.rename("name", "title")
    one.append(10)
    with pytest.raises(NeedsRewrite, match="holds column 'title' under the name 'name'"):
        one.mirror.catch_up(one.table)
    one.compact(everything=True)
    one.follow()
    # No version in between, which no reader could read.
    assert one.mirror.facts["version"] == before + 1


def test_a_name_that_comes_again_does_not_bring_old_values(history: Make) -> None:
    one = history()
    one.append(10)
    one.follow()
    one.drop("n")
    one.follow()
    one.add("n", t.IntegerType())
    with pytest.raises(NeedsRewrite, match="holds another column under the name 'n'"):
        one.mirror.catch_up(one.table)
    one.append(5)
    one.compact(everything=True)
    one.follow()


def test_partitions_and_their_evolution(history: Make) -> None:
    one = history()
    one.partition("days(at)")
    one.append(10)
    one.follow()
    one.partition("name")
    one.append(10)
    one.follow()


def test_a_rollback_is_one_version(history: Make) -> None:
    one = history()
    one.append(10)
    back_to = one.snapshot
    one.follow()
    one.delete(3)
    one.append(10)
    one.follow()
    before = one.mirror.facts["version"]
    one.rollback(back_to)
    one.follow()
    assert one.mirror.facts["version"] == before + 1
    one.append(5)
    one.follow()
    one.check_time_travel()


def test_expiry_takes_the_versions_whose_files_go(history: Make) -> None:
    one = history()
    for _ in range(4):
        one.append(10)
        one.delete(3)
    one.follow()
    version = one.mirror.facts["version"]
    one.compact(everything=True)
    one.expire(keep_last=2)
    one.follow()
    versions = one.check_time_travel()
    assert version + 1 in versions
    assert 0 not in versions
    # Nothing is committed for an expiry, but for the snapshot that carries the position on.
    assert one.mirror.facts["version"] <= version + 2
    with pytest.raises(Exception, match=r"DELTA_VERSION_NOT_FOUND|Cannot time travel"):
        counted(read_delta_spark(one.spark, str(one.folder), version=0))
