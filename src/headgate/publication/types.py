"""Columns as outside catalogs spell them. No I/O."""

import json
from collections.abc import Mapping
from typing import Any

from headgate.errors import NotPublishable

Json = Mapping[str, Any]
# Hive's names of Iceberg's types; what Hive has no type for is named as Iceberg's own Glue catalog does.
_HIVE: Mapping[str, str] = {
    "int": "int",
    "long": "bigint",
    "uuid": "string",
    "time": "string",
    "timestamptz": "timestamp",
    "timestamp_ns": "timestamp",
    "timestamptz_ns": "timestamp",
}


def glue_columns(schema: Json) -> list[dict[str, Any]]:
    """Of a schema as Iceberg writes it."""
    found = []
    for one in schema["fields"]:
        column = {
            "Name": one["name"],
            "Type": hive_type(one["type"]),
            "Parameters": {
                "iceberg.field.id": str(one["id"]),
                "iceberg.field.optional": str(not one["required"]).lower(),
                "iceberg.field.current": "true",
            },
        }
        # Glue takes no more.
        found.append(column | ({"Comment": one["doc"][:255]} if one.get("doc") else {}))
    return found


def hive_type(kind: Any) -> str:
    if isinstance(kind, str):
        if kind.startswith("fixed["):
            return "binary"
        return _HIVE.get(kind, kind.replace(", ", ","))
    match kind["type"]:
        case "struct":
            fields = ",".join(f"{one['name']}:{hive_type(one['type'])}" for one in kind["fields"])
            return f"struct<{fields}>"
        case "list":
            return f"array<{hive_type(kind['element'])}>"
        case "map":
            return f"map<{hive_type(kind['key'])},{hive_type(kind['value'])}>"
    raise NotPublishable(f"There is no name for the type {kind['type']} in a Glue catalog.")


# Unity's name of a Delta type, and SQL's.
_UNITY: Mapping[str, tuple[str, str]] = {
    "boolean": ("BOOLEAN", "boolean"),
    "byte": ("BYTE", "tinyint"),
    "short": ("SHORT", "smallint"),
    "integer": ("INT", "int"),
    "long": ("LONG", "bigint"),
    "float": ("FLOAT", "float"),
    "double": ("DOUBLE", "double"),
    "date": ("DATE", "date"),
    "timestamp": ("TIMESTAMP", "timestamp"),
    "timestamp_ntz": ("TIMESTAMP_NTZ", "timestamp_ntz"),
    "string": ("STRING", "string"),
    "binary": ("BINARY", "binary"),
    "variant": ("VARIANT", "variant"),
}


def unity_columns(schema: Json) -> list[dict[str, Any]]:
    """Of a schema as the Delta log writes it."""
    found = []
    for position, one in enumerate(schema["fields"]):
        name, text, numbers = _unity_type(one["type"])
        column = {
            "name": one["name"],
            "type_name": name,
            "type_text": text,
            "type_json": json.dumps(_plain(one), separators=(",", ":")),
            "position": position,
            "nullable": one["nullable"],
            **numbers,
        }
        comment = one.get("metadata", {}).get("comment")
        found.append(column | ({"comment": comment} if comment else {}))
    return found


def _unity_type(kind: Any) -> tuple[str, str, dict[str, int]]:
    if isinstance(kind, str):
        if kind.startswith("decimal("):
            precision, scale = (int(part) for part in kind[8:-1].split(","))
            return (
                "DECIMAL",
                f"decimal({precision},{scale})",
                {"type_precision": precision, "type_scale": scale},
            )
        if kind not in _UNITY:
            raise NotPublishable(f"There is no name for the type {kind} in Unity Catalog.")
        return *_UNITY[kind], {}
    match kind["type"]:
        case "struct":
            fields = ",".join(f"{one['name']}:{_unity_type(one['type'])[1]}" for one in kind["fields"])
            return "STRUCT", f"struct<{fields}>", {}
        case "array":
            return "ARRAY", f"array<{_unity_type(kind['elementType'])[1]}>", {}
        case "map":
            key, value = (_unity_type(kind[part])[1] for part in ("keyType", "valueType"))
            return "MAP", f"map<{key},{value}>", {}
    raise NotPublishable(f"There is no name for the type {kind['type']} in Unity Catalog.")


def _plain(value: Any) -> Any:
    """Without what the Delta log says to itself: how columns are found in files."""
    if isinstance(value, Mapping):
        return {
            key: _plain({k: v for k, v in inner.items() if not k.startswith("delta.")})
            if key == "metadata"
            else _plain(inner)
            for key, inner in value.items()
        }
    return [_plain(inner) for inner in value] if isinstance(value, list) else value
