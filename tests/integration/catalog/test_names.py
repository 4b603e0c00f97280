"""Hostile names and locations over HTTP."""

import json
import uuid
from pathlib import Path
from urllib.parse import quote, urlparse

import pytest

from tests.integration.catalog.raw import SCHEMA, RawTable, set_properties, view
from tests.integration.catalog.serving import Service

HOSTILE = [
    "dots.in.it",
    "a space",
    "über-größe",
    "50%",
    "%2E%2e",
    "it's",
    'say "hi"',
    "a/b",
    "../up",
    "..",
    ".",
    "a\\b",
    "back`tick",
    "semi;colon",
    "question?mark#hash",
    "🚰",
    "x" * 255,
    "rename",
]
REFUSED = {"..", "."}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_table_of_any_name_lives_inside_the_warehouse(service: Service, name: str) -> None:
    status = 400 if name in REFUSED else 200
    body = {"name": name, "schema": SCHEMA}
    made = service.post("/namespaces/db/tables", body, status)
    if status == 400:
        assert made["error"]["code"] == 400
        return
    folder = Path(urlparse(made["metadata"]["location"]).path)
    assert folder.parent == service.warehouse / "db"
    assert folder.resolve() == folder
    table = RawTable(service, "db", quote(name, safe=""))
    assert table.commit(set_properties(a="b"))["metadata"]["properties"]["a"] == "b"
    listed = [found["name"] for found in service.get("/namespaces/db/tables")["identifiers"]]
    assert name in listed
    assert service.http.head(table.path).status_code == 204
    assert service.http.delete(table.path, params={"purgeRequested": "true"}).status_code == 204


@pytest.mark.parametrize("name", HOSTILE)
def test_a_namespace_of_any_name(service: Service, name: str) -> None:
    levels = [name, f"child of {name}"[:255]]
    if name in REFUSED:
        service.post("/namespaces", {"namespace": levels}, 400)
        return
    assert service.post("/namespaces", {"namespace": levels})["namespace"] == levels
    path = "%1F".join(quote(level, safe="") for level in levels)
    found = service.get(f"/namespaces/{path}")
    assert found["namespace"] == levels
    assert service.http.head(f"/namespaces/{path}").status_code == 204
    children = service.http.get("/namespaces", params={"parent": name}).json()["namespaces"]
    assert children == [levels]
    made = service.post(f"/namespaces/{path}/tables", {"name": "t", "schema": SCHEMA})
    assert made["metadata"]["location"] == f"{found['properties']['location']}/t"
    identifiers = service.get(f"/namespaces/{path}/tables")["identifiers"]
    assert identifiers == [{"namespace": levels, "name": "t"}]
    service.http.delete(f"/namespaces/{path}/tables/t").raise_for_status()
    assert service.http.delete(f"/namespaces/{path}").status_code == 204
    assert service.http.head(f"/namespaces/{path}").status_code == 404


@pytest.mark.parametrize("name", HOSTILE)
def test_a_view_of_any_name_lives_inside_the_warehouse(service: Service, name: str) -> None:
    status = 400 if name in REFUSED else 200
    made = service.post("/namespaces/db/views", view(name), status)
    if status == 400:
        return
    folder = Path(urlparse(made["metadata"]["location"]).path)
    assert folder.parent == service.warehouse / "db"
    path = f"/namespaces/db/views/{quote(name, safe='')}"
    assert service.get(path)["metadata"]["view-uuid"] == made["metadata"]["view-uuid"]
    assert service.http.delete(path).status_code == 204


def test_a_view_is_registered_from_its_metadata(service: Service) -> None:
    kept = {**view("kept"), "properties": {"gc.enabled": "false"}}
    made = service.post("/namespaces/db/views", kept)
    assert service.http.delete("/namespaces/db/views/kept").status_code == 204
    body = {"name": "again", "metadata-location": made["metadata-location"]}
    service.post("/namespaces/db/register-view", body)
    assert service.get("/namespaces/db/views/again")["metadata"] == made["metadata"]


def test_dots_do_not_make_levels(service: Service) -> None:
    service.post("/namespaces", {"namespace": ["p.q"]})
    assert service.http.head("/namespaces/p%1Fq").status_code == 404
    assert service.http.head("/namespaces/p").status_code == 404
    service.post("/namespaces", {"namespace": ["p", "q"]})
    service.post("/namespaces/p.q/tables", {"name": "t", "schema": SCHEMA})
    assert service.get("/namespaces/p%1Fq/tables")["identifiers"] == []


def test_case_makes_another_namespace(service: Service) -> None:
    service.post("/namespaces", {"namespace": ["lower", "child"]})
    assert service.http.head("/namespaces/LOWER").status_code == 404
    assert service.http.head("/namespaces/lower").status_code == 204


