"""A commit whose connection is reset and which the catalog applies later: nothing is lost, none there twice.

The catalog offers no idempotency keys here, as many do not: the client learns nothing of what became of it.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from py4j.protocol import Py4JNetworkError
from pyspark.sql import SparkSession

from headgate.catalog.client import catalog_properties
from headgate.errors import CatalogUnavailable, CommitUnknown
from headgate.model import OnError, TableMode
from headgate.tables.lake import Lake
from tests.integration.tables.drive import NUMBER, Drive, numbers, record, values
from tests.support.keyed import Keyed
from tests.support.proxy import Late, proxy


@pytest.fixture
def late(drive: Drive, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[Late]:
    """What stands between the drive's tables and the catalog."""
    runtime = drive.runtime
    late = Late(runtime.iceberg)
    with proxy(runtime.iceberg, lambda *_: None, lambda *_: True, late) as address:
        through = Lake(spark, catalog_properties(address, token=runtime.catalog_key), "local")
        monkeypatch.setattr(drive.lake, "_catalog", through._catalog)
        yield late


def test_files_of_a_batch_that_is_committed_later_are_there(drive: Drive, late: Late) -> None:
    drive.create(1)
    drive.produce(drive.register(NUMBER), NUMBER, values(10))
    table = drive.materializer()
    late.which = lambda body: b"added-records" in body
    with pytest.raises(CommitUnknown):
        table.run(drive.view())
    assert late.deliver() == 200
    table.forget()
    assert table.run(drive.view()) is None
    assert numbers(drive.rows()) == list(range(10))


def test_dead_letters_and_replays_that_are_committed_later_are_there_once(drive: Drive, late: Late) -> None:
    drive.spec = replace(drive.spec, on_error=OnError.LOG)
    drive.create(1)
    name = "R_" + re.sub("[^A-Za-z0-9]", "_", drive.topic)
    schema_id = drive.register(record(("n", "int"), name=name))
    unknown = schema_id + 1
    drive.send(b"\x00" + unknown.to_bytes(4, "big") + b"\x04\x00")
    drive.flush()
    table = drive.materializer()
    late.which = lambda body: b"headgate.source-to" in body
    with pytest.raises(CommitUnknown):
        table.run(drive.view())
    table.forget()
    # The table is opened again before the request arrives, and the batch is judged after it has.
    assert table.open(drive.view())
    late.deliver()
    drive.run_all(table)
    assert len(drive.rows(drive.spec.dead_letters_name)) == 1

    assert drive.register(record(("n", "int"), ("t", ["null", "string"]), name=name)) == unknown
    late.which = lambda body: b"headgate.replay" in body and b"added-records" in body
    with pytest.raises(CommitUnknown):
        table.replay(drive.view())
    table.forget()
    assert table.open(drive.view())
    late.deliver()
    table.forget()
    assert table.replay(drive.view()).dead == 0
    assert numbers(drive.rows()) == [2]


class LostDrops:
    """A catalog that drops tables, and whose answer to that does not come."""

    def __init__(self, catalog: Any) -> None:
        self._catalog = catalog

    def __getattr__(self, name: str) -> Any:
        return getattr(self._catalog, name)

    def dropTable(self, *arguments: Any) -> bool:  # noqa: N802 - Iceberg's name
        assert self._catalog.dropTable(*arguments)
        raise Py4JNetworkError("the answer is lost")


def test_a_purge_whose_answer_is_lost_leaves_nothing_behind(
    drive: Drive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What lies beside the table is known to nobody once the table is gone."""
    drive.spec = replace(drive.spec, mode=TableMode.UPSERT, on_error=OnError.LOG)
    keyed = Keyed(drive.runtime, drive.topic)
    keyed.put((1, "eu"), {"id": 1, "name": "one", "amount": 1})
    keyed.put((2, "eu"), None)
    keyed.flush()
    drive.run_all(drive.materializer())
    table = drive.lake.load(drive.topic)
    assert table is not None
    folder = Path(unquote(urlsplit(table.location()).path))
    assert list((folder / "_headgate").rglob("*.parquet")), "a deleted key is remembered"
    with monkeypatch.context() as patched:
        patched.setattr(drive.lake, "_catalog", LostDrops(drive.lake._catalog))
        with pytest.raises(CatalogUnavailable):
            drive.lake.drop(drive.topic)
    assert not drive.lake.drop(drive.topic)
    assert [path for path in folder.rglob("*") if path.is_file()] == []
