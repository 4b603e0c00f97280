"""The real broker under the supervisor."""

import os
import signal
from pathlib import Path

from headgate.embedded.broker import Broker, wait_for_kafka
from headgate.embedded.child import ChildSpec, Phase
from headgate.embedded.ports import free_port
from headgate.embedded.process import group_members
from headgate.embedded.stack import broker_answers
from headgate.kafka.topics import Topics
from headgate.store import Store
from tests.integration.embedded.conftest import Supervise, wait_until
from tests.integration.embedded.test_supervisor import group_of, watching


def test_a_broker_that_is_killed_comes_back_with_its_topics_at_its_address(
    supervise: Supervise, jars: Path, data: Path, store: Store
) -> None:
    broker = Broker(data / "broker", free_port(), free_port(), jars)
    assert not broker_answers(broker)
    supervisor = supervise(ChildSpec("broker", lambda _: broker.prepare(), lambda _: broker_answers(broker)))
    supervisor.start()
    child = supervisor.children["broker"]
    topic = Topics(broker.bootstrap).create("kept", partitions=1)
    group = group_of(supervisor, "broker")
    (java,) = (pid for pid in group_members(group) if pid != group)

    with watching(supervisor):
        wait_until(lambda: store.process("broker").state == "ready")
        os.kill(java, signal.SIGKILL)
        wait_until(lambda: child.leader is not None and child.leader.pid != group)
        wait_until(lambda: child.phase is Phase.READY, seconds=60)

    wait_for_kafka(broker.bootstrap)
    assert Topics(broker.bootstrap).describe("kept") == topic
    assert group_members(group) == []
    assert "SLF4J" not in child.log.read_text()
