"""Tables of one Headgate in the catalog of another, with a credential of that other."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from pyiceberg.catalog.rest import RestCatalog as Reader

from headgate.access.roles import Grant
from headgate.embedded.ports import free_port
from headgate.errors import NotPublishable, OutsideMoved, OutsideRefused, OutsideUnavailable
from headgate.jvm import Jvm
from headgate.publication.options import RestOptions
from headgate.publication.outside import PublishedTable, show, withdraw
from headgate.publication.rest import RestCatalog
from tests.integration.catalog.serving import Service

MANAGED = {"headgate.managed": "true", "headgate.topic": "Shop.orders"}
TOPIC = "Shop.orders"


@pytest.fixture(scope="module")
def ours(jvm: Jvm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with Service(jvm, tmp_path_factory.mktemp("ours")) as service:
        service.post("/namespaces", {"namespace": ["local"]})
        yield service


@pytest.fixture(scope="module")
def theirs(jvm: Jvm, ours: Service, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Asks everybody who they are, and lets tables lie where ours are."""
    allowed = (ours.warehouse.as_uri(),)
    with Service(jvm, tmp_path_factory.mktemp("theirs"), required=True, allowed=allowed) as service:
        yield service


class Lake:
    """Our table, as its own catalog has it."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def create(self) -> None:
        schema = {"type": "struct", "fields": [{"id": 1, "name": "id", "required": False, "type": "long"}]}
        said = {"name": TOPIC, "schema": schema, "properties": MANAGED}
        self._service.post("/namespaces/local/tables", said)

    def evolve(self, name: str) -> None:
        """Another column: another state of the table."""
        found = self._service.get(f"/namespaces/local/tables/{TOPIC}")["metadata"]
        fields = found["schemas"][-1]["fields"]
        last = found["last-column-id"] + 1
        added = [*fields, {"id": last, "name": name, "required": False, "type": "string"}]
        update = {
            "updates": [
                {
                    "action": "add-schema",
                    "schema": {"type": "struct", "fields": added},
                    "last-column-id": last,
                },
                {"action": "set-current-schema", "schema-id": -1},
            ],
            "requirements": [{"type": "assert-table-uuid", "uuid": found["table-uuid"]}],
        }
        self._service.post(f"/namespaces/local/tables/{TOPIC}", update)

    def drop(self) -> None:
        self._service.http.delete(f"/namespaces/local/tables/{TOPIC}").raise_for_status()

    def read(self) -> PublishedTable | None:
        answer = self._service.http.get(f"/namespaces/local/tables/{TOPIC}")
        if answer.status_code == 404:
            return None
        said = answer.json()
        metadata = said["metadata"]
        return PublishedTable(
            topic=TOPIC,
            uuid=metadata["table-uuid"],
            location=metadata["location"],
            metadata_location=said["metadata-location"],
            former=tuple(one["metadata-file"] for one in metadata["metadata-log"]),
            sequence=metadata["last-sequence-number"],
            schema=metadata["schemas"][-1],
        )


@pytest.fixture
def lake(ours: Service) -> Iterator[Lake]:
    lake = Lake(ours)
    lake.create()
    yield lake
    if lake.read() is not None:
        lake.drop()


@pytest.fixture
def namespace(request: pytest.FixtureRequest) -> str:
    return str(request.node.name)


@pytest.fixture
def credential(theirs: Service, namespace: str) -> tuple[str, str]:
    grants = [Grant.parse(f"engine:{namespace}:*")]
    made, secret = theirs.doors.credentials.create(namespace, grants)
    return made.client_id, secret


@pytest.fixture
def catalog(theirs: Service, namespace: str, credential: tuple[str, str]) -> Iterator[RestCatalog]:
    catalog = catalog_at(theirs.uri, namespace, *credential)
    catalog.prepare()
    yield catalog
    entry = catalog.entry(TOPIC)
    if entry is not None:
        catalog.remove(TOPIC, entry, lambda: None)
    catalog.close()


def catalog_at(uri: str, namespace: str, client_id: str, secret: str) -> RestCatalog:
    options = RestOptions(uri=uri, namespace=namespace, client_id=client_id, secret="theirs")
    return RestCatalog(options, namespace, secret)


def put(catalog: RestCatalog, lake: Lake, known: tuple[str, ...] = ()) -> None:
    show(catalog, TOPIC, lake.read, known, lambda _: None)


def columns(theirs: Service, namespace: str, credential: tuple[str, str]) -> list[str]:
    """As a client of theirs reads the table."""
    more: dict[str, Any] = {"oauth2-server-uri": f"{theirs.uri}/v1/oauth/tokens"}
    reader = Reader("theirs", uri=theirs.uri, credential=":".join(credential), **more)
    found = reader.load_table((namespace, TOPIC))
    assert found.scan().to_arrow().num_rows == 0
    reader.close()
    return [field.name for field in found.schema().fields]


def test_a_table_is_there_and_follows(
    theirs: Service, lake: Lake, catalog: RestCatalog, namespace: str, credential: tuple[str, str]
) -> None:
    put(catalog, lake)
    assert columns(theirs, namespace, credential) == ["id"]
    for name in ("a", "b"):
        lake.evolve(name)
    put(catalog, lake)
    assert columns(theirs, namespace, credential) == ["id", "a", "b"]


def test_their_catalog_writes_nothing_into_our_table(ours: Service, lake: Lake, catalog: RestCatalog) -> None:
    put(catalog, lake)
    lake.evolve("a")
    found = lake.read()
    assert found is not None
    folder = Path(found.location.removeprefix("file://"))
    before = sorted(folder.rglob("*"))
    put(catalog, lake)
    entry = catalog.entry(TOPIC)
    assert entry is not None
    assert withdraw(catalog, TOPIC, [found.uuid])
    assert sorted(folder.rglob("*")) == before
    assert lake.read() == found


def test_it_does_not_go_back(lake: Lake, catalog: RestCatalog) -> None:
    old = lake.read()
    lake.evolve("a")
    put(catalog, lake)
    with pytest.raises(OutsideMoved, match="newer"):
        show(catalog, TOPIC, lambda: old, (), lambda _: None)
    entry, now = catalog.entry(TOPIC), lake.read()
    assert entry is not None
    assert now is not None
    assert entry.metadata_location == now.metadata_location


def test_a_table_made_again(lake: Lake, catalog: RestCatalog) -> None:
    put(catalog, lake)
    before = lake.read()
    assert before is not None
    lake.drop()
    lake.create()
    put(catalog, lake, known=(before.uuid,))
    entry, now = catalog.entry(TOPIC), lake.read()
    assert entry is not None
    assert now is not None
    assert entry.uuid == now.uuid != before.uuid


def test_where_there_is_no_overwriting_it_is_dropped_and_registered_again(
    theirs: Service, lake: Lake, catalog: RestCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with catalogs that do not read `overwrite`, and answer that the table is there."""
    put(catalog, lake)
    lake.evolve("a")
    asked: list[str] = []
    call = catalog._http.call

    def without_overwrite(method: str, path: str, body: Any = None, **more: Any) -> httpx.Response:
        if method != "GET":
            asked.append(f"{method} {path.rpartition('/')[2]}")
        if isinstance(body, dict):
            body.pop("overwrite", None)
        return call(method, path, body, **more)

    monkeypatch.setattr(catalog._http, "call", without_overwrite)
    put(catalog, lake)
    assert asked == ["POST register", f"DELETE {TOPIC}", "POST register"]
    entry, now = catalog.entry(TOPIC), lake.read()
    assert entry is not None
    assert now is not None
    assert entry.metadata_location == now.metadata_location


