"""The embedded broker: Apache Kafka in KRaft mode, one node, its data under one folder."""

import os
import subprocess
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import KafkaException

from headgate.errors import KafkaUnavailable, PrerequisiteMissing
from headgate.jvm import archive_options, jars_in, java_binary
from headgate.kafka.client import Link, Where, kafka_error

HEAP = "512m"

PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller_port}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
log.dirs={logs}
num.partitions=4
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.num.partitions=4
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
message.max.bytes=16777216
replica.fetch.max.bytes=16777216
"""


@dataclass(frozen=True)
class Broker:
    """Where the embedded broker lives and listens."""

    folder: Path
    port: int
    controller_port: int
    jars_folder: Path

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    def prepare(self) -> list[str]:
        """Write its configuration, format its folder the first time, and return the command to start it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        config = self.folder / "broker.properties"
        config.write_text(
            PROPERTIES.format(port=self.port, controller_port=self.controller_port, logs=self.folder / "logs")
        )
        if not (self.folder / "logs" / "meta.properties").exists():
            self._format(config)
        return self._java("kafka.Kafka", str(config))

    def _format(self, config: Path) -> None:
        cluster = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        # Not `-t cluster`: one id in 64 begins with a dash, and would be taken for an option.
        named = f"--cluster-id={cluster}"
        command = self._java("kafka.tools.StorageTool", "format", named, "-c", str(config))
        # In a session of its own: Ctrl-C in the terminal must not leave a folder that is half formatted.
        done = subprocess.run(command, capture_output=True, text=True, check=False, start_new_session=True)
        if done.returncode != 0:
            said = (done.stderr or done.stdout).strip()
            raise PrerequisiteMissing(f"The broker's folder {self.folder} cannot be formatted: {said}")

    def _java(self, main: str, *arguments: str) -> list[str]:
        jars = jars_in(self.jars_folder / "broker")
        options = [f"-Xmx{HEAP}", f"-Dlog4j2.configurationFile={LOGGING}"]
        options += archive_options(self.jars_folder, "broker")
        classpath = os.pathsep.join(str(jar) for jar in jars)
        return [java_binary(), *options, "-cp", classpath, main, *arguments]


LOGGING = Path(__file__).parent / "broker-log4j2.properties"


def wait_for_kafka(where: Where, timeout: float = 60.0, alive: Callable[[], bool] = lambda: True) -> None:
    """Until the brokers answer; `alive` lets the caller give up when the process is gone.

    Brokers that do not let us in are not waited for.
    """
    link = Link(where)
    deadline = time.monotonic() + timeout
    while True:
        try:
            link.admin.list_topics(timeout=2)
            return
        except KafkaException as error:
            if link.refusal is not None:
                raise link.failure(error, "start") from error
            if time.monotonic() > deadline or not alive():
                raise KafkaUnavailable(
                    f"Kafka at {link.access} does not answer: {kafka_error(error).str()}."
                ) from error
