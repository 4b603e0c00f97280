"""Avro schemas as JSON values: references put inline, names spelled one way. Pure: no registry, no JVM.

A named type is defined once in an Avro schema, where it is used first, and named wherever it is used again.
A name without dots belongs to the namespace of the definition around it. So a definition that moves into
another schema must carry its own namespace, and the names in it must be spelled in full.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
NAMED = frozenset({"record", "error", "enum", "fixed"})


class MalformedAvro(ValueError):
    """The JSON is not shaped like an Avro schema, or names a type that nothing defines."""


@dataclass(frozen=True)
class _Definition:
    node: Mapping[str, Any]
    namespace: str  # the one around it


def inlined(text: str, dependencies: Iterable[str]) -> str:
    """One self-contained schema: `text` with the types that it uses from `dependencies` put in."""
    dependencies = tuple(dependencies)
    if not dependencies:
        return text
    try:
        root = json.loads(text)
        definitions = _collect(root)
        for dependency in dependencies:
            definitions = {**_collect(json.loads(dependency)), **definitions}
        return json.dumps(_Writer(definitions, strict=True).write(root, "", ""))
    except RecursionError as error:
        raise MalformedAvro("it is nested too deeply") from error
    except json.JSONDecodeError as error:
        raise MalformedAvro(f"it is not JSON: {error}") from error


def normalized(value: Any) -> Any:
    """The same schema with every name spelled one way, and no object where a word is enough."""
    try:
        return _Writer(_collect(value), strict=False).write(value, "", "")
    except RecursionError as error:
        raise MalformedAvro("it is nested too deeply") from error


def _collect(root: Any) -> dict[str, _Definition]:
    found: dict[str, _Definition] = {}
    for full_name, definition in _definitions(root, ""):
        found.setdefault(full_name, definition)
    return found


def _definitions(node: Any, namespace: str) -> Iterator[tuple[str, _Definition]]:
    if isinstance(node, list):
        for branch in node:
            yield from _definitions(branch, namespace)
    elif isinstance(node, dict):
        kind = node.get("type")
        if isinstance(kind, str) and kind in NAMED:
            full_name = _full_name(node, namespace)
            yield full_name, _Definition(node, namespace)
            for field in _fields(node):
                yield from _definitions(field.get("type"), _namespace(full_name))
        elif kind == "array":
            yield from _definitions(node.get("items"), namespace)
        elif kind == "map":
            yield from _definitions(node.get("values"), namespace)
        else:
            yield from _definitions(kind, namespace)


class _Writer:
    """Writes a schema out again. Names are read in the namespace where they stood (`inside`) and written for
    the namespace around them now (`around`): the two differ where a definition has been moved.
    """

    def __init__(self, definitions: Mapping[str, _Definition], strict: bool) -> None:
        self._definitions = definitions
        self._strict = strict
        self._written: set[str] = set()

    def write(self, node: Any, inside: str, around: str) -> Any:
        if isinstance(node, str):
            return self._use(node, inside, around)
        if isinstance(node, list):
            return [self.write(branch, inside, around) for branch in node]
        if not isinstance(node, dict):
            raise MalformedAvro(f"{json.dumps(node)} is not a type")
        kind = node.get("type")
        if isinstance(kind, str) and kind in NAMED:
            return self._define(node, inside, around)
        if kind == "array":
            return {**node, "items": self.write(node.get("items"), inside, around)}
        if kind == "map":
            return {**node, "values": self.write(node.get("values"), inside, around)}
        inner = self.write(kind, inside, around)
        return inner if len(node) == 1 else {**node, "type": inner}

    def _use(self, name: str, inside: str, around: str) -> Any:
        if name in PRIMITIVES:
            return name
        full_name = self._resolve(name, inside)
        if full_name is None:
            if self._strict:
                raise MalformedAvro(f"type '{name}' is defined neither in it nor in its references")
            return name
        if full_name in self._written:
            return full_name
        definition = self._definitions[full_name]
        return self._define(definition.node, definition.namespace, around)

    def _resolve(self, name: str, inside: str) -> str | None:
        # Java's parser looks in the enclosing namespace first and then outside of all; so do we.
        candidates = [name] if "." in name or not inside else [f"{inside}.{name}", name]
        return next((c for c in candidates if c in self._definitions), None)

    def _define(self, node: Mapping[str, Any], inside: str, around: str) -> Any:
        full_name = _full_name(node, inside)
        if full_name in self._written:
            return full_name
        # Before its fields are written: they may name it.
        self._written.add(full_name)
        namespace = _namespace(full_name)
        written = {key: value for key, value in node.items() if key != "namespace"}
        written["name"] = full_name.rpartition(".")[2]
        if namespace != around:
            written["namespace"] = namespace
        if "fields" in node:
            written["fields"] = [
                {**field, "type": self.write(field.get("type"), namespace, namespace)}
                for field in _fields(node)
            ]
        return written


def _full_name(node: Mapping[str, Any], inside: str) -> str:
    name = node.get("name")
    namespace = node.get("namespace", inside)
    if not isinstance(name, str) or not name:
        raise MalformedAvro(f"a type '{node.get('type')}' has no name")
    if not isinstance(namespace, str):
        raise MalformedAvro(f"the namespace of '{name}' is not a string")
    if "." in name or not namespace:
        return name
    return f"{namespace}.{name}"


def _namespace(full_name: str) -> str:
    return full_name.rpartition(".")[0]


def _fields(node: Mapping[str, Any]) -> list[dict[str, Any]]:
    fields = node.get("fields", [])
    if not isinstance(fields, list) or not all(isinstance(field, dict) for field in fields):
        raise MalformedAvro(f"the fields of '{node.get('name')}' are not a list of objects")
    return fields
