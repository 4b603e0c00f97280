"""All ways into a secured broker, with librdkafka."""

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from headgate.cli.main import app
from headgate.config import load_settings
from headgate.embedded.broker import wait_for_kafka
from headgate.embedded.process import Identity
from headgate.embedded.runtime import Runtime
from headgate.errors import ConfigError, KafkaUnavailable
from headgate.jvm import Jvm
from headgate.kafka import KafkaAccess, Offsets, Topics
from headgate.kafka.records import committed_records
from headgate.kafka.transactional import Row, TransactionalWriter
from tests.integration.kafka.secured import PASSWORD, WAYS, Secured, secured_broker
from tests.integration.registry.running import RunningRegistry
from tests.integration.registry.test_access import BASIC, door
from tests.integration.registry.test_access import PASSWORD as REGISTRY_PASSWORD
from tests.integration.registry.test_access import USER as REGISTRY_USER

LOGINS = [way for way in WAYS if not way.startswith("mtls")]
WRONG = "wrong-hush"


@pytest.fixture(scope="module")
def secured(jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with secured_broker(tmp_path_factory.mktemp("secured"), jars) as secured:
        yield secured


@pytest.mark.parametrize("way", WAYS)
def test_everything_works_this_way(secured: Secured, way: str) -> None:
    access = secured.access(way, options={"client.id": "tests", "fetch.max.wait.ms": 50})
    wait_for_kafka(access, 20)
    topics = Topics(access)
    topic = topics.create(f"way-{way}", 2)
    assert topic in topics.list()
    with TransactionalWriter(access, way, 0, "way-markers") as writer:
        assert writer.write(1, topic.name, [Row(b"k", way.encode(), partition=1)])
    offsets = Offsets(access)
    assert offsets.earliest([topic]) == {topic.name: {0: 0, 1: 0}}
    assert [m.value() for m in committed_records(access, topic.name, {0: 0, 1: 0}, 1)] == [way.encode()]
    assert offsets.record_size_sample(topic, {0: 0, 1: 0}) == 1 + len(way)
    assert len(offsets.leader_epochs(topic, {1: (0, 1)})[1]) == 1


@pytest.mark.parametrize("way", LOGINS)
def test_a_wrong_password_is_said_and_not_shown(secured: Secured, way: str) -> None:
    access = secured.access(way, WRONG)
    with pytest.raises(ConfigError, match="does not let Headgate in") as caught:
        Topics(access, timeout=2).list()
    assert access.bootstrap in str(caught.value)
    assert "kafka.security" in caught.value.remedy
    assert WRONG not in str(caught.value)
    with pytest.raises(ConfigError, match="does not let Headgate in"):
        list(committed_records(access, "any", {0: 0}))
    with pytest.raises(ConfigError, match="does not let Headgate in"):
        wait_for_kafka(access, 20)


def test_a_wrong_password_after_a_right_one_is_noticed(secured: Secured) -> None:
    right = Topics(secured.access("plain"), timeout=2)
    assert right.cluster_id()
    with pytest.raises(ConfigError):
        Topics(secured.access("plain", WRONG), timeout=2).cluster_id()
    assert right.cluster_id()


def test_brokers_that_cannot_be_trusted_are_not_spoken_to(secured: Secured) -> None:
    access = secured.access("scram-ssl")
    unknown = replace(access, security=replace(access.security, ca_pem=None))
    with pytest.raises(ConfigError, match="certificate"):
        Topics(unknown, timeout=2).list()
    # The certificate is for the address, not for the name.
    by_name = replace(access, bootstrap=access.bootstrap.replace("127.0.0.1", "localhost"))
    with pytest.raises(ConfigError, match="certificate"):
        Topics(by_name, timeout=2).list()
    careless = replace(by_name, security=replace(access.security, check_hostname=False))
    assert Topics(careless).cluster_id()


def test_a_client_without_its_certificate_gets_nowhere(secured: Secured) -> None:
    access = secured.access("mtls")
    bare = replace(access, security=replace(access.security, certificate_pem=None, key_pem=None))
    with pytest.raises((ConfigError, KafkaUnavailable), match=access.bootstrap):
        Topics(bare, timeout=2).list()


def test_the_wrong_protocol_is_no_verdict(secured: Secured) -> None:
    """A broker that is starting or going down looks the same."""
    bootstrap = secured.access("mtls").bootstrap
    with pytest.raises(KafkaUnavailable, match=bootstrap):
        Topics(KafkaAccess(bootstrap), timeout=2).list()


def test_a_token_server_that_is_away_is_a_pause(secured: Secured) -> None:
    access = secured.access("oauth")
    assert access.security.oauth is not None
    away = replace(access.security.oauth, token_url="https://127.0.0.1:9/token")
    with pytest.raises(KafkaUnavailable):
        Topics(replace(access, security=replace(access.security, oauth=away)), timeout=2).list()


def test_tokens_are_asked_for_by_who_needs_them(secured: Secured) -> None:
    before = secured.tokens.given
    Topics(secured.access("oauth")).list()
    assert secured.tokens.given > before


def test_nothing_is_written_to_stderr(secured: Secured) -> None:
    """A client's complaints would show addresses and users where nobody expects them."""
    program = (
        "import sys, pickle\n"
        "from headgate.kafka import Topics\n"
        "try: Topics(pickle.load(sys.stdin.buffer), timeout=1).list()\n"
        "except Exception as error: print(type(error).__name__)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=pickle.dumps(secured.access("scram-512", WRONG)),
        capture_output=True,
        env=os.environ,
        check=True,
        timeout=60,
    )
    assert done.stdout.split() == [b"ConfigError"]
    assert done.stderr == b""
    assert PASSWORD not in repr(secured.access("scram-512"))


@pytest.mark.parametrize("secret", ["environment", "file"])
def test_commands_reach_a_secured_kafka_and_registry(
    secured: Secured, jvm: Jvm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, secret: str
) -> None:
    """`datagen` writes and `topic consume` reads, by the configuration file and the environment."""
    security = secured.security("scram-ssl")
    security.pop("password")
    config = tmp_path / "headgate.yaml"
    with RunningRegistry(tmp_path / "control.db", jvm) as registry, door(registry, BASIC) as here:
        files = {"kafka": tmp_path / "kafka-password", "registry": tmp_path / "registry-password"}
        files["kafka"].write_text(PASSWORD)
        files["registry"].write_text(REGISTRY_PASSWORD)
        by_file = {
            name: {"password_file": str(file)} if secret == "file" else {} for name, file in files.items()
        }
        settings = {
            "kafka": {
                "bootstrap": secured.access("scram-ssl").bootstrap,
                "security": {k: str(v) for k, v in security.items()} | by_file["kafka"],
            },
            "registry": {"url": here.url, "auth": {"username": REGISTRY_USER} | by_file["registry"]},
        }
        config.write_text(yaml.safe_dump(settings))
        if secret == "environment":
            monkeypatch.setenv("HEADGATE_KAFKA__SECURITY__PASSWORD", PASSWORD)
            monkeypatch.setenv("HEADGATE_REGISTRY__AUTH__PASSWORD", REGISTRY_PASSWORD)
        data = tmp_path / "data"
        data.mkdir()
        runtime = Runtime.of(
            load_settings(config, data=data),
            server_port=1,
            connect_port=1,
            broker_port=0,
            config=config,
            supervisor=Identity.own(),
        )
        runtime.write()
        assert not any(word in (data / "run.json").read_text() for word in (PASSWORD, REGISTRY_PASSWORD))

        def run(*arguments: str) -> str:
            done = CliRunner().invoke(app, [*arguments, "--data", str(data), "--json"])
            assert done.exit_code == 0, done.output
            return done.stdout

        prefix = f"{secret}."
        written = json.loads(run("datagen", "orders", "--limit", "5", "--prefix", prefix))
        assert written["topics"][f"{prefix}orders"] == 5
        assert f"{prefix}orders" in {topic["name"] for topic in json.loads(run("topic", "list"))}
        lines = run("topic", "consume", f"{prefix}orders", "--limit", "5", "--timeout", "20s").splitlines()
        assert [json.loads(line)["value_format"] for line in lines] == ["avro"] * 5
