"""A commit whose answer never arrives: the client must not take it for refused, nor apply it twice."""

import socket
import threading
from collections.abc import Iterator
from typing import Self

import httpx
import pytest
from py4j.protocol import Py4JJavaError

from headgate.embedded.ports import LOOPBACK
from headgate.jvm import Jvm
from headgate.model import MANAGED_KEY, Batch
from tests.integration.catalog.javaclient import JavaClient
from tests.integration.catalog.raw import RawTable, position
from tests.integration.catalog.serving import AS_ENGINE, Service


class CuttingProxy:
    """Forwards bytes, but drops the answers to the next `doomed` commits together with their connections."""

    def __init__(self, port: int) -> None:
        self._target = (LOOPBACK, port)
        self._listener = socket.create_server((LOOPBACK, 0))
        self.port: int = self._listener.getsockname()[1]
        self.doomed = 0
        self.cut = 0
        self._thread = threading.Thread(target=self._accept, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(timeout=10)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, socket.create_connection(self._target) as server:
            doomed = threading.Event()
            upstream = threading.Thread(target=self._forward, args=(client, server, doomed), daemon=True)
            upstream.start()
            while data := server.recv(65536):
                if doomed.is_set():
                    self.cut += 1
                    break
                client.sendall(data)
            for end in (client, server):
                end.shutdown(socket.SHUT_RDWR)
            upstream.join(timeout=10)

    def _forward(self, client: socket.socket, server: socket.socket, doomed: threading.Event) -> None:
        try:
            while data := client.recv(65536):
                commit = data.startswith(b"POST ") and b"/tables/" in data.partition(b"\r\n")[0]
                if self.doomed and commit:
                    self.doomed -= 1
                    doomed.set()
                server.sendall(data)
        except OSError:
            return  # the other direction has closed both ends


@pytest.fixture
def proxy(service: Service) -> Iterator[CuttingProxy]:
    with CuttingProxy(service.port) as proxy:
        yield proxy


@pytest.fixture
def client(jvm: Jvm, proxy: CuttingProxy) -> Iterator[JavaClient]:
    # Metrics are POSTs too, from a thread of their own.
    quiet = {"rest-metrics-reporting-enabled": "false", "rest.client.max-retries": "1"}
    client = JavaClient(jvm, f"http://{LOOPBACK}:{proxy.port}/iceberg", quiet)
    yield client
    client.close()


def test_a_lost_reply_is_unknown_and_the_batch_is_there_once(
    service: Service, proxy: CuttingProxy, client: JavaClient
) -> None:
    table = client.create("db.lost", format_version="3")
    table.updateProperties().set(MANAGED_KEY, "true").set("commit.retry.num-retries", "0").commit()
    batch = Batch(position(0), position(2), "the-batch")

    proxy.doomed = 100
    with pytest.raises(Py4JJavaError) as lost:
        client.append(table, [(1, "a"), (2, "b")], batch.summary()).commit()
    proxy.doomed = 0
    assert proxy.cut > 0
    assert lost.value.java_exception.getClass().getSimpleName() not in (
        "CommitFailedException",
        "ForbiddenException",
        "BadRequestException",
        "ValidationException",
    )

    raw = RawTable(service, "db", "lost")
    assert len(raw.history()) == 1
    assert client.rows(client.load("db.lost")) == [(1, "a"), (2, "b")]
    files = client.files(client.load("db.lost"))
    assert all(file.exists() for file in files)

    # An engine that does not know better sends the batch again: unknown once more, nothing lost or doubled.
    again = client.append(client.load("db.lost"), [(1, "a"), (2, "b")], batch.summary())
    with pytest.raises(Py4JJavaError) as repeated:
        again.commit()
    assert repeated.value.java_exception.getClass().getSimpleName() == "CommitStateUnknownException"
    assert len(raw.history()) == 1
    assert all(file.exists() for file in files)
    assert client.rows(client.load("db.lost")) == [(1, "a"), (2, "b")]

    # And one that reads the position goes on.
    following = Batch(position(2), position(3), "the-next")
    client.append(client.load("db.lost"), [(3, "c")], following.summary()).commit()
    assert client.rows(client.load("db.lost")) == [(1, "a"), (2, "b"), (3, "c")]


def test_the_clients_own_retry_finds_its_commit(
    service: Service, proxy: CuttingProxy, client: JavaClient
) -> None:
    """Iceberg's client sends a commit again whose connection broke: by its key it learns that all is well.

    The requirements fail by then. Without the key it would hear 409 and delete files that are the table's.
    """
    table = client.create("db.resent", format_version="3")
    table.updateProperties().set("commit.retry.num-retries", "0").commit()
    proxy.doomed = 1
    client.append(table, [(1, "a")]).commit()
    assert proxy.cut == 1
    assert len(RawTable(service, "db", "resent").history()) == 1
    assert client.rows(client.load("db.resent")) == [(1, "a")]


def test_a_client_without_keys_never_hears_a_refusal(service: Service, proxy: CuttingProxy) -> None:
    table = RawTable(service, "db", "keyless")
    table.create(**{MANAGED_KEY: "true"})
    body = table.batch(0, 10, "b")
    proxy.doomed = 1
    with httpx.Client(base_url=f"http://{LOOPBACK}:{proxy.port}/iceberg/v1", headers=AS_ENGINE) as cut:
        with pytest.raises(httpx.RemoteProtocolError):
            cut.post(table.path, json=body)
        for _ in range(3):
            assert cut.post(table.path, json=body).status_code == 500
    assert len(table.history()) == 1


def test_a_stale_engine_is_refused_by_way_of_the_java_client(service: Service, client: JavaClient) -> None:
    """The client refreshes before it commits, so its assertion holds; its batch is stale all the same."""
    table = client.create("db.stale", format_version="3")
    table.updateProperties().set(MANAGED_KEY, "true").set("commit.retry.num-retries", "0").commit()
    client.append(table, [(1, "a")], Batch(position(0), position(1), "first").summary()).commit()
    sleeper = client.append(table, [(2, "b")], Batch(position(1), position(2), "slow").summary())
    client.append(
        client.load("db.stale"), [(2, "b")], Batch(position(1), position(2), "fast").summary()
    ).commit()
    with pytest.raises(Py4JJavaError) as refused:
        sleeper.commit()
    assert refused.value.java_exception.getClass().getSimpleName() == "CommitFailedException"
    assert client.rows(client.load("db.stale")) == [(1, "a"), (2, "b")]


def test_rows_from_another_client_are_forbidden(service: Service, client: JavaClient) -> None:
    table = client.create("db.fenced", format_version="3")
    table.updateProperties().set(MANAGED_KEY, "true").commit()
    with pytest.raises(Py4JJavaError, match="written by the engine alone"):
        client.append(table, [(1, "a")]).commit()
    assert RawTable(service, "db", "fenced").history() == []
