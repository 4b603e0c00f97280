"""Files of exports in S3: whole under their names or not there, and never another's."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import httpx
import pytest
from moto.server import ThreadedMotoServer

from headgate.config import Settings
from headgate.errors import AlreadyExists, InvalidRequest, NotFound
from headgate.export import places
from headgate.export.definition import ExportOptions, parse_options
from headgate.export.folder import CountingFile
from headgate.export.places import Destinations
from headgate.storage import Place, Storages
from headgate.store import RunState, Store
from tests.unit.export.test_service import Place as Installation
from tests.unit.export.test_service import place as place

SAID = {"sql": "SELECT * FROM sales", "storage": "partners", "folder": "acme"}
__all__ = ["place"]


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def client(endpoint: str) -> Iterator[Any]:
    httpx.post(f"{endpoint}/moto-api/reset", trust_env=False)
    made = boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id="key",
        aws_secret_access_key="secret of tests",
    )
    made.create_bucket(Bucket="partners")
    yield made
    made.close()


@pytest.fixture
def storages(settings: Settings, endpoint: str) -> Iterator[Storages]:
    store = Store.open(settings.store_url)
    storages = Storages(store.engine)
    storages.add(named(endpoint))
    yield storages
    store.close()


def named(endpoint: str) -> Place:
    return Place.checked(
        name="partners",
        bucket="partners",
        prefix="out",
        region="us-east-1",
        endpoint=endpoint,
        path_style=True,
    )


def keys(client: Any) -> list[str]:
    return [one["Key"] for one in client.list_objects_v2(Bucket="partners").get("Contents", ())]


def put(destinations: Destinations, name: str, content: bytes) -> None:
    destination = destinations.of(parse_options(SAID))
    with destination.draft(name) as (draft, out):
        assert isinstance(out, CountingFile)
        out.write(content)
    destination.publish(draft, name, out.figures.sha256)
    assert destination.sha256(name) == out.figures.sha256


@pytest.mark.parametrize("part_bytes", [64 * 1024 * 1024, 5 * 1024 * 1024])
def test_an_object_is_made_once_and_never_replaced(
    client: Any, storages: Storages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part_bytes: int
) -> None:
    monkeypatch.setattr(places, "PART_BYTES", part_bytes)
    destinations = Destinations(tmp_path, storages, lambda _: client)
    content = b"id\r\n" * 3_000_000
    for _ in range(2):
        put(destinations, "a.csv", content)
    assert keys(client) == ["out/acme/a.csv"]
    with pytest.raises(AlreadyExists, match=r"s3://partners/out/acme/a\.csv is there already"):
        put(destinations, "a.csv", content + b"more")
    options = parse_options(SAID)
    assert destinations.read(options, "s3://partners/out/acme/a.csv") == content
    stored = client.head_object(Bucket="partners", Key="out/acme/a.csv")
    assert stored["ContentType"] == "text/csv"
    assert destinations.of(options).sha256("none.csv") is None


def test_a_link_of_the_store_opens_the_file_and_what_is_gone_has_none(
    client: Any, storages: Storages, tmp_path: Path
) -> None:
    destinations = Destinations(tmp_path, storages, lambda _: client)
    put(destinations, "a.csv", b"id\r\n")
    options = parse_options(SAID)
    link = destinations.link(options, "s3://partners/out/acme/a.csv")
    answer = httpx.get(link, trust_env=False, verify=False)
    assert (answer.status_code, answer.content) == (200, b"id\r\n")
    client.delete_object(Bucket="partners", Key="out/acme/a.csv")
    with pytest.raises(NotFound, match="not there any more"):
        destinations.link(options, "s3://partners/out/acme/a.csv")


def test_a_run_puts_its_file_and_its_manifest_into_the_store(
    place: Installation, client: Any, endpoint: str
) -> None:
    place.storages.add(named(endpoint))
    place.client_of = lambda _: client
    run = place.ask(storage="partners", folder="acme")
    place.work()
    done = place.exports.run(run.id)
    assert (done.state, done.reason) == (RunState.DONE, "")
    name = str(done.detail["file"]).removeprefix("s3://partners/")
    assert keys(client) == [name, f"{name}.manifest.json"]
    content = client.get_object(Bucket="partners", Key=name)["Body"].read()
    (attachment,) = place.mails.mails[0].iter_attachments()
    assert attachment.get_payload(decode=True) == content
    assert not [path for path in place.root.rglob("*") if path.is_file()]


def test_a_storage_that_is_not_there_is_named(storages: Storages, tmp_path: Path) -> None:
    options = ExportOptions.model_validate({**SAID, "storage": "gone"})
    with pytest.raises(NotFound, match="no storage 'gone'"):
        Destinations(tmp_path, storages, lambda _: None).of(options)
    with pytest.raises(InvalidRequest, match="storage"):
        parse_options({**SAID, "storage": ""})
