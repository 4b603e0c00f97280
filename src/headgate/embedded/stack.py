"""What `headgate up` runs: broker, server, engine and, on demand, the query driver and the exports."""

import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import httpx
from confluent_kafka import KafkaException

from headgate.config import Settings
from headgate.embedded import notebooks
from headgate.embedded.broker import Broker, Login, wait_for_kafka
from headgate.embedded.child import ChildSpec
from headgate.embedded.eager import start_query_driver
from headgate.embedded.folder import DataFolder
from headgate.embedded.ports import LOOPBACK, claim_ports, kept_from_others
from headgate.embedded.privacy import harmless, keep_private, write_private
from headgate.embedded.process import Identity
from headgate.embedded.runtime import Runtime
from headgate.embedded.secrets import BROKER_KEY, secret
from headgate.embedded.supervisor import Supervisor
from headgate.errors import HeadgateError
from headgate.store import Exports, Generators, Store

EXTERNAL_KAFKA_SECONDS = 30.0
CLIENT_FILE = "kafka-client.properties"


def run(
    settings: Settings,
    config: Path | None,
    say: Callable[[str], None],
    on_ready: Callable[[Runtime], None],
) -> None:
    """Start everything, call `on_ready`, and stay until a signal asks to stop."""
    keep_private()
    with DataFolder.taken(settings.data) as folder, ExitStack() as kept:
        # Before anything is started: a port that is taken is told at once, and nothing is left half up.
        ports = claim_ports(wanted_ports(settings), folder.remembered_ports())
        folder.remember_ports(ports)
        kept.enter_context(kept_from_others(not_ours(settings, ports)))
        runtime = Runtime.of(
            settings,
            server_port=ports["server"],
            connect_port=ports.get("connect", 0),
            broker_port=ports.get("broker", 0),
            config=config,
            supervisor=Identity.own(),
        )
        store = Store.open(settings.store_url)
        try:
            specs = child_specs(runtime, store, ports.get("controller", 0), ports.get("internal", 0))
            forget_earlier_run(specs, store)

            def ready(runtime: Runtime) -> None:
                on_ready(runtime)
                start_query_driver(settings.query, store, say)

            supervise(Supervisor(specs, store, folder, say), runtime, ready)
        finally:
            store.close()


def supervise(supervisor: Supervisor, runtime: Runtime, on_ready: Callable[[Runtime], None]) -> None:
    with supervisor.signals():
        runtime.write()
        try:
            if runtime.settings.kafka.bootstrap is not None:
                access = runtime.kafka_access
                wait_for_kafka(access, EXTERNAL_KAFKA_SECONDS, lambda: not supervisor.stop_asked)
            if supervisor.start():
                on_ready(runtime)
                supervisor.watch()
        finally:
            supervisor.stop()


def forget_earlier_run(specs: Sequence[ChildSpec], store: Store) -> None:
    """A run that was killed could not say that its processes are gone, nor that nobody wants them now."""
    notebooks.revoke(store)
    store.want("query", False)
    for spec in specs:
        store.beat(spec.name, "", 0, "stopped")


def wanted_ports(settings: Settings) -> dict[str, int]:
    """By name; 0 is any. The controller's is nobody's business but the broker's."""
    wanted = {"server": settings.ports.server}
    if settings.connect.enabled:
        wanted["connect"] = settings.ports.connect
    if settings.kafka.bootstrap is None:
        wanted |= {"broker": settings.ports.broker, "controller": 0}
        wanted |= {"internal": 0} if settings.auth.required else {}
    return wanted


def not_ours(settings: Settings, ports: Mapping[str, int]) -> dict[str, int]:
    """The ports at which nothing of ours listens on ::1: the public door may."""
    public = settings.public
    own = public.port if public.host is not None and ":" in public.host else None
    return {name: port for name, port in ports.items() if port != own}


