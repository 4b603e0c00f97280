"""The engine's view of a schema registry, the embedded one or any other that speaks Confluent's API."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Self, TypeVar
from urllib.parse import urlsplit, urlunsplit

from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.common._httpx_compat import httpx
from confluent_kafka.schema_registry.error import SchemaRegistryError

from headgate.errors import (
    ConfigError,
    HeadgateError,
    NotFound,
    RegistryUnavailable,
    UnsupportedSchema,
)
from headgate.registry.avro import MalformedAvro, inlined
from headgate.registry.schemas import SchemaType

TIMEOUT_SECONDS = 5
NOT_FOUND_CODES = (40401, 40402, 40403)
TRANSIENT_STATUS = (408, 429)
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


class SchemaSource:
    """Schemas by id, remembered for ever, and the latest of a subject, asked anew each time.

    Raises RegistryUnavailable when the registry does not answer now: wait, nothing is wrong with the records.
    """

    def __init__(self, url: str) -> None:
        self._shown = _without_password(url)
        # One quick second try for a connection that was closed meanwhile; the engine waits, not the client.
        self._client = SchemaRegistryClient(
            {"url": url, "timeout": TIMEOUT_SECONDS, "max.retries": 1, "retries.wait.ms": 50}
        )
        self._known: dict[int, RegisteredSchema] = {}
        self._lock = threading.Lock()

    def schema(self, schema_id: int) -> RegisteredSchema:
        with self._lock:
            known = self._known.get(schema_id)
        if known is not None:
            return known
        found = self._ask(lambda: self._client.get_schema(schema_id), f"a schema with id {schema_id}")
        if found is None:
            raise NotFound(
                f"There is no schema with id {schema_id} in the registry at {self._shown}.",
                "Check that registry.url names the registry that the producer used, "
                "and that the schema was not deleted permanently.",
            )
        return self._remember(schema_id, found)

    def latest(self, subject: str) -> RegisteredSchema | None:
        """None when the subject has no version."""
        # Not get_latest_version: the client would remember the first answer for good.
        found: Any = self._ask(lambda: self._client.get_version(subject, "latest"), f"subject '{subject}'")
        if found is None:
            return None
        with self._lock:
            known = self._known.get(found.schema_id)
        return known or self._remember(found.schema_id, found.schema)

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
        references: dict[tuple[str, int], ReferencedSchema] = {}
        self._gather(schema_id, found, references, frozenset())
        if found.schema_type != SchemaType.AVRO:
            kind = SchemaType(found.schema_type)
            return RegisteredSchema(schema_id, kind, found.schema_str, tuple(references.values()))
        try:
            text = inlined(found.schema_str, [reference.text for reference in references.values()])
        except MalformedAvro as error:
            raise UnsupportedSchema(
                f"Schema {schema_id} cannot be put together: {error}.", "Register it with its references."
            ) from error
        return RegisteredSchema(schema_id, SchemaType.AVRO, text)

    def _gather(
        self,
        schema_id: int,
        schema: Any,
        references: dict[tuple[str, int], ReferencedSchema],
        above: frozenset[tuple[str, int]],
    ) -> None:
        for reference in schema.references or ():
            target = (reference.subject, reference.version)
            if target in references or target in above:
                continue
            what = f"subject '{target[0]}' version {target[1]}"
            found: Any = self._ask(partial(self._client.get_version, *target, deleted=True), what)
            if found is None:
                raise NotFound(
                    f"Schema {schema_id} refers to {what}, which is not in the registry at {self._shown}.",
                    "Register that version again.",
                )
            self._gather(schema_id, found.schema, references, above | {target})
            references[target] = ReferencedSchema(reference.name, found.schema.schema_str)

    def _ask(self, call: Callable[[], _T], what: str) -> _T | None:
        """None when the registry says that there is no such thing."""
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
            return ConfigError(said, "Put the user and password into registry.url.")
        if status == 404:
            return NotFound(said, "Check that registry.url is the address of a schema registry.")
        return ConfigError(said, "Check registry.url.")


def _without_password(url: str) -> str:
    """For messages: a URL may carry credentials."""
    return ",".join(_shown(one.strip()) for one in url.split(","))


def _shown(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
