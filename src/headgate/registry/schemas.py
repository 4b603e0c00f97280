"""The registry's nouns, frozen, and when two schemas are the same schema."""

import hashlib
import json
import unicodedata
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from headgate.registry.avro import MalformedAvro, normalized
from headgate.registry.refusals import contexts_unsupported, invalid_schema, invalid_subject


class SchemaType(StrEnum):
    AVRO = "AVRO"
    JSON = "JSON"
    PROTOBUF = "PROTOBUF"


@dataclass(frozen=True)
class Reference:
    """`name` is what the schema's text calls the other schema by."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True)
class Schema:
    """A schema as a client sends it: the text as given, and all that is part of its identity."""

    text: str
    type: SchemaType = SchemaType.AVRO
    references: tuple[Reference, ...] = ()
    metadata: Mapping[str, Any] | None = None
    rule_set: Mapping[str, Any] | None = None

    @property
    def plain(self) -> bool:
        return self.metadata is None and self.rule_set is None

    def without_extras(self) -> "Schema":
        return replace(self, metadata=None, rule_set=None)


@dataclass(frozen=True)
class StoredSchema:
    id: int
    guid: str
    schema: Schema


@dataclass(frozen=True)
class SchemaVersion:
    subject: str
    version: int
    deleted: bool
    stored: StoredSchema

    @property
    def id(self) -> int:
        return self.stored.id

    @property
    def schema(self) -> Schema:
        return self.stored.schema


@dataclass(frozen=True)
class ResolvedSchema:
    """A schema with the texts of all it refers to, near or far, each after those that it needs itself."""

    schema: Schema
    dependencies: tuple[str, ...] = ()
    #: The same with the names that they are referred to by. One text can have several.
    named: tuple[tuple[str, str], ...] = ()


def check_subject(subject: str) -> None:
    if subject.startswith(":."):
        raise contexts_unsupported(subject)
    if not subject or any(unicodedata.category(character) == "Cc" for character in subject):
        raise invalid_subject(subject, "it must not be empty or hold control characters.")


def parsed(text: str) -> Any:
    """The JSON value of a schema's text."""
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise invalid_schema(f"it is not JSON: {error}") from error


def canonical_text(schema: Schema, normalize: bool = False) -> str:
    """Equal for texts that mean the same: white space never matters, nor the order of an Avro object's keys.

    `normalize` also ignores how names are spelled (Avro) and the order of keys (JSON Schema).
    """
    match schema.type:
        case SchemaType.PROTOBUF:
            return schema.text
        case SchemaType.JSON:
            return _dump(parsed(schema.text), sort_keys=normalize)
        case SchemaType.AVRO:
            value = parsed(schema.text)
            return _dump(_normalized_avro(value) if normalize else value, sort_keys=True)


def digest(schema: Schema, normalize: bool = False) -> str:
    """Equal for schemas that share an id."""
    identity = [
        schema.type.value,
        canonical_text(schema, normalize),
        [[r.name, r.subject, r.version] for r in schema.references],
        None if schema.metadata is None else _said(schema.metadata, sets=True),
        None if schema.rule_set is None else _said(schema.rule_set),
    ]
    return hashlib.sha256(_dump(identity, sort_keys=True).encode()).hexdigest()


def _said(value: Any, sets: bool = False) -> Any:
    """Clients spell out differently what they leave empty; the lists in metadata are sets, in any order."""
    if isinstance(value, Mapping):
        said = {key: _said(item, sets) for key, item in value.items()}
        return {key: item for key, item in said.items() if item not in (None, [], {})}
    if isinstance(value, list):
        said_items = [_said(item, sets) for item in value]
        return sorted(set(said_items)) if sets else said_items
    return value


def guid_of(digest: str) -> str:
    """The same content has the same GUID for ever; an id is what one registry gave out."""
    return str(uuid.UUID(hex=digest[:32]))


def normal_form(schema: Schema) -> Schema:
    """The schema with its text normalized."""
    return replace(schema, text=canonical_text(schema, normalize=True))


def _normalized_avro(value: Any) -> Any:
    try:
        return normalized(value)
    except MalformedAvro as error:
        raise invalid_schema(str(error)) from error


def _dump(value: Any, sort_keys: bool) -> str:
    try:
        return json.dumps(value, sort_keys=sort_keys, separators=(",", ":"), allow_nan=False)
    except (ValueError, RecursionError) as error:
        raise invalid_schema(str(error)) from error


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON value")