def child_specs(
    runtime: Runtime, store: Store, controller_port: int, internal_port: int = 0
) -> list[ChildSpec]:
    """In the order in which they start."""
    specs = [
        ChildSpec("server", _program(runtime, "headgate.server"), _server_answers(runtime)),
        ChildSpec(
            "engine",
            _program(runtime, "headgate.engine"),
            _says_ready(store, "engine"),
            after=("broker", "server"),
            deadline=180.0,
            grace=30.0,
        ),
        ChildSpec(
            "query",
            _program(runtime, "headgate.query"),
            _says_ready(store, "query"),
            wanted=lambda: store.process("query").wanted,
            after=("server",),
            deadline=180.0,
        ),
    ]
    specs.append(datagen_spec(runtime, store))
    exports = Exports(store.engine)
    specs.append(
        ChildSpec(
            "export",
            _program(runtime, "headgate.export"),
            _says_ready(store, "export"),
            # There is nothing to do for it while there are none.
            wanted=lambda: runtime.settings.catalog.uri is None and exports.are_any(),
            after=("server",),
        )
    )
    if runtime.settings.connect.enabled:
        specs.append(connect_spec(runtime, store))
    if runtime.settings.kafka.bootstrap is None:
        port = int(runtime.kafka.rpartition(":")[2])
        login = Login(secret(runtime.data, BROKER_KEY), internal_port) if runtime.broker_asks else None
        jars = runtime.settings.jars_folder
        broker = Broker(runtime.data / "broker", port, controller_port, jars, login)
        write_client_file(runtime.data, broker)
        program = ChildSpec(
            "broker", lambda _: broker.prepare(), lambda _: broker_answers(broker), environment=harmless
        )
        specs.insert(0, program)
    return specs


def datagen_spec(runtime: Runtime, store: Store) -> ChildSpec:
    """Managed generators: a process that runs while one of them is not at rest."""
    generators = Generators(store.engine)
    return ChildSpec(
        "datagen",
        _program(runtime, "headgate.generators"),
        _says_ready(store, "datagen"),
        wanted=lambda: not all(record.is_at_rest for record in generators.all()),
        after=("broker", "server"),
    )


def connect_spec(runtime: Runtime, store: Store) -> ChildSpec:
    """Spark Connect: it is told where the catalog is, and has no settings, keys or control state of ours."""
    program = [sys.executable, "-m", "headgate.notebooks"]
    return ChildSpec(
        "connect",
        lambda _: [*program, *notebooks.prepare(runtime, store)],
        lambda _: _listens(runtime.connect_port),
        after=("server",),
        deadline=180.0,
        environment=lambda given: notebooks.environment(runtime.data, given),
    )


def _listens(port: int) -> bool:
    try:
        socket.create_connection((LOOPBACK, port), timeout=1).close()
    except OSError:
        return False
    return True


def broker_answers(broker: Broker) -> bool:
    try:
        # Kafka's client waits its full time for a port that is not open yet; this tells at once.
        socket.create_connection((LOOPBACK, broker.port), timeout=1).close()
        broker.add_client()
        wait_for_kafka(broker.access, timeout=0)
    except (OSError, KafkaException, HeadgateError):
        return False
    return True


def write_client_file(data: Path, broker: Broker) -> None:
    """What Kafka's own tools log in with, in the form that they read; gone where nobody is asked."""
    file = data / "secrets" / CLIENT_FILE
    if broker.login is None:
        file.unlink(missing_ok=True)
        return
    options = {name.removeprefix("kafka."): value for name, value in broker.access.spark_options().items()}
    write_private(file, "".join(f"{name}={value}\n" for name, value in options.items()))


def _server_answers(runtime: Runtime) -> Callable[[str], bool]:
    def ready(instance: str) -> bool:
        try:
            answer = httpx.get(f"{runtime.console}healthz", timeout=5, trust_env=False)
        except httpx.TransportError:
            return False
        return answer.status_code == httpx.codes.OK and answer.json().get("instance") == instance

    return ready


def _program(runtime: Runtime, module: str) -> Callable[[str], list[str]]:
    config = [] if runtime.config is None else ["--config", str(runtime.config)]
    fixed = [sys.executable, "-m", module, "--data", str(runtime.data), *config]
    return lambda instance: [*fixed, "--instance", instance]


def _says_ready(store: Store, name: str) -> Callable[[str], bool]:
    def ready(instance: str) -> bool:
        found = store.process(name)
        return found.instance == instance and found.state == "ready"

    return ready
