"""`headgate datagen` and `headgate topic`, against a real server, broker and registry."""

import json
import signal
import subprocess
import sys
import time
from contextlib import suppress
from typing import Any

import pytest
import typer
from confluent_kafka import Producer
from typer.testing import CliRunner, Result

from headgate.cli import datagen, topic
from headgate.datagen import Orders
from headgate.datagen.orders import counts
from headgate.embedded.broker import Broker
from headgate.errors import AlreadyExists, InvalidRequest, KafkaUnavailable, NotFound
from headgate.kafka import Offsets, Topics
from tests.integration.server.conftest import Served

app = typer.Typer()
app.add_typer(topic.app, name="topic")
app.add_typer(datagen.app, name="datagen")


class Headgate:
    """The commands on one data folder."""

    def __init__(self, served: Served) -> None:
        self.data = str(served.data)

    def try_run(self, *arguments: str) -> Result:
        return CliRunner().invoke(app, [*arguments, "--data", self.data])

    def run(self, *arguments: str) -> str:
        found = self.try_run(*arguments)
        if found.exception is not None:
            raise found.exception
        return found.stdout

    def json(self, *arguments: str) -> Any:
        return json.loads(self.run(*arguments, "--json"))

    def records(self, *arguments: str) -> list[dict[str, Any]]:
        out = self.run("topic", "consume", *arguments, "--json", "--timeout", "1s")
        return [json.loads(line) for line in out.splitlines()]


@pytest.fixture
def headgate(served: Served) -> Headgate:
    return Headgate(served)


def test_datagen_says_what_it_wrote(headgate: Headgate, prefix: str) -> None:
    found = headgate.json("datagen", "orders", "--limit", "30", "--seed", "4", "--prefix", prefix)
    assert found["topics"] == {prefix + name: count for name, count in counts(30, seed=4).items()}
    assert found["records"] == sum(found["topics"].values())
    assert found["seed"] == 4

    text = headgate.run("datagen", "orders", "--limit", "100", "--prefix", f"{prefix}again-")
    assert f"{prefix}again-payments" in text
    assert f"{sum(counts(100).values())} records in" in text


def test_datagen_refuses_what_it_cannot_make(headgate: Headgate) -> None:
    assert headgate.try_run("datagen", "weather").exit_code == 2
    assert headgate.try_run("datagen", "orders", "--limit", "0").exit_code == 2
    with pytest.raises(InvalidRequest, match="rate"):
        headgate.run("datagen", "orders", "--limit", "1", "--rate", "0")
    with pytest.raises(InvalidRequest, match="seed"):
        headgate.run("datagen", "orders", "--limit", "1", "--seed", "-1")


def wait_for_record(broker: Broker, name: str) -> None:
    topics, offsets, deadline = Topics(broker.bootstrap), Offsets(broker.bootstrap), time.monotonic() + 60
    while True:
        # A partition that was created just now may have no leader yet.
        with suppress(KafkaUnavailable):
            ends = offsets.stable_ends(topics.describe_many([name]).values()).get(name, {})
            if sum(ends.values()):
                return
        assert time.monotonic() < deadline, f"nothing came into {name}"
        time.sleep(0.05)


