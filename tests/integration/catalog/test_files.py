"""Files that metadata names: nobody has the server delete what is not theirs."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import httpx
import pytest

from headgate.jvm import Jvm
from tests.integration.catalog.javaclient import JavaClient
from tests.integration.catalog.raw import SCHEMA, RawTable
from tests.integration.catalog.serving import Service


@pytest.fixture
def anyone(service: Service) -> Iterator[httpx.Client]:
    """A local admin: not the engine."""
    with httpx.Client(base_url=f"{service.uri}/v1", timeout=60) as http:
        yield http


@pytest.fixture
def java(jvm: Jvm, service: Service) -> Iterator[JavaClient]:
    client = JavaClient(jvm, service.uri, key=None)
    yield client
    client.close()


def path_of(location: str) -> Path:
    return Path(urlparse(location).path)


@pytest.fixture
def victim(service: Service, request: pytest.FixtureRequest) -> RawTable:
    victim = RawTable(service, "db", f"victim-of-{request.node.name.replace('[', '-').rstrip(']')}")
    victim.create()
    return victim


@pytest.mark.parametrize(
    ("where", "status"),
    [
        pytest.param("/etc/passwd", 400, id="outside"),
        pytest.param("{victim}/metadata/x.avro", 403, id="anothers"),
        pytest.param("{own}/../x", 400, id="by-a-detour"),
    ],
)
@pytest.mark.parametrize("what", ["snapshot", "statistics", "partition-statistics"])
def test_a_commit_names_files_of_its_own(
    table: RawTable, victim: RawTable, what: str, where: str, status: int
) -> None:
    table.create()
    before = table.load()
    file = where.format(victim=victim.metadata()["location"], own=before["metadata"]["location"])
    request: dict[str, Any]
    match what:
        case "snapshot":
            request = table.append()
            request["updates"][0]["snapshot"]["manifest-list"] = file
        case "statistics":
            statistics = {
                "snapshot-id": 1,
                "statistics-path": file,
                "file-size-in-bytes": 1,
                "file-footer-size-in-bytes": 1,
                "blob-metadata": [],
            }
            update = {"action": "set-statistics", "snapshot-id": 1, "statistics": statistics}
            request = {"requirements": [], "updates": [update]}
        case _:
            statistics = {"snapshot-id": 1, "statistics-path": file, "file-size-in-bytes": 1}
            update = {"action": "set-partition-statistics", "partition-statistics": statistics}
            request = {"requirements": [], "updates": [update]}
    table.commit(request, status)
    assert table.load() == before


def test_what_is_registered_names_files_of_its_own(
    service: Service, table: RawTable, victim: RawTable
) -> None:
    """A log of former metadata is deleted from as the table goes on."""
    location = table.create()["metadata-location"]
    service.http.delete(table.path).raise_for_status()
    file = path_of(location)
    metadata = json.loads(file.read_text())
    theirs = victim.load()["metadata-location"]
    forged = file.with_name("00009-00000000-0000-0000-0000-000000000000.metadata.json")
    for named, status in ((theirs, 403), ("file:///etc/passwd", 400), (location, 200)):
        metadata["metadata-log"] = [{"timestamp-ms": metadata["last-updated-ms"], "metadata-file": named}]
        forged.write_text(json.dumps(metadata))
        body = {"name": table.name, "metadata-location": forged.as_uri()}
        service.post("/namespaces/db/register", body, status)
    assert path_of(theirs).exists()


def test_a_purge_takes_nothing_from_others(
    service: Service, java: JavaClient, anyone: httpx.Client, victim: RawTable, table: RawTable
) -> None:
    theirs = java.load(f"db.{victim.name}")
    rows = data_file(java, theirs)
    mine = java.create(f"db.{table.name}")
    java.append(mine, [(1, "one")]).commit()
    file = (
        java._iceberg.DataFiles.builder(mine.spec())
        .withPath(rows)
        .withFormat(java._iceberg.FileFormat.PARQUET)
    )
    stolen = file.withFileSizeInBytes(10).withRecordCount(1).build()
    mine.newAppend().appendFile(stolen).commit()
    # Gone from the newest state, and still named by a manifest.
    mine.newDelete().deleteFile(stolen).commit()
    refused = anyone.delete(table.path, params={"purgeRequested": "true"})
    assert refused.status_code == 403, refused.text
    assert "another table" in refused.json()["error"]["message"]
    assert path_of(rows).exists()
    assert anyone.head(table.path).status_code == 204
    assert anyone.delete(table.path).status_code == 204
    assert path_of(rows).exists()


def data_file(java: JavaClient, table: Any) -> str:
    """The data file of a table, with a row in it."""
    java.append(table, [(7, "seven")]).commit()
    table.refresh()
    tasks = table.newScan().planFiles().iterator()
    return str(tasks.next().file().location())


def test_a_purge_removes_what_is_the_tables_own(
    java: JavaClient, anyone: httpx.Client, table: RawTable
) -> None:
    mine = java.create(f"db.{table.name}")
    for number in range(3):
        java.append(mine, [(number, "x")]).commit()
    files = java.files(mine)
    assert len(files) > 6
    done = anyone.delete(table.path, params={"purgeRequested": "true"})
    assert done.status_code == 204, done.text
    assert [file for file in files if file.exists()] == []


def test_a_manifest_that_is_none_stops_a_purge(
    java: JavaClient, anyone: httpx.Client, table: RawTable
) -> None:
    mine = java.create(f"db.{table.name}")
    java.append(mine, [(1, "x")]).commit()
    mine.refresh()
    manifest = next(iter(mine.currentSnapshot().allManifests(mine.io()))).path()
    path_of(manifest).write_bytes(b"not avro")
    refused = anyone.delete(table.path, params={"purgeRequested": "true"})
    assert refused.status_code == 400, refused.text
    assert anyone.delete(table.path).status_code == 204


def test_a_place_beside_the_warehouse(jvm: Jvm, tmp_path: Path) -> None:
    archive = tmp_path / "archive"
    with Service(jvm, tmp_path / "data", allowed=(archive.as_uri(),)) as service:
        service.post("/namespaces", {"namespace": ["db"]})
        body = {"name": "kept", "schema": SCHEMA, "location": (archive / "kept").as_uri()}
        made = service.post("/namespaces/db/tables", body)
        assert made["metadata"]["location"] == (archive / "kept").as_uri()
        inside = {"name": "inside", "schema": SCHEMA, "location": (archive / "kept" / "x").as_uri()}
        service.post("/namespaces/db/tables", inside, 409)
        outside = {"name": "outside", "schema": SCHEMA, "location": (tmp_path / "elsewhere").as_uri()}
        service.post("/namespaces/db/tables", outside, 400)
        table = RawTable(service, "db", "kept")
        table.commit(table.append())
        assert len(table.history()) == 1