@pytest.mark.parametrize("segment", ["%00", "a%1F", "%ff%fe", "%0A", "..%2F", "%2E%2E"])
def test_names_that_cannot_be_are_refused_in_paths_too(service: Service, segment: str) -> None:
    answer = service.http.request("GET", f"{service.uri}/v1/namespaces/{segment}/tables/t")
    assert answer.status_code in (400, 404)
    assert answer.json()["error"]["code"] == answer.status_code


def outside(service: Service) -> list[str]:
    inside = service.warehouse.as_uri()
    return [
        "file:///etc",
        f"{inside}/../elsewhere",
        f"{inside}/a/../../elsewhere",
        f"{inside}",
        f"{inside}2/a",
        f"{inside}/*",
        f"{inside}/a%2F..%2F..%2Fb",
        "s3://bucket/a",
        "relative/path",
        "http://127.0.0.1/a",
    ]


def test_locations_outside_the_warehouse_are_refused_everywhere(service: Service, table: RawTable) -> None:
    table.create()
    before = table.load()
    for location in outside(service):
        name = uuid.uuid4().hex
        for staged in (True, False):
            body = {"name": name, "schema": SCHEMA, "location": location, "stage-create": staged}
            service.post("/namespaces/db/tables", body, 400)
        table.commit({"requirements": [], "updates": [{"action": "set-location", "location": location}]}, 400)
        for key in ("write.data.path", "write.metadata.path"):
            body = {"name": name, "schema": SCHEMA, "properties": {key: location}}
            service.post("/namespaces/db/tables", body, 400)
            table.commit(set_properties(**{key: location}), 400)
        body = {"name": name, "metadata-location": f"{location}/00000-x.metadata.json"}
        if location != service.warehouse.as_uri():
            service.post("/namespaces/db/register", body, 400)
        assert service.http.head(f"/namespaces/db/tables/{name}").status_code == 404
    assert table.load() == before


def test_a_registered_file_must_not_lead_out_either(service: Service, table: RawTable) -> None:
    table.create()
    metadata = table.metadata()
    for change in ({"location": "file:///etc"}, {"properties": {"write.data.path": "file:///etc"}}):
        planted = service.warehouse / "planted.metadata.json"
        planted.write_text(json.dumps({**metadata, "table-uuid": str(uuid.uuid4()), **change}))
        body = {"name": "planted", "metadata-location": planted.as_uri()}
        service.post("/namespaces/db/register", body, 400)
    planted.write_text("{}")
    service.post("/namespaces/db/register", body, 400)
    planted.unlink()
    service.post("/namespaces/db/register", body, 404)


def test_spellings_of_a_location_are_one_location(service: Service, table: RawTable) -> None:
    inside = service.warehouse / "spelled" / table.name
    body = {"name": table.name, "schema": SCHEMA, "location": f"file:{inside}/"}
    made = service.post("/namespaces/db/tables", body)
    assert made["metadata"]["location"] == inside.as_uri()
    for spelling in (f"file:{inside}", inside.as_uri(), f"{inside}/below", str(inside.parent)):
        other = {"name": uuid.uuid4().hex, "schema": SCHEMA, "location": spelling}
        assert service.post("/namespaces/db/tables", other, 409)["error"]["type"] == "AlreadyExistsException"


def test_a_name_used_again_gets_a_folder_of_its_own(table: RawTable) -> None:
    first = table.create()["metadata"]["location"]
    table.service.http.delete(table.path).raise_for_status()
    second = table.create()["metadata"]["location"]
    assert second.startswith(f"{first}-")
    table.service.http.delete(table.path, params={"purgeRequested": "true"}).raise_for_status()
    third = table.create()["metadata"]["location"]
    assert third not in (first, second)


def test_a_purged_name_may_have_its_folder_back(table: RawTable) -> None:
    first = table.create()["metadata"]["location"]
    table.service.http.delete(table.path, params={"purgeRequested": "true"}).raise_for_status()
    assert table.create()["metadata"]["location"] == first


def test_a_table_and_a_namespace_of_one_name_do_not_share_a_folder(service: Service, table: RawTable) -> None:
    outer = table.create()["metadata"]["location"]
    service.post("/namespaces", {"namespace": ["db", table.name]})
    path = f"/namespaces/db%1F{table.name}/tables"
    inner = service.post(path, {"name": "t", "schema": SCHEMA})["metadata"]["location"]
    assert not inner.startswith(f"{outer}/")


def test_namespaces_that_share_a_folder_do_not_share_tables(service: Service) -> None:
    service.post("/namespaces", {"namespace": ["x.y"]})
    service.post("/namespaces", {"namespace": ["x", "y"]})
    made = [
        service.post(f"/namespaces/{path}/tables", {"name": "t", "schema": SCHEMA})["metadata"]["location"]
        for path in ("x.y", "x%1Fy")
    ]
    assert made[1].startswith(f"{made[0]}-")