def test_ctrl_c_ends_an_endless_run_with_its_counts(headgate: Headgate, broker: Broker, prefix: str) -> None:
    program = "from headgate.cli.datagen import app; app()"
    options = ["orders", "--rate", "400", "--prefix", prefix, "--json", "--data", headgate.data]
    with subprocess.Popen(
        [sys.executable, "-c", program, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        wait_for_record(broker, f"{prefix}orders")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert process.returncode == 0, err
    written = json.loads(out)["topics"]
    described = Topics(broker.bootstrap).describe_many(written)
    ends = Offsets(broker.bootstrap).stable_ends(described.values())
    assert written == {name: sum(offsets.values()) for name, offsets in ends.items()}
    assert written[f"{prefix}orders"] > 0


def test_consume_decodes_what_datagen_wrote(headgate: Headgate, prefix: str) -> None:
    headgate.run("datagen", "orders", "--limit", "50", "--prefix", prefix)
    found = {record["key"]: record for record in headgate.records(f"{prefix}orders")}
    made = [record for record in Orders(1).records(50) if record.topic == "orders"]
    assert len(found) == 50
    for record in made:
        shown = found[record.key.decode()]
        assert shown["value"]["total"] == str(record.value["total"])
        assert [line["unit_price"] for line in shown["value"]["lines"]] == [
            str(line["unit_price"]) for line in record.value["lines"]
        ]
        assert shown["value"]["ship_to"] == record.value["ship_to"]
        assert shown["value"]["placed_at"] == shown["timestamp"]
        assert shown["value_format"] == "avro"
        assert shown["schema_id"] > 0


def test_consume_prints_a_line_for_each_record(headgate: Headgate, prefix: str) -> None:
    headgate.run("datagen", "orders", "--limit", "5", "--prefix", prefix)
    lines = headgate.run("topic", "consume", f"{prefix}customers", "--limit", "7").splitlines()
    assert len(lines) == 7
    assert all("2025-01-01T00:00:00Z  c1-" in line for line in lines)


def test_consume_shows_json_text_bytes_and_tombstones(
    headgate: Headgate, broker: Broker, prefix: str
) -> None:
    name = f"{prefix}mixed"
    headgate.run("topic", "create", name, "--partitions", "1")
    producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    values = [b'{"a": 1.5}', b"plain", b"\xff\x00", None]
    for value in values:
        producer.produce(name, value, None if value is None else b"k", timestamp=1)
    assert producer.flush(10) == 0

    found = headgate.records(name)
    assert [record["value"] for record in found] == [{"a": 1.5}, "plain", "base64:/wA=", None]
    assert [record["value_format"] for record in found] == ["json", "text", "bytes", "none"]
    assert [record["key"] for record in found] == ["k", "k", "k", None]
    assert [record["offset"] for record in found] == [0, 1, 2, 3]
    assert found[0]["timestamp"] == "1970-01-01T00:00:00.001000Z"
    assert headgate.records(name, "--from", "latest") == []
    assert len(headgate.records(name, "--limit", "2")) == 2


def test_consume_shows_committed_records_only(headgate: Headgate, broker: Broker, prefix: str) -> None:
    name = f"{prefix}transactions"
    headgate.run("topic", "create", name, "--partitions", "1")
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": name, "log_level": 0})
    producer.init_transactions(10)
    for outcome in ("aborted", "committed", "open"):
        producer.begin_transaction()
        producer.produce(name, outcome.encode())
        producer.flush(10)
        if outcome == "aborted":
            producer.abort_transaction(10)
        elif outcome == "committed":
            producer.commit_transaction(10)
    assert [record["value"] for record in headgate.records(name)] == ["committed"]
    producer.abort_transaction(10)


def test_a_topic_from_creation_to_deletion(headgate: Headgate, prefix: str) -> None:
    name = f"{prefix}life"
    created = headgate.json("topic", "create", name, "--partitions", "2", "--config", "retention.ms=60000")
    assert created["partitions"] == 2
    with pytest.raises(AlreadyExists):
        headgate.run("topic", "create", name)

    listed = {topic["name"]: topic for topic in headgate.json("topic", "list")}
    assert listed[name] == created
    assert name in headgate.run("topic", "list")

    described = headgate.json("topic", "describe", name)
    assert described["id"] == created["id"]
    assert described["config"] == {"retention.ms": "60000"}
    assert described["partitions"] == [{"partition": p, "earliest": 0, "end": 0} for p in (0, 1)]
    assert described["table"] is None
    assert "retention.ms" in headgate.run("topic", "describe", name)

    with pytest.raises(InvalidRequest, match="--yes"):
        headgate.run("topic", "delete", name)
    headgate.run("topic", "delete", name, "--yes")
    assert name not in headgate.run("topic", "list")


@pytest.mark.parametrize("command", [["describe"], ["consume"], ["delete", "--yes"]])
def test_a_missing_topic_is_not_found(headgate: Headgate, command: list[str]) -> None:
    with pytest.raises(NotFound, match="no-such-topic"):
        headgate.run("topic", *command, "no-such-topic")


def test_a_setting_needs_a_name_and_a_value(headgate: Headgate, prefix: str) -> None:
    with pytest.raises(InvalidRequest, match="no setting"):
        headgate.run("topic", "create", f"{prefix}a", "--config", "compact")


def test_describe_counts_records(headgate: Headgate, prefix: str) -> None:
    headgate.run("datagen", "orders", "--limit", "20", "--prefix", prefix)
    described = headgate.json("topic", "describe", f"{prefix}orders")
    assert sum(partition["end"] for partition in described["partitions"]) == 20
