"""The registry goes away, before the engine knows a schema and after: no good record is a dead letter."""

from threading import Event

from headgate.model import OnError, TableSpec, TableState
from scripts.readers import pyiceberg_on
from tests.support.proxy import proxy
from tests.support.services import Services, wait_for
from tests.support.stream import Stream


def waits_for_the_registry(services: Services, topic: str) -> bool:
    status = services.store.table(topic).status
    assert status.state is not TableState.SUSPENDED, status.reason
    return status.state in (TableState.DEGRADED, TableState.FAILED) and "registry" in status.reason


def dead_records(services: Services, topic: str) -> int:
    catalog = pyiceberg_on(services.runtime.iceberg)
    name = ("local", f"{topic}.dlq")
    return catalog.load_table(name).scan().to_arrow().num_rows if catalog.table_exists(name) else 0


def test_the_registry_is_down_cold_and_warm(services: Services) -> None:
    stream = Stream(services.runtime, "registry.down")
    stream.register(2)
    stream.send(40, version=1)
    stream.send(40, version=2)
    up = Event()
    with proxy(services.runtime.registry, lambda *_: None, lambda *_: up.is_set()) as registry:
        spec = TableSpec(stream.topic, freshness_seconds=1, on_error=OnError.LOG)
        with services.table(spec), services.engine(registry=registry):
            # Cold: the engine has never seen a schema, and cannot make the table.
            wait_for("the cold table", lambda: waits_for_the_registry(services, stream.topic))
            stream.send_bad(stream.poison())
            assert dead_records(services, stream.topic) == 0
            up.set()
            services.sync(stream.topic)
            stream.check(version=2)
            stream.check_dead()

            # Warm: what it knows it goes on reading.
            up.clear()
            before = len(stream.dead)
            stream.send(30, version=1)
            stream.send(30, version=2)
            services.sync(stream.topic)
            stream.check(version=2)
            # A schema that it does not know, and one that does not exist: nobody can say which is which.
            stream.send(30, version=3)
            stream.send_bad(stream.poison())
            wait_for("the warm table", lambda: waits_for_the_registry(services, stream.topic))
            assert dead_records(services, stream.topic) == before
            up.set()
            services.sync(stream.topic)
            stream.check(version=3)
            stream.check_dead()
