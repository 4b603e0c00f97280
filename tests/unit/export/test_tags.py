"""What schemas tag as personal leaves masked, under its own name or another."""

import json
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from headgate.config import Settings
from headgate.export.columns import Column
from headgate.export.lake import SnapshotState, TableColumn
from headgate.export.schedule import Bounds
from headgate.export.sql import TableName, bind
from headgate.export.tags import TAGS, holders_of, personal_columns, personal_fields, tagged_fields
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

FIELDS = {
    "type": "struct",
    "fields": [{"name": "email", "type": "string"}, {"name": "country", "type": "string"}],
}
NESTED = (
    TableColumn(2, "contact", json.dumps(FIELDS)),
    TableColumn(3, "others", json.dumps({"type": "list", "element": FIELDS})),
    TableColumn(4, "labels", json.dumps({"type": "map", "key": "string", "value": "string"})),
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
        # Columns that get no name, or one that is not theirs.
        ("SELECT upper(email), count(email) FROM t", ["upper(email)", "count(email)"], ["upper(email)"]),
        ("SELECT sku FROM a UNION ALL (SELECT email FROM t)", ["sku"], ["sku"]),
        ("WITH q(x, y) AS (SELECT id, email FROM t) SELECT x, y FROM q", ["x", "y"], ["y"]),
        ("SELECT x FROM (SELECT * FROM t) AS q(x)", ["x"], ["x"]),
        ("SELECT x FROM t LATERAL VIEW explode(split(email, '@')) v AS x", ["x"], ["x"]),
        ("SELECT col FROM t LATERAL VIEW explode(split(email, '@')) v", ["col"], ["col"]),
        ("SELECT explode(map(id, email)) AS (k, v) FROM t", ["k", "v"], ["k", "v"]),
        ("SELECT e, n FROM t UNPIVOT (e FOR n IN (email, town))", ["e"], ["e"]),
        ("SELECT explode(split(email, '@')), id FROM t", ["col", "id"], ["col"]),
        ("SELECT json_tuple(email, 'a', 'b') FROM t", ["c0", "c1"], ["c0", "c1"]),
        ("SELECT stack(2, id, town) FROM t", ["col0"], []),
        # Which of a star's columns stands beside one that is named is not known.
        ("SELECT id, sku FROM a UNION ALL SELECT * FROM t", ["id", "sku"], ["id", "sku"]),
        ("SELECT * FROM a UNION ALL SELECT id, email FROM t", ["id", "sku"], ["id", "sku"]),
        ("SELECT * FROM a UNION ALL SELECT id, town FROM t", ["id", "sku"], []),
        # All of what has one within, and fields of it.
        ("SELECT contact AS c FROM t", ["c.email", "c.country"], ["c_email"]),
        ("SELECT to_json(contact) AS c, contact.country AS d FROM t", ["c", "d"], ["c"]),
        ("SELECT to_json(contact) FROM t", ["to_json(contact)"], ["to_json(contact)"]),
        ("SELECT others, others[0].country AS c FROM t", ["others", "c"], ["others"]),
        ("SELECT filter(others, o -> o.country = 'NL') AS dutch FROM t", ["dutch"], ["dutch"]),
        ("SELECT explode(others) AS o FROM t", ["o.email", "o.country"], ["o_email"]),
        ("SELECT size(others) AS n, count(*) AS m FROM t", ["n", "m"], []),
        ("SELECT to_json(struct(*)) AS j FROM t", ["j"], ["j"]),
        ("SELECT id, upper(town) FROM t WHERE at >= :from", ["id", "upper(town)"], []),
    ],
)
def test_a_tag_follows_its_field_under_other_names(sql: str, columns: list[str], personal: list[str]) -> None:
    bound = bind(sql, Bounds(datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)))
    state = SnapshotState("one", True, 3, 1, (TableColumn(1, "id", "long"), *NESTED))
    holders = holders_of([state], frozenset({"Email"}))
    assert holders == {"contact", "others"}
    paths = [tuple(name.split(".")) for name in columns]
    given = [Column(path, "_".join(path), pa.string()) for path in paths]
    assert personal_columns(bound, given, frozenset({"Email"}), holders) == personal


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
