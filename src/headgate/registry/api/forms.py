"""Other forms of a schema's text than the stored one, for `?format=`."""

import base64
import binascii

from headgate.registry.refusals import unprocessable
from headgate.registry.schemas import Schema, SchemaType
from headgate.registry.service import RegistryService


def text_in(service: RegistryService, schema: Schema, form: str) -> str:
    """The text as stored, or as `form` asks; a form that cannot be given is refused, never ignored."""
    if not form:
        return schema.text
    if schema.type is SchemaType.AVRO and form == "resolved":
        return service.self_contained(schema)
    if schema.type is SchemaType.PROTOBUF and form == "serialized":
        return _serialized(schema)
    raise unprocessable(f"Format '{form}' of a schema of type {schema.type.value} is not supported.")


def _serialized(schema: Schema) -> str:
    """Serializers register a descriptor in base64, and want it back so."""
    try:
        base64.b64decode(schema.text, validate=True)
    except binascii.Error as error:
        raise unprocessable(
            "This Protobuf schema was registered as text, and cannot be served as a serialized descriptor."
        ) from error
    return schema.text
