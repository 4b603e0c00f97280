"""A commit whose connection is reset and which the catalog applies later: nothing is lost, none there twice.

The catalog offers no idempotency keys here, as many do not: the client learns nothing of what became of it.
"""

import re
from collections.abc import Iterator
from dataclasses import replace

import pytest
from pyspark.sql import SparkSession

from headgate.catalog.client import catalog_properties
from headgate.errors import CommitUnknown
from headgate.model import OnError
from headgate.tables.lake import Lake
from tests.integration.tables.drive import NUMBER, Drive, numbers, record, values
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
