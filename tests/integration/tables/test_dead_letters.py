"""Bad records under `skip` and `log`: each is in exactly one of table and dead letters, raw and exact."""

import re
from dataclasses import replace
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from headgate.errors import HeadgateError
from headgate.model import OnError
from headgate.tables.dead_letters import DeadLetters
from headgate.tables.lake import Lake
from headgate.tables.materialize import Materializer
from tests.integration.tables.drive import Drive, numbers, record, values

NUMBER = record(("n", "int"))


def named(drive: Drive, *extra: tuple[str, Any]) -> Any:
    """A schema that no other test registers: its id is the next one."""
    return record(("n", "int"), *extra, name="R_" + re.sub("[^A-Za-z0-9]", "_", drive.topic))


def start(drive: Drive, policy: OnError, partitions: int = 1) -> tuple[Materializer, int]:
    drive.spec = replace(drive.spec, on_error=policy)
    drive.create(partitions)
    return drive.materializer(), drive.register(named(drive))


def later(drive: Drive) -> Any:
    return named(drive, ("t", ["null", "string"]))


def poison(drive: Drive, schema_id: int) -> list[bytes]:
    """Sends one of each kind."""
    prefix = b"\x00" + schema_id.to_bytes(4, "big")
    found = [b"", b"junk", b"\x01" + prefix[1:] + b"\x02", b"\x00\x7f\xff\xff\xff\x02", prefix, prefix[:3]]
    for value in found:
        drive.send(value)
    drive.flush()
    return found


def topic_of(drive: Drive) -> list[tuple[bytes | None, dict[str, bytes]]]:
    """What a reader of committed records finds in the dead letters' topic."""
    consumer = Consumer(
        {
            "bootstrap.servers": drive.runtime.kafka,
            "group.id": "x",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(drive.spec.dead_letters_name, 0, 0)])
    found = []
    while True:
        message = consumer.poll(10)
        assert message is not None
        if message.error():
            break
        found.append((message.value(), dict(message.headers() or [])))
    consumer.close()
    return found  # type: ignore[return-value]


def dead(drive: Drive) -> list[dict[str, Any]]:
    return sorted(drive.rows(drive.spec.dead_letters_name), key=lambda row: row["offset"])


def test_skipped_records_are_counted_and_left_out(drive: Drive) -> None:
    table, schema_id = start(drive, OnError.SKIP)
    drive.produce(schema_id, NUMBER, values(3))
    bad = poison(drive, schema_id)
    drive.produce(schema_id, NUMBER, values(3, 3))
    (report,) = drive.run_all(table)
    assert (report.rows, report.bad) == (6, len(bad))
    assert numbers(drive.rows()) == list(range(6))


def test_dead_letters_are_raw_and_say_why(drive: Drive) -> None:
    table, schema_id = start(drive, OnError.LOG)
    drive.produce(schema_id, NUMBER, values(3))
    bad = poison(drive, schema_id)
    drive.produce(schema_id, NUMBER, values(3, 3))
    (report,) = drive.run_all(table)
    assert (report.rows, report.bad) == (6, len(bad))
    assert numbers(drive.rows()) == list(range(6))
    found = dead(drive)
    assert [bytes(row["value"]) for row in found] == bad
    assert [row["offset"] for row in found] == list(range(3, 3 + len(bad)))
    classes = [row["error_class"] for row in found]
    assert classes == ["NoSchemaId", "NoSchemaId", "NoSchemaId", "UnknownSchema", "Undecodable", "NoSchemaId"]
    assert found[3]["schema_id"] == 0x7FFFFFFF
    assert [value for value, _ in topic_of(drive)] == bad
    assert topic_of(drive)[4][1]["headgate.error_class"] == b"Undecodable"
    # The next batches are good again, and cost nothing more.
    drive.produce(schema_id, NUMBER, values(3, 6))
    drive.run_all(table)
    drive.produce(schema_id, NUMBER, values(3, 9))
    drive.run_all(table)
    assert numbers(drive.rows()) == list(range(12))
    assert len(dead(drive)) == len(bad)


class Crash(Exception):
    """The engine dies here."""


