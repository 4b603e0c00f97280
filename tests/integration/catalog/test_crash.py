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
from urllib.parse import urlparse

import httpx
import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import RESTError
from pyiceberg.table import Table
from requests import RequestException

from headgate.access.roles import Grant
from headgate.embedded.ports import LOOPBACK, free_port
from headgate.jvm import Jvm
from tests.integration.catalog.raw import SCHEMA
from tests.integration.catalog.serving import Service, wait_until_healthy
from tests.support.services import wait_for

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


def writer(uri: str, credential: str) -> RestCatalog:
    return RestCatalog(
        "crash", uri=uri, credential=credential, **{"oauth2-server-uri": f"{uri}/v1/oauth/tokens"}
    )


def append_until_killed(uri: str, credential: str, acknowledged: list[int]) -> None:
    try:
        with closing(writer(uri, credential)) as catalog:
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
    """The same drill at both counts: 5 kills, or 50 with HEADGATE_SOAK set. The client has a credential for
    this table alone."""
    with Service(jvm, folder) as service:
        made, secret = service.doors.credentials.create("crash", [Grant.parse("writer:db:t")])
        credential = f"{made.client_id}:{secret}"
        service.post("/namespaces", {"namespace": ["db"]})
        service.post("/namespaces/db/tables", {"name": "t", "schema": SCHEMA})
    acknowledged: list[int] = []
    for _ in range(KILLS):
        with server(folder) as (uri, process):
            client = threading.Thread(target=append_until_killed, args=(uri, credential, acknowledged))
            client.start()
            time.sleep(random.uniform(0.3, 1.2))
            # On a machine that is busy even the first commit takes longer.
            wait_for("a commit", lambda: acknowledged, 60)
            kill(process)
            client.join(timeout=60)
            assert not client.is_alive()
    with Service(jvm, folder, required=True) as service:
        catalog = writer(service.uri, credential)
        table = catalog.load_table("db.t")
        history = [snapshot.snapshot_id for snapshot in table.metadata.snapshots]
        assert acknowledged, "no commit was acknowledged: the drill tested nothing"
        assert set(acknowledged) <= set(history)
        assert len(history) <= len(acknowledged) + KILLS  # one unknown commit for each kill
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
