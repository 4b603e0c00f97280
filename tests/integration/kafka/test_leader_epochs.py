"""Leader epochs on a broker of the test's own, which is stopped and started between the records."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from headgate.embedded.broker import Broker, wait_for_kafka
from headgate.embedded.ports import free_port
from headgate.engine.source import KafkaSource
from headgate.errors import StatementFailed
from headgate.kafka import Offsets, Topics
from headgate.model import Position, TableSpec, Topic
from headgate.statements.leaders import Leaders
from headgate.tables.materialize import Materializer
from headgate.tables.plan import Limits


@contextmanager
def running(broker: Broker) -> Iterator[None]:
    with (broker.folder / "broker.log").open("ab") as out:
        process = subprocess.Popen(
            broker.prepare(), stdout=out, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            wait_for_kafka(broker.bootstrap, alive=lambda: process.poll() is None)
            yield
        finally:
            process.terminate()
            process.wait(timeout=30)


def write(broker: Broker, topic: str, counts: dict[int, int], transaction: str | None = None) -> None:
    config = {"bootstrap.servers": broker.bootstrap, "log_level": 0}
    producer = Producer(config | ({"transactional.id": transaction} if transaction else {}))
    if transaction:
        producer.init_transactions(30)
        producer.begin_transaction()
    for partition, count in counts.items():
        for _ in range(count):
            producer.produce(topic, b"v", partition=partition)
    if transaction:
        producer.commit_transaction(30)
    assert producer.flush(30) == 0


def told(broker: Broker, topic: Topic, partition: int, start: int, end: int) -> list[tuple[int, int]]:
    """The steps as a consumer sees them that reads every record."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "told",
            "enable.partition.eof": True,
            "log_level": 0,
        }
    )
    found: list[tuple[int, int]] = []
    try:
        consumer.assign([TopicPartition(topic.name, partition, start)])
        while (message := consumer.poll(30)) is not None and message.error() is None:
            offset, epoch = message.offset(), message.leader_epoch()
            assert offset is not None
            assert epoch is not None
            if offset >= end:
                break
            if not found or found[-1][1] != epoch:
                found.append((offset if found else start, epoch))
    finally:
        consumer.close()
    return found


def test_each_restart_is_a_step(jars: Path, tmp_path: Path) -> None:
    broker = Broker(tmp_path, free_port(), free_port(), jars)
    with running(broker):
        topic = Topics(broker.bootstrap).create("epochs", 4)
        assert Offsets(broker.bootstrap).leader_epochs(topic, {0: (0, 0)}) == {0: []}
        write(broker, "epochs", {0: 300, 1: 1})
    with running(broker):
        write(broker, "epochs", {0: 5}, transaction="one")
    with running(broker):
        write(broker, "epochs", {0: 200, 1: 2}, transaction="two")
        # Not by numbers: a broker that stops may write the mark of a transaction once more when it is back.
        write(broker, "epochs", {3: 30})
        write(broker, "epochs", {3: 20})
        before = KafkaSource(broker.bootstrap).view("epochs")
        ranges = {p: (0, end) for p, end in Offsets(broker.bootstrap).stable_ends([topic])["epochs"].items()}
        found = Offsets(broker.bootstrap).leader_epochs(topic, ranges)
        assert found == {p: told(broker, topic, p, *ranges[p]) for p in ranges}
        # A restart that the controller does not notice is no step; two of two are noticed hardly ever not.
        assert len(found[0]) >= 2
        assert (found[1] != [], found[2]) == (True, [])
        third = found[0][-1][0]
        # Within one epoch, over the marks of transactions, and beyond what there is.
        end = ranges[0][1]
        spans = [(10, 200), (299, 301), (303, 310), (third - 1, third + 1), (third, end), (end - 1, end)]
        for span in [*spans, (600, 700)]:
            asked = Offsets(broker.bootstrap).leader_epochs(topic, {0: span})[0]
            assert asked == told(broker, topic, 0, *span), span
    # The end of a partition's log is lost while its broker is down, and other records come.
    lose_records(tmp_path / "logs", "epochs-3", 30)
    with running(broker):
        write(broker, "epochs", {3: 40})
        source = KafkaSource(broker.bootstrap)
        now = source.view("epochs")
        assert (before.ends[3], now.ends[3]) == (50, 70)
        position = Position(before.cluster_id, topic.id, before.ends, epochs=before.epochs)
        anything: Any = None
        table = Materializer(TableSpec("epochs"), "", anything, anything, anything, source, Limits(1, 1))
        assert table._replaced(now, position) == {3: (30, 50)}
        with pytest.raises(StatementFailed, match="partition 3: 30 to 49"):
            Leaders(broker.bootstrap, "totals", Kept(position)).check([topic], 1)


@dataclass
class Kept:
    """What a statement's checkpoint says that has read up to a position."""

    position: Position

    def entry(self, _: int) -> str:
        ends = json.dumps({"epochs": {str(p): end for p, end in self.position.offsets.items()}})
        return "\n".join(["v1", "{}", ends])

    def leaders(self) -> str:
        return json.dumps({"epochs": {str(p): epoch for p, epoch in self.position.epochs.items()}})

    def keep_leaders(self, text: str) -> None:
        raise AssertionError(f"nothing is kept of what is refused: {text}")


def lose_records(logs: Path, partition: str, end: int) -> None:
    """Cut the log of a broker that is down, as a crash does or a leader that has not caught up."""
    log = logs / partition / f"{0:020}.log"
    data, at = log.read_bytes(), 0
    while int.from_bytes(data[at : at + 8], "big") < end:
        at += 12 + int.from_bytes(data[at + 8 : at + 12], "big")
    log.write_bytes(data[:at])
    for index in log.parent.glob("*index"):
        index.unlink()
    (logs / ".kafka_cleanshutdown").unlink(missing_ok=True)
