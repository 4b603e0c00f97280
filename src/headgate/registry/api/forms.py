"""Other forms of a schema's text than the stored one, for `?format=`."""

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
        return service.serialized(schema)
    raise unprocessable(f"Format '{form}' of a schema of type {schema.type.value} is not supported.")
