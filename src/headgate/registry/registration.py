"""Finds a schema under a subject, resolves what it refers to, decides whether it may be registered."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection

from headgate.registry import settings, storage
from headgate.registry.compatibility import AvroCompatibility, Earlier, Level, Verdict, judge, to_compare
from headgate.registry.protobuf_compatibility import ProtobufCompatibility, content
from headgate.registry.refusals import incompatible, invalid_schema, not_permitted
from headgate.registry.schemas import (
    Reference,
    ResolvedSchema,
    Schema,
    SchemaType,
    SchemaVersion,
    StoredSchema,
    digest,
    guid_of,
    normal_form,
    parsed,
)
from headgate.registry.settings import Mode

LATEST = -1


@dataclass(frozen=True)
class Plan:
    """What a registration will write, good for as long as the registry is at `revision`."""

    revision: int
    schema: Schema
    number: int
    schema_id: int | None = None


@dataclass(frozen=True)
class Imported:
    """The id, and perhaps the version, that a schema had in the registry that it comes from."""

    id: int | None = None
    version: int | None = None

    @property
    def empty(self) -> bool:
        return self.id is None and self.version is None


def plan(
    connection: Connection,
    avro: AvroCompatibility,
    subject: str,
    schema: Schema,
    normalize: bool,
    imported: Imported,
) -> Plan | SchemaVersion:
    """What is to be written; or the version that is there already, when nothing is."""
    at = storage.revision(connection)
    config = settings.effective_config(connection, subject)
    normalize = normalize or bool(config.get("normalize"))
    everything = storage.versions(connection, subject)
    living = [version for version in everything if not version.deleted]
    schema = pinned(connection, schema)
    existing = find(living, schema, normalize) or find_same(connection, living, schema)
    if existing is not None and _satisfies(existing, imported):
        return existing
    _check_mode(connection, subject, imported)
    resolved = resolve(connection, schema)
    validate(avro, resolved)
    if normalize:
        schema = normal_form(schema)
    if imported.empty:
        schema = _inherit(schema, living)
        verdict = compare(connection, avro, config, replace(resolved, schema=schema), living)
        if verdict.problems:
            raise incompatible(subject, verdict.problems)
    else:
        _check_import(connection, schema, imported, everything)
    number = imported.version or max((version.version for version in everything), default=0) + 1
    return Plan(at, schema, number, imported.id)


def execute(connection: Connection, subject: str, plan: Plan) -> SchemaVersion:
    """The same content has one id, whatever subjects it is under."""
    if plan.schema_id is None:
        stored = storage.schema_like(connection, plan.schema)
    else:
        stored = storage.schema_by_id(connection, plan.schema_id)
    stored = stored or storage.add_schema(connection, plan.schema, plan.schema_id)
    return storage.add_version(connection, subject, plan.number, stored)


def find(versions: Sequence[SchemaVersion], schema: Schema, normalize: bool) -> SchemaVersion | None:
    """The newest version with this content. A schema that says nothing of metadata and rules matches any."""
    wanted = guid_of(digest(schema))
    for version in reversed(versions):
        if version.stored.guid == wanted:
            return version
    for version in reversed(versions):
        known = version.schema.without_extras() if schema.plain else version.schema
        # Texts are parsed again only where that can make a difference.
        differs = normalize or known != version.schema
        if differs and digest(known, normalize) == digest(schema, normalize):
            return version
    return None


def find_same(
    connection: Connection, versions: Sequence[SchemaVersion], schema: Schema
) -> SchemaVersion | None:
    """The newest version that says the same in another form: Protobuf comes as text and as descriptor."""
    if schema.type is not SchemaType.PROTOBUF:
        return None
    wanted = content(resolve(connection, schema))
    for version in reversed(versions) if wanted is not None else ():
        known = version.schema
        alike = known.type is schema.type and set(known.references) == set(schema.references)
        extras = schema.plain or (known.metadata, known.rule_set) == (schema.metadata, schema.rule_set)
        if alike and extras and content(resolve(connection, known)) == wanted:
            return version
    return None


def pinned(connection: Connection, schema: Schema) -> Schema:
    """References to the latest version become references to the one that is the latest now."""
    return replace(schema, references=tuple(_pin(connection, r) for r in schema.references))


def _pin(connection: Connection, reference: Reference) -> Reference:
    if reference.version != LATEST:
        return reference
    living = [v for v in storage.versions(connection, reference.subject) if not v.deleted]
    if not living:
        raise _no_target(reference)
    return replace(reference, version=living[-1].version)


def resolve(connection: Connection, schema: Schema) -> ResolvedSchema:
    """Soft-deleted versions resolve too: what was written with them is still read."""
    found: dict[tuple[str, int], str] = {}
    names: dict[tuple[str, str, int], None] = {}
    _gather(connection, schema, found, names, frozenset())
    named = tuple((name, found[(subject, version)]) for name, subject, version in names)
    return ResolvedSchema(schema, tuple(found.values()), named)


def _gather(
    connection: Connection,
    schema: Schema,
    found: dict[tuple[str, int], str],
    names: dict[tuple[str, str, int], None],
    above: frozenset[tuple[str, int]],
) -> None:
    for reference in schema.references:
        target = (reference.subject, reference.version)
        if target in above:
            continue
        if target not in found:
            version = storage.version(connection, *target)
            if version is None:
                raise _no_target(reference)
            _gather(connection, version.schema, found, names, above | {target})
            found[target] = version.schema.text
        names[(reference.name, *target)] = None


def _no_target(reference: Reference) -> Exception:
    number = "latest" if reference.version == LATEST else reference.version
    return invalid_schema(
        f"its reference '{reference.name}' is to subject '{reference.subject}' version {number}, "
        "which does not exist"
    )


def validate(avro: AvroCompatibility, resolved: ResolvedSchema) -> None:
    schema = resolved.schema
    match schema.type:
        case SchemaType.AVRO:
            parsed(schema.text)
            avro.validate(resolved)
        case SchemaType.JSON:
            if not isinstance(parsed(schema.text), dict | bool):
                raise invalid_schema("a JSON Schema is an object, or true or false")
        case SchemaType.PROTOBUF:
            ProtobufCompatibility().validate(resolved)


def compare(
    connection: Connection,
    avro: AvroCompatibility,
    config: Mapping[str, Any],
    candidate: ResolvedSchema,
    versions: Sequence[SchemaVersion],
) -> Verdict:
    """Against `versions`, as the configuration says."""
    level = Level(config["compatibility"])
    group = config.get("compatibilityGroup")
    peers = [v for v in versions if _group(v.schema, group) == _group(candidate.schema, group)]
    # Resolved only where it is needed: a long history is not read for a comparison with the latest.
    numbered = {v.version: v for v in peers}
    chosen = to_compare(level, [Earlier(v.version, ResolvedSchema(v.schema)) for v in peers])
    earlier = [Earlier(e.version, resolve(connection, numbered[e.version].schema)) for e in chosen]
    return judge(avro, level, candidate, earlier[::-1])


def _group(schema: Schema, group: str | None) -> str | None:
    """The value of the metadata property that divides a subject's versions into groups of their own."""
    if group is None:
        return None
    properties: Mapping[str, str] = (schema.metadata or {}).get("properties") or {}
    return properties.get(group)