def test_what_they_made_stays(theirs: Service, lake: Lake, catalog: RestCatalog, namespace: str) -> None:
    schema = {"type": "struct", "fields": [{"id": 1, "name": "x", "required": False, "type": "long"}]}
    made = theirs.post(f"/namespaces/{namespace}/tables", {"name": TOPIC, "schema": schema})
    with pytest.raises(NotPublishable, match="did not make it"):
        put(catalog, lake)
    assert theirs.get(f"/namespaces/{namespace}/tables/{TOPIC}")["metadata"] == made["metadata"]


def test_a_place_that_they_do_not_allow(jvm: Jvm, lake: Lake, tmp_path: Path) -> None:
    with Service(jvm, tmp_path) as strict:
        made, secret = strict.doors.credentials.create("strict", [Grant.parse("engine:elsewhere:*")])
        catalog = catalog_at(strict.uri, "elsewhere", made.client_id, secret)
        catalog.prepare()
        with pytest.raises(NotPublishable, match="400, The metadata file"):
            put(catalog, lake)
        assert catalog.entry(TOPIC) is None
        catalog.close()


def test_a_role_that_does_not_suffice(theirs: Service, lake: Lake, namespace: str) -> None:
    made, secret = theirs.doors.credentials.create("weak", [Grant.parse(f"writer:{namespace}:*")])
    catalog = catalog_at(theirs.uri, namespace, made.client_id, secret)
    catalog.prepare()
    with pytest.raises(OutsideRefused, match="by the engine alone"):
        put(catalog, lake)
    catalog.close()


def test_a_credential_that_was_revoked(theirs: Service, lake: Lake, namespace: str) -> None:
    made, secret = theirs.doors.credentials.create("gone", [Grant.parse(f"engine:{namespace}:*")])
    catalog = catalog_at(theirs.uri, namespace, made.client_id, secret)
    catalog.prepare()
    theirs.doors.credentials.revoke("gone")
    with pytest.raises(OutsideRefused) as refused:
        put(catalog, lake)
    assert secret not in str(refused.value)
    catalog.close()


def test_nobody_is_there() -> None:
    catalog = RestCatalog(RestOptions(uri=f"http://127.0.0.1:{free_port()}"), "x", None)
    with pytest.raises(OutsideUnavailable, match="does not answer"):
        catalog.prepare()
    catalog.close()


def test_somebody_else_is_there(ours: Service) -> None:
    catalog = RestCatalog(RestOptions(uri=f"{ours.uri}/nothing"), "x", None)
    with pytest.raises(OutsideRefused, match="answers 404"):
        catalog.prepare()
    catalog.close()
