"""A test run's side of the warm services: it takes them for itself, and finds them as if they were new."""

import fcntl
import json
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from py4j.java_gateway import GatewayParameters, JavaGateway, JavaObject

from headgate.embedded.broker import Broker
from headgate.embedded.ports import LOOPBACK
from headgate.embedded.process import Identity
from headgate.jvm import Jvm
from tests.support.services import Services, wait_for
from tests.support.warm.keeper import SERVICES_FILE, version

# Names the folder of the services that a run may use. Without it, a run starts its own.
FOLDER = "TEST_WARM"
Say = Callable[[str], None]


@dataclass(frozen=True)
class KeptServices:
    """What the file of services that run says of them."""

    keeper: Identity
    version: str
    port: int
    token: str


def read_services(folder: Path) -> KeptServices | None:
    """The services that run in this folder; none if there are none, or they ended without a word."""
    try:
        content = json.loads((folder / SERVICES_FILE).read_text())
    except FileNotFoundError:
        return None
    keeper = Identity.from_dict(content.pop("keeper"))
    return KeptServices(keeper, **content) if keeper.alive else None


@contextmanager
def take(folder: Path, say: Say) -> Iterator["Lease | None"]:
    """The services in this folder, for this run alone; none if there are none for it, and `say` says why."""
    services = read_services(folder)
    if services is None:
        yield None
    elif services.version != version():
        say("the services are of other test support: `make services` starts them again")
        yield None
    else:
        with (folder / "run.lock").open("a") as lock:
            if not _locked(lock):
                say("another run has the services: this one starts its own")
                yield None
                return
            with socket.create_connection((LOOPBACK, services.port)) as connection:
                yield Lease(connection, services.token, folder, say)


def _locked(lock: IO[str]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


class Lease:
    """Parts are asked for one by one, when a test needs them first."""

    def __init__(self, connection: socket.socket, token: str, folder: Path, say: Say) -> None:
        self._connection = connection
        self._token = token
        self._folder = folder
        self._say = say

    def broker(self, jars: Path) -> Broker:
        """The broker, without the topics and groups of earlier runs."""
        address = self.address("broker")
        broker = Broker(Path(address["folder"]), address["port"], address["controller_port"], jars)
        clear(broker.bootstrap)
        return broker

    def services(self) -> Services:
        """A server that no other run has used."""
        address = self.address("server")
        return Services(Path(address["folder"]), address["bootstrap"])

    def jvm(self) -> Jvm:
        """The catalog's JVM."""
        address = self.address("jvm")
        return KeptJvm(address["port"], address["token"])

    def address(self, part: str) -> dict[str, Any]:
        """Where the part listens; the keeper starts it again if it has ended or its source has changed."""
        self._connection.sendall(f"{self._token} {part}\n".encode())
        with self._connection.makefile("rb") as stream:
            line = stream.readline()
        answer: dict[str, Any] = json.loads(line) if line else {"failure": "The services have ended."}
        if "failure" in answer:
            raise AssertionError(answer["failure"])
        for note in answer["notes"]:
            self._say(note)
        address: dict[str, Any] = answer["address"]
        return address


class KeptJvm(Jvm):
    """A JVM that another process started, and that stays when this one ends."""

    def __init__(self, port: int, token: str) -> None:
        self.gateway = JavaGateway(
            gateway_parameters=GatewayParameters(port=port, auth_token=token, auto_convert=True)
        )
        forget_objects(self.gateway)

    def close(self) -> None:
        client = self.gateway._gateway_client
        client.close()
        # What Python still has of Java's objects is not given back one by one: the next run drops them all.
        client.is_connected = False


def forget_objects(gateway: Any) -> None:
    """Let the JVM drop the objects that earlier runs had: a process that ends does not give them back."""
    objects = JavaObject("GATEWAY_SERVER", gateway._gateway_client).getGateway().getBindings().keySet()
    kept = gateway.jvm.java.util.ArrayList()
    own = {objects._target_id, kept._target_id}
    for name in gateway.jvm.java.lang.String.join("\n", objects).split("\n"):
        # The gateway's own have names, those of runs are numbered.
        if name in own or not name.removeprefix("o").isdigit():
            kept.add(name)
    objects.retainAll(kept)


def clear(bootstrap: str) -> None:
    """Delete all topics and consumer groups."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    groups = [group.group_id for group in admin.list_consumer_groups().result().valid]
    for deleted in admin.delete_consumer_groups(groups).values() if groups else ():
        try:
            deleted.result()
        except KafkaException:
            # A run that was killed is a member until its session has timed out. Its topics are gone.
            continue

    def topics() -> list[str]:
        return [name for name in admin.list_topics(timeout=10).topics if not name.startswith("__")]

    left = topics()
    for deleted in admin.delete_topics(left).values() if left else ():
        deleted.result()
    wait_for("the topics of earlier runs to be gone", lambda: not topics())
