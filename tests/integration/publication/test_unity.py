"""Entries of Unity Catalog, in a double that takes what its published API has and nothing else."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from headgate.errors import NotPublishable, OutsideMoved, OutsideRefused, OutsideUnavailable
from headgate.publication.options import UnityOptions
from headgate.publication.outside import show, withdraw
from headgate.publication.unity import UnityCatalog
from tests.support.outside import DELTA_SCHEMA, MovingTables, table
from tests.support.unity import API, CLIENT_ID, SECRET, Unity

PLACE = "main.local"


def catalog_at(url: str, secret: str = SECRET, **more: Any) -> UnityCatalog:
    given = {"url": url, "catalog": "main", "client_id": CLIENT_ID, "secret": "unity", **more}
    return UnityCatalog(UnityOptions.model_validate(given), "local", "local", secret)


@pytest.fixture
def catalog(unity: Unity) -> Iterator[UnityCatalog]:
    catalog = catalog_at(unity.url)
    catalog.prepare()
    yield catalog
    catalog.close()


def put(catalog: UnityCatalog, tables: MovingTables) -> None:
    show(catalog, "orders", lambda: tables.read("orders"), (), lambda _: None)


def wider() -> dict[str, Any]:
    price = {"name": "price", "type": "decimal(9,2)", "nullable": True, "metadata": {"delta.x": 1}}
    return {**DELTA_SCHEMA, "fields": [*DELTA_SCHEMA["fields"], price]}


def test_the_schema_is_made_once(unity: Unity, catalog: UnityCatalog) -> None:
    catalog.prepare()
    assert list(unity.schemas) == [PLACE]
    assert unity.changes() == [("POST", "/schemas")]


def test_an_entry_is_an_external_delta_table(unity: Unity, catalog: UnityCatalog) -> None:
    put(catalog, MovingTables({"orders": table(number=3)}))

    found = unity.tables[f"{PLACE}.orders"]
    assert (found["table_type"], found["data_source_format"]) == ("EXTERNAL", "DELTA")
    assert found["storage_location"] == table().location
    assert [(one["name"], one["type_name"], one["nullable"]) for one in found["columns"]] == [
        ("id", "LONG", False),
        ("name", "STRING", True),
    ]
    assert json.loads(found["columns"][0]["type_json"])["metadata"] == {}
    assert found["properties"]["headgate.topic"] == "orders"


def test_it_is_made_again_when_the_columns_change_and_only_then(unity: Unity, catalog: UnityCatalog) -> None:
    tables = MovingTables({"orders": table(number=1)})
    put(catalog, tables)
    tables.put(table(number=2))
    put(catalog, tables)
    path = f"/tables/{PLACE}.orders"
    assert unity.changes() == [("POST", "/schemas"), ("POST", "/tables")]

    tables.put(table(number=3, delta_schema=wider()))
    put(catalog, tables)

    assert unity.changes()[2:] == [("DELETE", path), ("POST", "/tables")]
    assert [one["type_text"] for one in unity.tables[f"{PLACE}.orders"]["columns"]] == [
        "bigint",
        "string",
        "decimal(9,2)",
    ]


def test_it_does_not_go_back_to_former_columns(unity: Unity, catalog: UnityCatalog) -> None:
    put(catalog, MovingTables({"orders": table(number=9, delta_schema=wider())}))
    with pytest.raises(OutsideMoved, match="newer"):
        put(catalog, MovingTables({"orders": table(number=5)}))
    assert len(unity.tables[f"{PLACE}.orders"]["columns"]) == 3


def test_two_that_make_an_entry_at_once(unity: Unity, catalog: UnityCatalog) -> None:
    one, other = MovingTables({"orders": table(number=1)}), MovingTables({"orders": table(number=2)})
    with pytest.raises(OutsideMoved, match="just made"):
        show(catalog, "orders", lambda: one.read("orders"), (), lambda _: put(catalog, other))
    assert unity.tables[f"{PLACE}.orders"]["properties"]["headgate.sequence-number"] == "2"


@pytest.mark.parametrize("kind", ["EXTERNAL", "MANAGED"])
def test_what_others_made_stays(unity: Unity, catalog: UnityCatalog, kind: str) -> None:
    theirs = {"name": "orders", "table_type": kind, "columns": []}
    unity.tables[f"{PLACE}.orders"] = theirs

    with pytest.raises(NotPublishable, match="did not make it"):
        put(catalog, MovingTables({"orders": table()}))
    assert not withdraw(catalog, "orders", [table().uuid])
    assert unity.tables == {f"{PLACE}.orders": theirs}


def test_an_entry_that_owns_files_is_never_removed(unity: Unity, catalog: UnityCatalog) -> None:
    put(catalog, MovingTables({"orders": table()}))
    unity.tables[f"{PLACE}.orders"]["table_type"] = "MANAGED"
    with pytest.raises(NotPublishable, match="no external table"):
        withdraw(catalog, "orders", [table().uuid])
    assert list(unity.tables) == [f"{PLACE}.orders"]


def test_ours_is_taken_out(unity: Unity, catalog: UnityCatalog) -> None:
    put(catalog, MovingTables({"orders": table()}))
    assert withdraw(catalog, "orders", [table().uuid])
    assert unity.tables == {}


def test_a_table_without_a_delta_log_cannot_be_there(catalog: UnityCatalog) -> None:
    with pytest.raises(NotPublishable, match="no Delta log"):
        put(catalog, MovingTables({"orders": table(delta_schema=None)}))


def test_a_token_that_is_not_good_any_more_is_asked_for_again(unity: Unity, catalog: UnityCatalog) -> None:
    first = set(unity.tokens)
    unity.tokens.clear()
    put(catalog, MovingTables({"orders": table()}))
    assert len(unity.tokens) == 1
    assert unity.tokens.isdisjoint(first)


def test_a_token_is_used_while_it_is_good(unity: Unity, catalog: UnityCatalog) -> None:
    put(catalog, MovingTables({"orders": table()}))
    assert len(unity.tokens) == 1


def test_a_wrong_secret(unity: Unity) -> None:
    catalog = catalog_at(unity.url, secret="a-wrong-secret")
    with pytest.raises(OutsideRefused, match="Client is unknown") as refused:
        catalog.prepare()
    assert "a-wrong-secret" not in str(refused.value)
    catalog.close()


def test_a_catalog_that_is_not_there(unity: Unity) -> None:
    catalog = catalog_at(unity.url, catalog="elsewhere")
    with pytest.raises(OutsideRefused, match="There is no catalog 'elsewhere'"):
        catalog.prepare()
    catalog.close()


@pytest.mark.parametrize("status", [500, 503, 429])
def test_a_server_that_cannot_now(unity: Unity, catalog: UnityCatalog, status: int) -> None:
    unity.trouble = status
    with pytest.raises(OutsideUnavailable, match="not now"):
        catalog.prepare()


def test_the_double_takes_nothing_that_is_not_published(unity: Unity, catalog: UnityCatalog) -> None:
    headers = {"Authorization": f"Bearer {next(iter(unity.tokens))}"}
    body = {"name": "t", "catalog_name": "main", "schema_name": "local", "table_type": "EXTERNAL"}

    def post(said: dict[str, Any]) -> str:
        answer = httpx.post(f"{unity.url}{API}/tables", json=said, headers=headers)
        assert answer.status_code == 400
        return str(answer.json()["message"])

    assert post(body) == "body.columns is missing"
    assert post({**body, "columns": [], "colour": "red"}) == "body.colour is unknown"
    assert post({**body, "columns": [{"type": "int"}]}) == "body.columns.0.type is unknown"
    assert post({**body, "columns": [{"position": "1"}]}) == "body.columns.0.position is no integer"
    assert post({**body, "columns": [], "table_type": "OTHER"}).startswith("body.table_type is OTHER")
    assert httpx.patch(f"{unity.url}{API}/tables/main.local.t", headers=headers).status_code == 404
    assert len(unity.wrong) == 6
    unity.wrong.clear()
