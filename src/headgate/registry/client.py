"""The engine's view of a schema registry, the embedded one or any other that speaks Confluent's API."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self, TypeVar
from urllib.parse import quote
from uuid import UUID

from confluent_kafka.schema_registry import RegisteredSchema as RegistrySchema
from confluent_kafka.schema_registry.common._httpx_compat import httpx
from confluent_kafka.schema_registry.error import SchemaRegistryError

from headgate.errors import (
    ConfigError,
    HeadgateError,
    IncompatibleSchema,
    NotFound,
    RegistryUnavailable,
    UnsupportedSchema,
)
from headgate.kafka.registry import RegistryAccess
from headgate.registry.avro import MalformedAvro, inlined
from headgate.registry.schemas import SchemaType

__all__ = ["ReferencedSchema", "RegisteredSchema", "RegistryAccess", "SchemaSource", "SubjectVersion"]

TIMEOUT_SECONDS = 5
NOT_FOUND_CODES = (40401, 40402, 40403)
TRANSIENT_STATUS = (408, 429)
INCOMPATIBLE, INVALID = 409, 422
_T = TypeVar("_T")


@dataclass(frozen=True)
class ReferencedSchema:
    name: str
    text: str


@dataclass(frozen=True)
class RegisteredSchema:
    """A schema that can be used as it is.

    An Avro schema's `text` is self-contained, its references put inline. For JSON Schema and Protobuf the
    texts that it refers to, near or far, are in `references`, each after those that it needs itself.
    """

    id: int
    type: SchemaType
    text: str
    references: tuple[ReferencedSchema, ...] = ()


@dataclass(frozen=True)
class SubjectVersion:
    """A version of a subject as it was registered: its references are named, not put inline."""

    subject: str
    version: int
    id: int
    type: str
    text: str
    references: tuple[tuple[str, str, int], ...] = ()


class SchemaSource:
    """Schemas by id, remembered for ever, and the latest of a subject, asked anew each time.

    Raises RegistryUnavailable when the registry does not answer now: wait, nothing is wrong with the records.
    """

    def __init__(self, where: RegistryAccess | str) -> None:
        access = RegistryAccess.at(where)
        self._shown = str(access)
        # One quick second try for a connection that was closed meanwhile; the engine waits, not the client.
        self._client = access.client(TIMEOUT_SECONDS, retries=1, wait_ms=50)
        self._known: dict[int, RegisteredSchema] = {}
        self._by_guid: dict[str, RegisteredSchema] = {}
        self._lock = threading.Lock()

    def schema(self, schema_id: int) -> RegisteredSchema:
        with self._lock:
            known = self._known.get(schema_id)
        if known is not None:
            return known
        found = self._get(f"schemas/ids/{schema_id}", f"a schema with id {schema_id}")
        if found is None:
            raise NotFound(
                f"There is no schema with id {schema_id} in the registry at {self._shown}.",
                "Check that registry.url names the registry that the producer used, "
                "and that the schema was not deleted permanently.",
            )
        return self._remember(schema_id, found.schema)

    def schema_by_guid(self, guid: str) -> RegisteredSchema:
        """The schema with this GUID, which records carry in a header instead of an id before the value."""
        guid = str(UUID(guid))
        with self._lock:
            known = self._by_guid.get(guid)
        if known is not None:
            return known
        what = f"a schema with GUID {guid}"
        found = self._get(f"schemas/guids/{guid}", what)
        if found is None:
            raise NotFound(
                f"There is no schema with GUID {guid} in the registry at {self._shown}.",
                "Check that registry.url names the registry that the producer used, "
                "and that the schema was not deleted permanently.",
            )
        schema_id = found.schema_id or self._id_of(guid, what)
        with self._lock:
            known = self._known.get(schema_id)
        schema = known or self._remember(schema_id, found.schema)
        with self._lock:
            self._by_guid[guid] = schema
        return schema

    def latest(self, subject: str) -> RegisteredSchema | None:
        """None when the subject has no version."""
        found = self._version(subject, "latest", f"subject '{subject}'")
        if found is None:
            return None
        with self._lock:
            known = self._known.get(found.schema_id)
        return known or self._remember(found.schema_id, found.schema)

    def versions(self, subject: str) -> list[RegisteredSchema]:
        """All that a subject has, the oldest first; none when there is no such subject."""
        path = f"subjects/{quote(subject, safe='')}/versions"
        numbers: Any = self._ask(lambda: self._client._rest_client.get(path, {}), f"subject '{subject}'")
        found = (self._version(subject, number, f"subject '{subject}'") for number in numbers or ())
        return [self._remember(one.schema_id, one.schema) for one in found if one is not None]

    def latest_of_all(self) -> dict[str, SubjectVersion] | None:
        """The latest version of every subject, in one call; None where the registry does not list schemas."""
        try:
            found: Any = self._ask(
                lambda: self._client._rest_client.get("schemas", {"latestOnly": "true"}), "its schemas"
            )
        except (NotFound, ConfigError):
            # Confluent's is not the only registry, and others do without this.
            return None
        return {one["subject"]: _subject_version(one) for one in found or ()}

    def version_numbers(self, subject: str) -> list[int]:
        """Of all versions of a subject, the oldest first; none when there is no such subject."""
        path = f"subjects/{quote(subject, safe='')}/versions"
        found: Any = self._ask(lambda: self._client._rest_client.get(path, {}), f"subject '{subject}'")
        return sorted(found or ())

    def version(self, subject: str, version: int | str) -> SubjectVersion | None:
        """A version, or `latest`; None when it is not there."""
        path = f"subjects/{quote(subject, safe='')}/versions/{version}"
        found: Any = self._ask(lambda: self._client._rest_client.get(path, {}), f"subject '{subject}'")
        return None if found is None else _subject_version(found)

    def compatibility_level(self, subject: str) -> str | None:
        """What holds for a subject's next version: its own level, or the registry's."""
        path = f"config/{quote(subject, safe='')}"
        query = {"defaultToGlobal": "true"}
        found: Any = self._ask(lambda: self._client._rest_client.get(path, query), f"subject '{subject}'")
        return None if found is None else found.get("compatibilityLevel")

    def subjects(self) -> list[str]:
        """All that have a version."""
        found: Any = self._ask(lambda: self._client._rest_client.get("subjects", {}), "its subjects")
        return sorted(found or ())

    def subjects_of(self, schema_id: int) -> list[str]:
        """Those that a schema is under, deleted ones too; none of a schema that is not there, and where the
        registry does not tell."""
        path, query = f"schemas/ids/{schema_id}/subjects", {"deleted": "true"}
        try:
            found: Any = self._ask(
                lambda: self._client._rest_client.get(path, query), f"the subjects of schema {schema_id}"
            )
        except NotFound:
            return []
        return list(found or ())

    def register(self, subject: str, kind: SchemaType, text: str) -> int:
        """The id of this schema, which is the subject's latest version now, if it was not before."""
        path = f"subjects/{quote(subject, safe='')}/versions"
        body = {"schema": text, "schemaType": kind.value}
        try:
            answer: Any = self._ask(
                lambda: self._client._rest_client.post(path, body),
                f"subject '{subject}'",
                (INCOMPATIBLE, INVALID),
            )
        except SchemaRegistryError as error:
            raise IncompatibleSchema(
                f"The schema registry does not take the new schema of subject '{subject}': "
                f"{error.error_message}",
                "Write columns that fit what is there, or write another topic.",
            ) from error
        if answer is None:
            raise NotFound(f"The registry at {self._shown} knows no subject '{subject}'.")
        return int(answer["id"])

    def forget(self, subject: str) -> None:
        """Deletes a subject's versions, softly: records that name them are read as before."""
        path = f"subjects/{quote(subject, safe='')}"
        self._ask(lambda: self._client._rest_client.delete(path), f"subject '{subject}'")

    def close(self) -> None:
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _remember(self, schema_id: int, found: Any) -> RegisteredSchema:
        schema = self._self_contained(schema_id, found)
        with self._lock:
            self._known[schema_id] = schema
        return schema

    def _self_contained(self, schema_id: int, found: Any) -> RegisteredSchema:
        if found.schema_type not in SchemaType.__members__:
            raise UnsupportedSchema(
                f"Schema {schema_id} is of type {found.schema_type}.", "Use AVRO, JSON or PROTOBUF."
            )
        references: dict[tuple[str, int, str], ReferencedSchema] = {}
        self._gather(schema_id, found, references, frozenset())
        if found.schema_type != SchemaType.AVRO:
            kind = SchemaType(found.schema_type)
            return RegisteredSchema(schema_id, kind, found.schema_str, tuple(references.values()))
        try:
            text = inlined(found.schema_str, list(dict.fromkeys(one.text for one in references.values())))
        except MalformedAvro as error:
            raise UnsupportedSchema(
                f"Schema {schema_id} cannot be put together: {error}.", "Register it with its references."
            ) from error
        return RegisteredSchema(schema_id, SchemaType.AVRO, text)

    def _gather(
        self,
        schema_id: int,
        schema: Any,
        references: dict[tuple[str, int, str], ReferencedSchema],
        above: frozenset[tuple[str, int]],
    ) -> None:
        for reference in schema.references or ():
            target = (reference.subject, reference.version)
            # One schema may be imported under several names.
            key = (*target, reference.name)
            if key in references or target in above:
                continue
            what = f"subject '{target[0]}' version {target[1]}"
            found = self._version(*target, what, deleted="true")
            if found is None:
                raise NotFound(
                    f"Schema {schema_id} refers to {what}, which is not in the registry at {self._shown}.",
                    "Register that version again.",
                )
            self._gather(schema_id, found.schema, references, above | {target})
            references[key] = ReferencedSchema(reference.name, found.schema.schema_str)

    def _id_of(self, guid: str, what: str) -> int:
        """Confluent's registry tells the id apart; one GUID has an id in each context."""
        places: Any = self._ask(lambda: self._client._rest_client.get(f"schemas/guids/{guid}/ids"), what)
        if not places:
            raise NotFound(
                f"The registry at {self._shown} has no id for the schema with GUID {guid}.",
                "Check that registry.url names the registry that the producer used.",
            )
        # The default context, where it is among them.
        return int(min(places, key=lambda place: place.get("context") not in (None, "", "."))["id"])

    def _version(self, subject: str, version: int | str, what: str, **query: str) -> Any:
        return self._get(f"subjects/{quote(subject, safe='')}/versions/{version}", what, **query)

    def _get(self, path: str, what: str, **query: str) -> Any:
        """Past the client's own memory: that keeps the latest for good, and cannot keep schemas with tags."""
        answer: Any = self._ask(lambda: self._client._rest_client.get(path, query), what)
        return None if answer is None else RegistrySchema.from_dict(answer)

    def _ask(self, call: Callable[[], _T], what: str, passed: tuple[int, ...] = ()) -> _T | None:
        """None when the registry says that there is no such thing; answers of `passed` are the caller's."""
        try:
            return call()
        except httpx.TransportError as error:
            raise RegistryUnavailable(
                f"The schema registry at {self._shown} does not answer ({type(error).__name__}: {error}).",
                "Check that it runs and that registry.url is right.",
            ) from error
        except SchemaRegistryError as error:
            if error.error_code in NOT_FOUND_CODES:
                return None
            if error.http_status_code in passed:
                raise
            raise self._failure(error, what) from error
        except ValueError as error:
            raise ConfigError(
                f"What answers at {self._shown} is not a schema registry: {error}", "Check registry.url."
            ) from error

    def _failure(self, error: Any, what: str) -> HeadgateError:
        status = error.http_status_code
        said = f"The schema registry at {self._shown} answered {status} for {what}: {error.error_message}"
        if status >= 500 or status in TRANSIENT_STATUS:
            return RegistryUnavailable(said, "It is asked again until it can answer.")
        if status in (401, 403):
            return ConfigError(said, "Check registry.auth.")
        if status == 404:
            return NotFound(said, "Check that registry.url is the address of a schema registry.")
        return ConfigError(said, "Check registry.url.")


def _subject_version(found: Any) -> SubjectVersion:
    """Of the registry's answer; the type of Avro is left out of it."""
    references = tuple(
        (one["name"], one["subject"], int(one["version"])) for one in found.get("references") or ()
    )
    kind = found.get("schemaType") or SchemaType.AVRO.value
    return SubjectVersion(
        found["subject"], int(found["version"]), int(found["id"]), kind, found["schema"], references
    )
