"""What schemas tag as personal leaves masked, under its own name or another."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from headgate.config import Settings
from headgate.export.sql import TableName
from headgate.export.tags import TAGS, personal_columns, personal_fields, tagged_fields
from headgate.model import TableSpec
from headgate.options import TableOptions
from headgate.registry.avro import inlined
from headgate.store import RunState, Store
from tests.unit.export.test_service import Place, place

__all__ = ["place"]
CONTACT = {
    "type": "record",
    "name": "C",
    "fields": [
        {"name": "email", "type": ["null", "string"], "personal": True},
        {"name": "country", "type": "string"},
    ],
}
SALE = {
    "type": "record",
    "name": "S",
    "fields": [
        {"name": "id", "type": "long", TAGS: ["PUBLIC"]},
        {"name": "contact", "type": CONTACT},
        {"name": "others", "type": {"type": "array", "items": {**CONTACT, "name": "D"}}},
        {"name": "address", "type": {**CONTACT, "name": "A"}, TAGS: ["PII"]},
    ],
}
TAGGED = frozenset(
    ("email", "contact_email", "others_email", "address", "address_email", "address_country", "country")
)


def test_tagged_fields_are_found_in_structs_and_arrays() -> None:
    assert tagged_fields(json.dumps(SALE)) == TAGGED
    # As a registry gives it, references put inline.
    assert tagged_fields(inlined(json.dumps(SALE), [])) == TAGGED
    properties = {
        "id": {"type": "integer"},
        "who": {"type": "object", "properties": {"tel": {TAGS: ["pii"]}}},
    }
    assert tagged_fields(json.dumps({"type": "object", "properties": properties})) == {"tel", "who_tel"}
    assert tagged_fields('syntax = "proto3";') == frozenset()


@pytest.mark.parametrize(
    ("sql", "columns", "personal"),
    [
        ("SELECT * FROM t", ["id", "email"], ["email"]),
        ("SELECT id, lower(Email) AS e FROM t", ["id", "e"], ["e"]),
        ("SELECT s.contact.email AS m FROM t AS s", ["m"], ["m"]),
        ("WITH a AS (SELECT email AS e FROM t) SELECT concat(e, 'x') AS f, 1 AS g FROM a", ["f", "g"], ["f"]),
        ("SELECT count(email) AS n, count(DISTINCT email) AS d FROM t", ["n", "d"], []),
        ("SELECT id FROM t WHERE email IS NOT NULL", ["id"], []),
        ("SELECT this is not SQL", ["email", "id"], ["email"]),
    ],
)
def test_a_tag_follows_its_field_under_other_names(sql: str, columns: list[str], personal: list[str]) -> None:
    assert personal_columns(sql, columns, frozenset({"email"})) == personal


def test_tags_of_all_versions_and_options_of_the_table_count(settings: Settings) -> None:
    registered: dict[str, list[Any]] = {
        "sales-key": [],
        "sales-value": [SimpleNamespace(text=json.dumps(SALE)), SimpleNamespace(text='"string"')],
    }
    registry: Any = SimpleNamespace(versions=registered.__getitem__)
    store = Store.open(settings.store_url)
    store.enable_table(TableOptions(personal=["Birth"]).apply(TableSpec("sales")))
    fields = personal_fields(registry, store, "local")
    assert fields(TableName(("local",), "sales")) == {*TAGGED, "Birth"}
    assert fields(TableName(("others",), "sales")) == frozenset()
    spec = store.table("sales").spec
    assert (spec.personal, TableOptions(personal=[]).apply(spec).personal) == (("Birth",), ())
    store.close()


def test_a_tagged_column_does_not_leave_unmasked(place: Place) -> None:
    place.tagged = frozenset({"town"})
    run = place.ask()
    place.work()
    failed = place.exports.run(run.id)
    assert failed.state is RunState.FAILED
    assert "calls 'town' personal" in failed.reason
    place.exports.change(
        "weekly", {**failed.spec, "masks": {**failed.spec["masks"], "town": {"mask": "redact"}}}
    )
    masked = place.again()
    place.work()
    assert place.exports.run(masked.id).state is RunState.DONE