@pytest.mark.parametrize("step", ["dead", "published", "staged"])
def test_a_retry_finds_what_is_dead_already(drive: Drive, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A record that was dead in the first try stays dead, though it could be read in the second; one of the
    same offset in another partition is none of it."""
    table, schema_id = start(drive, OnError.LOG, partitions=2)
    drive.produce(schema_id, NUMBER, values(3))
    drive.produce(schema_id, NUMBER, values(6, 10), partition=1)
    known = drive.register(later(drive))
    drive.produce(known, later(drive), [{"n": 3, "t": "x"}])
    hidden = b"\x00" + (known + 1).to_bytes(4, "big") + b"\x08"
    drive.send(hidden)
    drive.flush()
    drive.produce(schema_id, NUMBER, values(2, 5))
    assert table.open(drive.view())
    with monkeypatch.context() as patch:

        def crash(*_: object, **__: object) -> None:
            raise Crash

        match step:
            case "dead":
                patch.setattr(DeadLetters, "_publish", crash)
            case "published":
                patch.setattr(Materializer, "_commit", crash)
            case _:
                patch.setattr(Lake, "commit", crash)
        with pytest.raises((Crash, HeadgateError)):
            drive.run_all(table)
    # Now the schema is there: too late for that record.
    again = drive.register(named(drive, ("t", ["null", "string"]), ("u", ["null", "string"])))
    assert again == known + 1
    drive.produce(schema_id, NUMBER, values(2, 7))
    drive.engine = "engine-2"
    second = drive.materializer()
    drive.run_all(second)
    assert [bytes(row["value"]) for row in dead(drive)] == [hidden]
    assert numbers(drive.rows()) == [0, 1, 2, 3, 5, 6, 7, 8, *range(10, 16)]
    assert [value for value, _ in topic_of(drive)] == [hidden]


def test_an_engine_that_was_replaced_adds_nothing(drive: Drive) -> None:
    """The first engine has judged its batch; the second claims, and reads the same record as good."""
    first, schema_id = start(drive, OnError.LOG)
    drive.produce(schema_id, NUMBER, values(2))
    drive.run_all(first)
    hidden = b"\x00" + (schema_id + 1).to_bytes(4, "big") + b"\x08\x00"
    drive.send(hidden)
    drive.flush()
    drive.engine = "engine-2"
    second = drive.materializer()
    assert second.open(drive.view())
    assert drive.register(later(drive)) == schema_id + 1
    drive.run_all(second)
    with pytest.raises(HeadgateError, match=r"[Aa]nother (engine|writer)"):
        first._known(first._dead).add(
            first._lane.dead(first._plan(None, None), first._lane.read(_batch(first, drive), drive.topic)),
            first._known(first._owner),
            _batch(first, drive),
        )
    assert dead(drive) == []
    assert numbers(drive.rows()) == [0, 1, 4]


def _batch(table: Materializer, drive: Drive) -> Any:
    from headgate.tables.plan import plan_batch

    assert table.position is not None
    return plan_batch(table.position, drive.view().ends, 10**6)


def test_replay_puts_each_into_the_table_once(drive: Drive) -> None:
    table, schema_id = start(drive, OnError.LOG)
    drive.produce(schema_id, NUMBER, values(2))
    unknown = schema_id + 1
    for number in (2, 3):
        drive.send(b"\x00" + unknown.to_bytes(4, "big") + bytes([2 * number]) + b"\x00")
    drive.send(b"junk")
    drive.flush()
    drive.run_all(table)
    nothing = table.replay(drive.view())
    assert (nothing.replayed, nothing.dead) == (0, 3)
    assert drive.register(later(drive)) == unknown
    found = table.replay(drive.view())
    assert (found.replayed, found.dead) == (2, 1)
    again = table.replay(drive.view())
    assert (again.replayed, again.dead) == (0, 1)
    assert numbers(drive.rows()) == [0, 1, 2, 3]
    assert sum(row["replayed_at"] is not None for row in dead(drive)) == 2
    # The position is where it was.
    drive.produce(schema_id, NUMBER, values(2, 4))
    drive.run_all(table)
    drive.run_all(drive.materializer())
    assert numbers(drive.rows()) == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("step", ["taken-up", "committed"])
def test_a_replay_that_was_cut_off_is_finished(
    drive: Drive, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, schema_id = start(drive, OnError.LOG)
    unknown = schema_id + 1
    drive.send(b"\x00" + unknown.to_bytes(4, "big") + b"\x04\x00")
    drive.flush()
    drive.run_all(table)
    assert drive.register(later(drive)) == unknown

    def crash(*_: object) -> None:
        raise Crash

    with monkeypatch.context() as patch:
        if step == "taken-up":
            patch.setattr(Materializer, "_carry_out", crash)
        else:
            patch.setattr(DeadLetters, "finish", crash)
        with pytest.raises(Crash):
            table.replay(drive.view())
    drive.engine = "engine-2"
    second = drive.materializer()
    found = second.replay(drive.view())
    assert found.replayed == (1 if step == "taken-up" else 0)
    assert found.dead == 0
    assert numbers(drive.rows()) == [2]
    assert all(row["replayed_at"] is not None for row in dead(drive))


def test_a_table_that_was_purged_leaves_its_letters_to_itself(drive: Drive) -> None:
    """A letter that was replayed into the old table must be in the new one too."""
    table, schema_id = start(drive, OnError.LOG)
    drive.produce(schema_id, named(drive), values(2))
    unknown = schema_id + 1
    drive.send(b"\x00" + unknown.to_bytes(4, "big") + b"\x04\x00")
    drive.send(b"junk")
    drive.flush()
    drive.run_all(table)
    assert drive.register(later(drive)) == unknown
    assert table.replay(drive.view()).replayed == 1
    assert drive.lake.drop(drive.topic)
    drive.enablement = "second"
    second = drive.materializer()
    drive.run_all(second)
    assert numbers(drive.rows()) == [0, 1, 2]
    found = second.replay(drive.view())
    assert (found.replayed, found.dead) == (0, 1)
    assert [bytes(row["value"]) for row in dead(drive) if row["replayed_at"] is None] == [b"junk", b"junk"]
