"""Columns as Glue and Unity spell them."""

import json
from typing import Any

import pytest

from headgate.delta.schema import delta_schema
from headgate.errors import NotPublishable
from headgate.publication.types import glue_columns, hive_type, unity_columns

NESTED = {
    "type": "struct",
    "fields": [
        {"id": 10, "name": "x", "required": True, "type": "long"},
        {"id": 11, "name": "l", "required": False, "type": {
            "type": "list", "element-id": 12, "element": "timestamptz", "element-required": False}},
        {"id": 13, "name": "m", "required": False, "type": {
            "type": "map", "key-id": 14, "key": "string", "value-id": 15, "value": "decimal(9, 2)",
            "value-required": False}},
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("iceberg", "hive"),
    [
        ("boolean", "boolean"), ("int", "int"), ("long", "bigint"), ("float", "float"), ("double", "double"),
        ("date", "date"), ("time", "string"), ("timestamp", "timestamp"), ("timestamptz", "timestamp"),
        ("string", "string"), ("uuid", "string"), ("binary", "binary"), ("fixed[16]", "binary"),
        ("decimal(12, 2)", "decimal(12,2)"), ("variant", "variant"),
        (NESTED, "struct<x:bigint,l:array<timestamp>,m:map<string,decimal(9,2)>>"),
    ],
)  # fmt: skip
def test_types_of_glue(iceberg: Any, hive: str) -> None:
    assert hive_type(iceberg) == hive


def test_columns_of_glue_say_which_field_they_are() -> None:
    schema = {"fields": [{"id": 7, "name": "a", "required": True, "type": "int", "doc": "d" * 300}]}
    assert glue_columns(schema) == [
        {
            "Name": "a",
            "Type": "int",
            "Comment": "d" * 255,
            "Parameters": {
                "iceberg.field.id": "7",
                "iceberg.field.optional": "false",
                "iceberg.field.current": "true",
            },
        }
    ]


def test_columns_of_unity_are_those_of_the_delta_log() -> None:
    schema = {
        "fields": [
            {"id": 1, "name": "id", "required": True, "type": "long", "doc": "which one"},
            {"id": 2, "name": "price", "required": False, "type": "decimal(12, 2)"},
            {"id": 3, "name": "at", "required": False, "type": "timestamptz"},
            {"id": 4, "name": "in", "required": False, "type": NESTED},
        ]
    }
    columns = unity_columns(json.loads(delta_schema(schema, [schema], lambda name: name).text))

    assert [(one["name"], one["type_name"], one["type_text"], one["position"]) for one in columns] == [
        ("id", "LONG", "bigint", 0),
        ("price", "DECIMAL", "decimal(12,2)", 1),
        ("at", "TIMESTAMP", "timestamp", 2),
        ("in", "STRUCT", "struct<x:bigint,l:array<timestamp>,m:map<string,decimal(9,2)>>", 3),
    ]
    assert (columns[1]["type_precision"], columns[1]["type_scale"]) == (12, 2)
    assert (columns[0]["nullable"], columns[0]["comment"]) == (False, "which one")
    assert json.loads(columns[0]["type_json"]) == {
        "name": "id",
        "type": "long",
        "nullable": False,
        "metadata": {"comment": "which one"},
    }
    assert "delta." not in columns[3]["type_json"]


def test_a_type_without_a_name_is_told() -> None:
    with pytest.raises(NotPublishable, match="interval"):
        unity_columns({"fields": [{"name": "a", "type": "interval", "nullable": True}]})