def _satisfies(existing: SchemaVersion, imported: Imported) -> bool:
    same_id = imported.id in (None, existing.id)
    return same_id and imported.version in (None, existing.version)


def _check_mode(connection: Connection, subject: str, imported: Imported) -> None:
    settings.refuse_when_read_only(connection, subject)
    mode = settings.effective_mode(connection, subject)
    if imported.empty and mode is not Mode.READWRITE:
        raise not_permitted(
            f"Subject '{subject}' is not in read-write mode.", "In mode IMPORT, name the id of each schema."
        )
    if not imported.empty and mode is not Mode.IMPORT:
        raise not_permitted(
            f"Subject '{subject}' is not in import mode.", "Only there a request may name an id or version."
        )
    if not imported.empty and imported.id is None:
        raise not_permitted(f"The import into subject '{subject}' names a version but no id.")


def _check_import(
    connection: Connection, schema: Schema, imported: Imported, versions: Sequence[SchemaVersion]
) -> None:
    assert imported.id is not None
    stored: StoredSchema | None = storage.schema_by_id(connection, imported.id)
    if stored is not None and digest(stored.schema) != digest(schema):
        raise not_permitted(f"Schema id {imported.id} has another content already.")
    if any(version.version == imported.version for version in versions):
        raise not_permitted(f"Version {imported.version} exists already.")


def _inherit(schema: Schema, living: Sequence[SchemaVersion]) -> Schema:
    """Metadata and rules stay with a subject until a new version says otherwise."""
    if not living:
        return schema
    latest = living[-1].schema
    return replace(
        schema,
        metadata=latest.metadata if schema.metadata is None else schema.metadata,
        rule_set=latest.rule_set if schema.rule_set is None else schema.rule_set,
    )
