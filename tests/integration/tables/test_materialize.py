"""A table follows its topic, in every order of events."""

from itertools import pairwise
from typing import Any

import pytest

from headgate.errors import (
    ForeignTable,
    NotFound,
    OffsetsLost,
    PositionMissing,
    StaleBatch,
    TableStopped,
    TopicReplaced,
)
from headgate.model import POSITION_KEY, Start, StartKind
from tests.integration.tables.drive import NUMBER, Drive, numbers, values
from tests.support.services import wait_for


def test_batches_are_bounded_and_follow_one_another(drive: Drive) -> None:
    drive.create(partitions=3)
    schema_id = drive.register(NUMBER)
    for partition in range(3):
        drive.produce(schema_id, NUMBER, values(100, partition * 1000), partition)
    drive.max_rows = 70
    reports = drive.run_all(drive.materializer())
    assert len(reports) > 3
    assert all(r.rows <= 73 for r in reports)
    assert all(a.batch.end == b.batch.start for a, b in pairwise(reports))
    assert numbers(drive.rows()) == sorted(v["n"] for p in range(3) for v in values(100, p * 1000))


def test_a_new_materializer_goes_on_at_the_tables_position(drive: Drive) -> None:
    drive.create()
    schema_id = drive.register(NUMBER)
    drive.produce(schema_id, NUMBER, values(10))
    drive.run_all(drive.materializer())
    assert drive.run_all(drive.materializer()) == []
    drive.produce(schema_id, NUMBER, values(5, 10))
    drive.run_all(drive.materializer())
    assert numbers(drive.rows()) == list(range(15))


def test_aborted_and_open_transactions(drive: Drive) -> None:
    """Only what was committed, and nothing past a transaction that is still open."""
    drive.create(partitions=1)
    schema_id = drive.register(NUMBER)
    prefix = b"\x00" + schema_id.to_bytes(4, "big")

    def send(producer: Any, *items: int) -> None:
        for item in items:
            producer.produce(drive.topic, prefix + bytes([item * 2]), partition=0)
        producer.flush(30)

    committed = drive.transaction("committed")
    send(committed, 1, 2)
    committed.commit_transaction(30)
    aborted = drive.transaction("aborted")
    send(aborted, 3, 4)
    aborted.abort_transaction(30)
    still_open = drive.transaction("open")
    send(still_open, 5)
    drive.produce(schema_id, NUMBER, [{"n": 6}])
    materializer = drive.materializer()
    drive.run_all(materializer)
    assert numbers(drive.rows()) == [1, 2]
    still_open.commit_transaction(30)
    # Six records and three markers; the last marker is written after the commit is acknowledged.
    wait_for("the last marker", lambda: drive.view().ends[0] == 9)
    drive.run_all(materializer)
    assert numbers(drive.rows()) == [1, 2, 5, 6]


@pytest.mark.parametrize("kind", [StartKind.LATEST, StartKind.OFFSETS])
def test_the_start_is_pinned_when_the_table_is_opened(drive: Drive, kind: StartKind) -> None:
    drive.create(partitions=1)
    schema_id = drive.register(NUMBER)
    drive.produce(schema_id, NUMBER, values(10))
    start = Start(kind, offsets={0: 7} if kind is StartKind.OFFSETS else None)
    assert drive.materializer(start).open(drive.view())
    drive.produce(schema_id, NUMBER, values(2, 10))
    # Another engine: the start is not worked out again.
    drive.run_all(drive.materializer(start))
    assert numbers(drive.rows()) == ([10, 11] if kind is StartKind.LATEST else [7, 8, 9, 10, 11])


def test_enabled_again_it_goes_on_and_takes_no_other_start(drive: Drive) -> None:
    drive.create(partitions=1)
    schema_id = drive.register(NUMBER)
    drive.produce(schema_id, NUMBER, values(3))
    drive.run_all(drive.materializer())
    drive.produce(schema_id, NUMBER, values(3, 3))
    drive.enablement = "second"
    with pytest.raises(TableStopped, match="cannot start from latest"):
        drive.run_all(drive.materializer(Start(StartKind.LATEST)))
    drive.run_all(drive.materializer(Start()))
    assert numbers(drive.rows()) == list(range(6))


def test_the_slower_of_two_loses_and_its_files_go(drive: Drive) -> None:
    drive.create()
    schema_id = drive.register(NUMBER)
    drive.produce(schema_id, NUMBER, values(3))
    fast, slow = drive.materializer(), drive.materializer()
    assert fast.open(drive.view())
    assert slow.open(drive.view())
    drive.run_all(fast)
    files = drive.data_files()
    with pytest.raises(StaleBatch):
        drive.run_all(slow)
    assert drive.data_files() == files
    slow.forget()
    assert drive.run_all(slow) == []
    assert numbers(drive.rows()) == [0, 1, 2]


