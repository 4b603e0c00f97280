"""The real broker under the supervisor."""

import os
import signal
import stat
from pathlib import Path

import pytest

from headgate.embedded.broker import Broker, Login, client_security, wait_for_kafka
from headgate.embedded.child import ChildSpec, Phase
from headgate.embedded.ports import free_port
from headgate.embedded.process import group_members
from headgate.embedded.stack import broker_answers
from headgate.errors import HeadgateError
from headgate.kafka.access import KafkaAccess, Security
from headgate.kafka.topics import Topics
from headgate.store import Store
from tests.integration.embedded.conftest import Supervise, wait_until
from tests.integration.embedded.test_supervisor import group_of, watching

PLAIN_WITH_ANYTHING = Security("sasl_plaintext", "PLAIN", "broker", "anything")


def test_a_broker_that_is_killed_comes_back_with_its_topics_at_its_address(
    supervise: Supervise, jars: Path, data: Path, store: Store
) -> None:
    """And with the login of its clients, which a new run of it knows as well."""
    login = Login("a password of the tests", free_port())
    broker = Broker(data / "broker", free_port(), free_port(), jars, login)
    assert not broker_answers(broker)
    supervisor = supervise(ChildSpec("broker", lambda _: broker.prepare(), lambda _: broker_answers(broker)))
    supervisor.start()
    child = supervisor.children["broker"]
    topic = Topics(broker.access).create("kept", partitions=1)
    group = group_of(supervisor, "broker")
    (java,) = (pid for pid in group_members(group) if pid != group)

    with watching(supervisor):
        wait_until(lambda: store.process("broker").state == "ready")
        os.kill(java, signal.SIGKILL)
        wait_until(lambda: child.leader is not None and child.leader.pid != group)
        wait_until(lambda: child.phase is Phase.READY, seconds=60)

    wait_for_kafka(broker.access)
    assert Topics(broker.access).describe("kept") == topic
    for port in (broker.port, login.internal_port, broker.controller_port):
        address = f"127.0.0.1:{port}"
        for security in (Security(), client_security("wrong"), PLAIN_WITH_ANYTHING):
            with pytest.raises(HeadgateError):
                Topics(KafkaAccess(address, security)).describe("kept")
    assert stat.S_IMODE((broker.folder / "broker.properties").stat().st_mode) == 0o600
    assert group_members(group) == []
    assert "SLF4J" not in child.log.read_text()
