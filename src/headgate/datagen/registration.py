"""Schemas of a scenario into the schema registry."""

from collections.abc import Mapping

from confluent_kafka.schema_registry import Schema as RegistrySchema
from confluent_kafka.schema_registry.common._httpx_compat import httpx
from confluent_kafka.schema_registry.error import SchemaRegistryError

from headgate.datagen.formats import RegisteredSchema
from headgate.errors import ConfigError, HeadgateError, InvalidRequest, RegistryUnavailable
from headgate.kafka.registry import RegistryAccess

TIMEOUT_SECONDS = 10


def register(where: RegistryAccess | str, schemas: Mapping[str, RegisteredSchema]) -> dict[str, int]:
    """The id of each subject's schema; the same one if it was registered before."""
    client = RegistryAccess.at(where).client(TIMEOUT_SECONDS, retries=2)
    try:
        found = {}
        for subject, schema in schemas.items():
            try:
                found[subject] = client.register_schema(subject, RegistrySchema(schema.text, schema.type))
            except SchemaRegistryError as error:
                raise _refusal(error, subject) from error
        return found
    except httpx.TransportError as error:
        reason = str(error) or type(error).__name__
        raise RegistryUnavailable(f"The schema registry does not answer: {reason}.") from error
    finally:
        client.close()


def _refusal(error: SchemaRegistryError, subject: str) -> HeadgateError:
    status = error.http_status_code
    words = f"The schema registry answered {status} for subject '{subject}': {error.error_message}"
    if status >= 500 or status in (408, 429):
        return RegistryUnavailable(words)
    if status in (401, 403):
        return ConfigError(words, "Check registry.auth.")
    if status == 409:
        return InvalidRequest(words, "Another kind of data is in that topic: choose others with --prefix.")
    return InvalidRequest(words)
