"""The schemas of a table as its metadata has them: the specification's JSON in, plain rows out. No I/O."""

from collections.abc import Iterator, Mapping
from typing import Any

Metadata = Mapping[str, Any]


def schema_versions(metadata: Metadata) -> dict[str, Any]:
    """The schemas that are kept, the newest first, each with its fields by their ids, and what it changed."""
    schemas = sorted(metadata.get("schemas") or [], key=lambda one: int(one["schema-id"]))
    since = _first_commits(metadata)
    versions: list[dict[str, Any]] = []
    before: list[dict[str, Any]] | None = None
    for schema in schemas:
        fields = list(_fields(schema, "", 0))
        versions.append(
            {
                "schema_id": schema["schema-id"],
                "committed_at": since.get(schema["schema-id"]),
                "changes": [] if before is None else _changes(before, fields),
                "fields": fields,
            }
        )
        before = fields
    return {"schema_id": metadata.get("current-schema-id"), "versions": versions[::-1]}


def _first_commits(metadata: Metadata) -> dict[int, int]:
    """When the first snapshot that is kept was written with each schema, in milliseconds."""
    found: dict[int, int] = {}
    for snapshot in metadata.get("snapshots") or []:
        number, moment = snapshot.get("schema-id"), snapshot["timestamp-ms"]
        if number is not None:
            found[number] = min(moment, found.get(number, moment))
    return found


def _fields(kind: Mapping[str, Any], path: str, depth: int) -> Iterator[dict[str, Any]]:
    """Every field at any depth, each before what is in it."""
    identifiers = kind.get("identifier-field-ids") or []
    fields = [
        (one["id"], one["name"], one["type"], one.get("required", False), one.get("doc"))
        for one in kind.get("fields") or []
    ]
    for part in ("element", "key", "value"):
        if f"{part}-id" in kind:
            needed = kind.get(f"{part}-required", part == "key")
            fields.append((kind[f"{part}-id"], part, kind[part], needed, None))
    for number, name, inner, required, doc in fields:
        full = f"{path}.{name}" if path else str(name)
        yield {
            "id": number,
            "name": name,
            "path": full,
            "depth": depth,
            "type": type_text(inner),
            "required": bool(required),
            "identifier": number in identifiers,
            "doc": doc,
        }
        if isinstance(inner, Mapping):
            yield from _fields(inner, full, depth + 1)


def type_text(kind: str | Mapping[str, Any]) -> str:
    """`long`, `list<string>`, `map<string, double>`, `struct`: what is in a struct stands below it."""
    if isinstance(kind, str):
        return kind
    match kind["type"]:
        case "list":
            return f"list<{type_text(kind['element'])}>"
        case "map":
            return f"map<{type_text(kind['key'])}, {type_text(kind['value'])}>"
    return str(kind["type"])


def _changes(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> list[str]:
    """Fields that came, went, are called otherwise, or have another type, by their ids."""
    was = {one["id"]: one for one in before}
    now = {one["id"]: one for one in after}
    changes = [f"added {one['path']} {one['type']}" for one in after if one["id"] not in was]
    changes += [f"dropped {one['path']}" for one in before if one["id"] not in now]
    for one in after:
        old = was.get(one["id"])
        if old is None:
            continue
        if old["path"] != one["path"]:
            changes.append(f"renamed {old['path']} to {one['path']}")
        if old["type"] != one["type"]:
            changes.append(f"{one['path']} {old['type']} is {one['type']}")
        if old["required"] != one["required"]:
            changes.append(f"{one['path']} is {'required' if one['required'] else 'optional'}")
    return changes