def test_partitions_added_while_running(drive: Drive) -> None:
    from confluent_kafka.admin import AdminClient
    from confluent_kafka.cimpl import NewPartitions

    drive.create(partitions=1)
    schema_id = drive.register(NUMBER)
    drive.produce(schema_id, NUMBER, values(3))
    materializer = drive.materializer()
    drive.run_all(materializer)
    admin = AdminClient({"bootstrap.servers": drive.runtime.kafka})
    for future in admin.create_partitions([NewPartitions(drive.topic, 3)]).values():
        future.result()
    drive.new_producer()
    drive.produce(schema_id, NUMBER, values(2, 3), partition=2)
    drive.run_all(materializer)
    assert numbers(drive.rows()) == list(range(5))


def test_a_topic_created_anew_stops_the_table(drive: Drive) -> None:
    drive.create(partitions=1)
    schema_id = drive.register(NUMBER)
    drive.produce(schema_id, NUMBER, values(3))
    materializer = drive.materializer()
    drive.run_all(materializer)
    drive.topics.delete(drive.topic)
    drive.create(partitions=1)
    drive.produce(schema_id, NUMBER, values(9, 100))
    with pytest.raises(TopicReplaced, match="deleted and created again"):
        drive.run_all(materializer)
    assert numbers(drive.rows()) == [0, 1, 2]


def test_retention_that_overtakes_stops_the_table(drive: Drive) -> None:
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import AdminClient

    drive.create(partitions=1)
    schema_id = drive.register(NUMBER)
    drive.produce(schema_id, NUMBER, values(3))
    materializer = drive.materializer()
    drive.run_all(materializer)
    drive.produce(schema_id, NUMBER, values(5, 3))
    admin = AdminClient({"bootstrap.servers": drive.runtime.kafka})
    for future in admin.delete_records([TopicPartition(drive.topic, 0, 6)]).values():
        future.result()
    with pytest.raises(OffsetsLost, match="partition 0: 3 to 5"):
        drive.run_all(materializer)


def test_history_without_a_position_is_never_a_fresh_start(drive: Drive) -> None:
    drive.create(partitions=1)
    drive.produce(drive.register(NUMBER), NUMBER, values(3))
    materializer = drive.materializer()
    drive.run_all(materializer)
    table = drive.lake.load(drive.topic)
    assert table is not None
    assert POSITION_KEY in table.currentSnapshot().summary()
    # As a tool that is not ours could do it: a snapshot without a position, and all before it expired.
    table.updateProperties().set("headgate.managed", "false").commit()
    append = table.newAppend()
    append.set("by", "another").commit()
    newest = table.currentSnapshot()
    table.expireSnapshots().expireOlderThan(newest.timestampMillis() + 1).retainLast(1).commit()
    table.updateProperties().set("headgate.managed", "true").commit()
    materializer.forget()
    with pytest.raises(PositionMissing, match="none of its snapshots carries a position"):
        drive.run_all(materializer)


def test_a_table_that_is_not_ours_is_neither_written_nor_removed(drive: Drive) -> None:
    drive.create(partitions=1)
    drive.produce(drive.register(NUMBER), NUMBER, values(3))
    drive.run_all(drive.materializer())
    table = drive.lake.load(drive.topic)
    assert table is not None
    table.updateProperties().remove("headgate.managed").commit()
    # Nobody verifies what is somebody else's.
    drive.ends_whole = False
    with pytest.raises(ForeignTable, match="did not make"):
        drive.run_all(drive.materializer())
    with pytest.raises(ForeignTable, match="did not make"):
        drive.lake.drop(drive.topic)
    assert numbers(drive.rows()) == [0, 1, 2]


def test_a_view_older_than_the_position_is_looked_up_again(drive: Drive) -> None:
    """As when records arrive between the engine's look and the settling of `latest`."""
    drive.create(partitions=1)
    schema_id = drive.register(NUMBER)
    old = drive.view()
    drive.produce(schema_id, NUMBER, values(3))
    assert drive.materializer(Start(StartKind.LATEST)).run(old) is None
    drive.produce(schema_id, NUMBER, values(2, 3))
    drive.run_all(drive.materializer(Start(StartKind.LATEST)))
    assert numbers(drive.rows()) == [3, 4]


def test_dropped_and_enabled_again_it_starts_afresh(drive: Drive) -> None:
    drive.create()
    drive.produce(drive.register(NUMBER), NUMBER, values(3))
    drive.run_all(drive.materializer())
    assert drive.lake.drop(drive.topic)
    assert not drive.lake.drop(drive.topic)
    drive.run_all(drive.materializer())
    assert numbers(drive.rows()) == [0, 1, 2]


def test_a_topic_that_is_gone(drive: Drive) -> None:
    drive.create()
    drive.produce(drive.register(NUMBER), NUMBER, values(3))
    materializer = drive.materializer()
    view = drive.view()
    assert materializer.open(view)
    drive.topics.delete(drive.topic)
    assert drive.source.views([drive.topic]) == {}
    with pytest.raises(NotFound):
        drive.source.view(drive.topic)
