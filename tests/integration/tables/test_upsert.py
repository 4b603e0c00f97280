"""Upsert tables: the last record of each key, deletes, and an index that is right whatever happened to it."""

from dataclasses import replace
from typing import Any

import pytest

from headgate.model import Deletes, OnError, TableMode
from tests.integration.tables.drive import Drive
from tests.support.keyed import Keyed
from tests.support.ledger import canonical


@pytest.fixture
def keyed(drive: Drive) -> Keyed:
    drive.spec = replace(drive.spec, mode=TableMode.UPSERT)
    return Keyed(drive.runtime, drive.topic)


def check(drive: Drive, keyed: Keyed) -> None:
    """The table equals the dict replay, in two engines."""
    found, expected = drive.rows(), keyed.state()
    assert sorted(map(canonical, found)) == sorted(map(canonical, expected))


@pytest.mark.parametrize("deletes", list(Deletes))
def test_batches_replace_and_delete_rows(drive: Drive, keyed: Keyed, deletes: Deletes) -> None:
    drive.spec = replace(drive.spec, deletes=deletes)
    materializer = drive.materializer()
    for seed in range(4):
        keyed.random(300, keys=60, seed=seed)
        assert len(drive.run_all(materializer)) == 1
        check(drive, keyed)
    facts: Any = materializer.facts
    assert facts["mode"] == "upsert"
    assert facts["key"] == ["id", "region"]
    assert facts["unique_keys"] == len(keyed.state())
    # Another engine, with the index of the first and then without it.
    drive.index.close()
    again = drive.materializer()
    keyed.random(200, keys=60, seed=100)
    drive.run_all(again)
    check(drive, keyed)
    drive.index.clear()
    again = drive.materializer()
    keyed.random(200, keys=60, seed=101)
    drive.run_all(again)
    check(drive, keyed)


def test_null_keys_are_dead_letters(drive: Drive, keyed: Keyed) -> None:
    drive.spec = replace(drive.spec, on_error=OnError.LOG)
    materializer = drive.materializer()
    keyed.random(300, keys=40, seed=1, null_keys=0.1)
    drive.run_all(materializer)
    check(drive, keyed)
    dead = drive.rows(f"{drive.topic}.dlq")
    assert len(dead) == keyed.null_keys > 0
    assert {row["error_class"] for row in dead} == {"NullKey"}


def test_a_value_that_names_another_key_keeps_its_own_row(drive: Drive, keyed: Keyed) -> None:
    """Value fields win over key fields of the same name; the row is still the key's."""
    materializer = drive.materializer()
    keyed.put((1, "eu"), {"id": 99, "name": "odd", "amount": 1})
    keyed.put((2, "eu"), {"id": 2, "name": "even", "amount": 2})
    keyed.flush()
    drive.run_all(materializer)
    assert {(row["id"], row["name"]) for row in drive.rows()} == {(99, "odd"), (2, "even")}
    drive.index.clear()
    materializer = drive.materializer()
    keyed.put((1, "eu"), {"id": 98, "name": "odder", "amount": 1})
    keyed.flush()
    drive.run_all(materializer)
    assert {(row["id"], row["name"]) for row in drive.rows()} == {(98, "odder"), (2, "even")}
    keyed.put((1, "eu"), None)
    keyed.flush()
    drive.run_all(materializer)
    assert {(row["id"], row["name"]) for row in drive.rows()} == {(2, "even")}
