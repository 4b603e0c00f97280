"""The schemas of a table: fields by id at any depth, and what each version changed."""

from headgate.catalog.schemas import schema_versions

ADDRESS = {
    "type": "struct",
    "fields": [{"id": 5, "name": "town", "required": False, "type": "string"}],
}
FIRST = {
    "schema-id": 0,
    "identifier-field-ids": [1],
    "fields": [
        {"id": 1, "name": "id", "required": True, "type": "int"},
        {"id": 2, "name": "note", "required": False, "type": "string", "doc": "as typed"},
        {
            "id": 3,
            "name": "ship_to",
            "required": False,
            "type": {"type": "list", "element-id": 4, "element": ADDRESS, "element-required": True},
        },
    ],
}
SECOND = {
    "schema-id": 1,
    "identifier-field-ids": [1],
    "fields": [
        {"id": 1, "name": "id", "required": True, "type": "long"},
        {"id": 2, "name": "remark", "required": False, "type": "string"},
        {
            "id": 6,
            "name": "tags",
            "required": False,
            "type": {
                "type": "map",
                "key-id": 7,
                "key": "string",
                "value-id": 8,
                "value": "double",
                "value-required": False,
            },
        },
    ],
}
METADATA = {
    "current-schema-id": 1,
    "schemas": [SECOND, FIRST],
    "snapshots": [
        {"snapshot-id": 12, "timestamp-ms": 30, "schema-id": 0},
        {"snapshot-id": 11, "timestamp-ms": 20, "schema-id": 0},
    ],
}


def test_versions_are_newest_first_with_when_they_were_first_written() -> None:
    found = schema_versions(METADATA)
    assert found["schema_id"] == 1
    assert [(one["schema_id"], one["committed_at"]) for one in found["versions"]] == [(1, None), (0, 20)]


def test_fields_have_ids_paths_and_types_at_any_depth() -> None:
    newest, oldest = schema_versions(METADATA)["versions"]
    assert [(one["id"], one["path"], one["depth"], one["type"]) for one in oldest["fields"]] == [
        (1, "id", 0, "int"),
        (2, "note", 0, "string"),
        (3, "ship_to", 0, "list<struct>"),
        (4, "ship_to.element", 1, "struct"),
        (5, "ship_to.element.town", 2, "string"),
    ]
    assert [(one["id"], one["type"], one["required"]) for one in newest["fields"][2:]] == [
        (6, "map<string, double>", False),
        (7, "string", True),
        (8, "double", False),
    ]
    assert [one["identifier"] for one in oldest["fields"]] == [True, False, False, False, False]
    assert oldest["fields"][1]["doc"] == "as typed"


def test_a_version_tells_what_it_changed_by_field_ids() -> None:
    newest, oldest = schema_versions(METADATA)["versions"]
    assert oldest["changes"] == []
    assert newest["changes"] == [
        "added tags map<string, double>",
        "added tags.key string",
        "added tags.value double",
        "dropped ship_to",
        "dropped ship_to.element",
        "dropped ship_to.element.town",
        "id int is long",
        "renamed note to remark",
    ]


def test_a_table_without_schemas_has_no_version() -> None:
    assert schema_versions({}) == {"schema_id": None, "versions": []}
