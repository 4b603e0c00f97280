"""After the server was killed the pointer is the old one or the new one, and all that it names is there."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import httpx
import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import RESTError
from pyiceberg.table import CommitTableResponse, Table
from requests import RequestException

from headgate.access.roles import Grant
from headgate.embedded.ports import LOOPBACK, free_port
from headgate.jvm import Jvm
from tests.integration.catalog.raw import SCHEMA
from tests.integration.catalog.serving import Service, wait_until_healthy

KILLS = 50 if os.environ.get("HEADGATE_SOAK") else 5
ROW = pa.table({"id": [1]})


@contextmanager
def server(folder: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """The catalog in a process group of its own, JVM included."""
    port = free_port()
    command = [sys.executable, "-m", "tests.integration.catalog.serving", str(folder), str(port)]
    root = Path(__file__).parents[3]
    process = subprocess.Popen(command, cwd=root, start_new_session=True, stderr=subprocess.DEVNULL)
    try:
        uri = f"http://{LOOPBACK}:{port}/iceberg"
        wait_until_healthy(uri, lambda: process.poll() is None, seconds=60)
        yield uri, process
    finally:
        kill(process)


def kill(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(timeout=30)


class Writer(RestCatalog):
    """Tells while a commit of its is under way, and how long the last one took."""

    def __init__(self, uri: str, credential: str) -> None:
        self.committing = threading.Event()
        self.took = 0.0
        super().__init__(
            "crash", uri=uri, credential=credential, **{"oauth2-server-uri": f"{uri}/v1/oauth/tokens"}
        )

    def commit_table(self, *given: Any, **named: Any) -> CommitTableResponse:
        began = time.monotonic()
        self.committing.set()
        done: CommitTableResponse = super().commit_table(*given, **named)
        self.committing.clear()
        self.took = time.monotonic() - began
        return done


def append_until_killed(catalog: Writer, acknowledged: list[int]) -> None:
    try:
        with closing(catalog):
            while True:
                table = catalog.load_table("db.t")
                table.append(ROW)
                snapshot = table.current_snapshot()
                assert snapshot is not None
                acknowledged.append(snapshot.snapshot_id)
    except (RequestException, RESTError):
        return  # killed: what the client was just doing, it does not know


def paths_of(table: Table) -> set[Path]:
    """Every file that the table's state names."""
    locations = [table.metadata_location, *(entry.metadata_file for entry in table.metadata.metadata_log)]
    for snapshot in table.metadata.snapshots:
        locations.append(snapshot.manifest_list)
        for manifest in snapshot.manifests(table.io):
            locations.append(manifest.manifest_path)
            locations += [entry.data_file.file_path for entry in manifest.fetch_manifest_entry(table.io)]
    return {Path(urlparse(location).path) for location in locations}


@pytest.mark.soak
def test_a_killed_server_leaves_a_table_that_is_whole(jvm: Jvm, folder: Path) -> None:
    """The same drill at both counts: 5 kills in commits, or 50 with HEADGATE_SOAK set. The client has a
    credential for this table alone."""
    with Service(jvm, folder) as service:
        made, secret = service.doors.credentials.create("crash", [Grant.parse("writer:db:t")])
        credential = f"{made.client_id}:{secret}"
        service.post("/namespaces", {"namespace": ["db"]})
        service.post("/namespaces/db/tables", {"name": "t", "schema": SCHEMA})
    acknowledged: list[int] = []
    kills, in_commits = 0, 0
    while in_commits < KILLS:
        assert kills < 3 * KILLS, f"only {in_commits} of {kills} kills came in commits"
        with server(folder) as (uri, process):
            catalog, enough = Writer(uri, credential), len(acknowledged) + random.randrange(1, 4)
            client = threading.Thread(target=append_until_killed, args=(catalog, acknowledged))
            client.start()
            while len(acknowledged) < enough:
                assert client.is_alive(), "the client gave up before the server was killed"
                time.sleep(0.01)
            assert catalog.committing.wait(60)
            time.sleep(random.uniform(0, catalog.took))
            kill(process)
            kills += 1
            client.join(timeout=60)
            assert not client.is_alive()
            # It stays set when the answer never came.
            in_commits += catalog.committing.is_set()
    with Service(jvm, folder, required=True) as service:
        catalog = Writer(service.uri, credential)
        table = catalog.load_table("db.t")
        history = [snapshot.snapshot_id for snapshot in table.metadata.snapshots]
        assert set(acknowledged) <= set(history)
        assert len(history) <= len(acknowledged) + kills  # one unknown commit for each kill
        assert {path for path in paths_of(table) if not path.exists()} == set()
        assert table.scan().to_arrow().num_rows == len(history)
        table.append(ROW)
        catalog.close()


def test_a_catalog_opened_again_is_the_same_catalog(jvm: Jvm, folder: Path) -> None:
    with Service(jvm, folder) as service:
        service.post("/namespaces", {"namespace": ["db"], "properties": {"a": "b"}})
        first = service.post("/namespaces/db/tables", {"name": "t", "schema": SCHEMA})
        uri = service.uri
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{uri}/v1/config")
    with Service(jvm, folder) as service:
        assert service.get("/namespaces/db/tables/t")["metadata"] == first["metadata"]
        assert service.get("/namespaces/db")["properties"]["a"] == "b"
        catalog = RestCatalog("again", uri=service.uri)
        catalog.load_table("db.t").append(ROW)
        catalog.close()
