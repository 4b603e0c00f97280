"""The embedded broker: Apache Kafka in KRaft mode, one node, its data under one folder.

Without a login whoever is on this machine reads and writes its topics. With one, clients log in by SCRAM,
which tells the secret to nobody who sits at the broker's port meanwhile. The broker's talk with itself has
listeners and a secret of its own, made for one run; by it the clients' user is made.
"""

import os
import secrets
import subprocess
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from headgate.embedded.privacy import write_private
from headgate.errors import KafkaUnavailable, PrerequisiteMissing
from headgate.jvm import archive_options, jars_in, java_binary
from headgate.kafka.access import KafkaAccess, Security
from headgate.kafka.client import Link, Where, kafka_error

HEAP = "512m"

OPEN = """\
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
"""

LOGIN = """\
listeners=CLIENTS://127.0.0.1:{port},INTERNAL://127.0.0.1:{internal_port},CONTROLLER://127.0.0.1:{controller_port}
advertised.listeners=CLIENTS://127.0.0.1:{port},INTERNAL://127.0.0.1:{internal_port}
listener.security.protocol.map=CLIENTS:SASL_PLAINTEXT,INTERNAL:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT
inter.broker.listener.name=INTERNAL
sasl.mechanism.inter.broker.protocol=PLAIN
sasl.mechanism.controller.protocol=PLAIN
listener.name.clients.sasl.enabled.mechanisms={mechanism}
listener.name.clients.scram-sha-512.sasl.jaas.config={scram} required;
listener.name.internal.sasl.enabled.mechanisms=PLAIN
listener.name.internal.plain.sasl.jaas.config={plain}
listener.name.controller.sasl.enabled.mechanisms=PLAIN
listener.name.controller.plain.sasl.jaas.config={plain}
"""

PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller_port}
controller.listener.names=CONTROLLER
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


# Whom clients log in as, and whom the broker does with itself.
CLIENT, INTERNAL = "headgate", "broker"
MECHANISM = "SCRAM-SHA-512"
SCRAM_ITERATIONS = 4096
_MODULES = "org.apache.kafka.common.security"


@dataclass(frozen=True)
class Login:
    """What the broker asks of its clients, and how it speaks with itself."""

    password: str = field(repr=False)
    internal_port: int
    internal_password: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)


def client_security(password: str) -> Security:
    """How clients of an embedded broker with a login show who they are."""
    return Security("sasl_plaintext", MECHANISM, CLIENT, password)


@dataclass(frozen=True)
class Broker:
    """Where the embedded broker lives and listens."""

    folder: Path
    port: int
    controller_port: int
    jars_folder: Path
    login: Login | None = None

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def access(self) -> KafkaAccess:
        """As its clients reach it."""
        security = Security() if self.login is None else client_security(self.login.password)
        return KafkaAccess(self.bootstrap, security)

    def add_client(self) -> None:
        """Makes the user of its clients, or gives it its password again."""
        if self.login is None:
            return
        security = Security("sasl_plaintext", "PLAIN", INTERNAL, self.login.internal_password)
        admin = Link(KafkaAccess(f"127.0.0.1:{self.login.internal_port}", security)).admin
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, SCRAM_ITERATIONS)
        asked: list[Any] = [UserScramCredentialUpsertion(CLIENT, info, self.login.password.encode())]
        for future in admin.alter_user_scram_credentials(asked, request_timeout=5).values():
            future.result()

    def prepare(self) -> list[str]:
        """Write its configuration, format its folder the first time, and return the command to start it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        config = self.folder / "broker.properties"
        write_private(config, self._properties())
        if not (self.folder / "logs" / "meta.properties").exists():
            self._format(config)
        return self._java("kafka.Kafka", str(config))

    def _properties(self) -> str:
        common = PROPERTIES.format(controller_port=self.controller_port, logs=self.folder / "logs")
        if self.login is None:
            return common + OPEN.format(port=self.port, controller_port=self.controller_port)
        own = self.login.internal_password
        plain = f'username="{INTERNAL}" password="{own}" user_{INTERNAL}="{own}"'
        return common + LOGIN.format(
            port=self.port,
            internal_port=self.login.internal_port,
            controller_port=self.controller_port,
            mechanism=MECHANISM,
            scram=f"{_MODULES}.scram.ScramLoginModule",
            plain=f"{_MODULES}.plain.PlainLoginModule required {plain};",
        )

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
