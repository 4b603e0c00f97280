"""Avro messages become columns: exact, or not at all."""

import json
import secrets
from types import MappingProxyType
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as f
from pyspark.sql import types as t

from headgate.decode import avro_part as part
from headgate.decode.avro_column import from_avro
from headgate.decode.avro_schema import read_schema
from headgate.decode.reader import Reader

_OPTIONS = {
    # Bytes that do not fit give a record of nulls.
    "mode": "PERMISSIVE",
    # Dates are taken as they are written, whatever the session says of old calendars.
    "datetimeRebaseMode": "CORRECTED",
}
# Put behind each message and decoded as its last field: a message that is cut short or goes on after its end
# does not meet it there. Nobody can write it into a message on purpose, since it is new in each process.
_END = 2**61 + secrets.randbelow(2**61)


class AvroReader(Reader):
    """Reads with `from_avro`, by a shadow of the writer's schema (see `avro_part`)."""

    def __init__(self, schema_text: str, column: str = "value") -> None:
        """`column` is the name of the only column where messages are no records."""
        message = read_schema(schema_text, column)
        self._message = message.part
        self._column = column
        self._fields = message.fields
        self.record_name = message.record_name
        self.former_names = MappingProxyType(dict(message.former_names))
        self.type = self._columns()
        self._end = self._free_name()
        self._shadow = json.dumps(self._shadow_record())
        self._checks = self._all_checks()

    def raw(self, body: Column) -> Column:
        return from_avro(f.concat(body, f.lit(_varint(_END))), self._shadow, _OPTIONS)

    def is_exact(self, raw: Column, body: Column) -> Column:
        ended = f.coalesce(raw[self._end] == f.lit(_END), f.lit(False))
        return part.every([ended, *(check.holds(raw) for check in self._checks)])

    def value(self, raw: Column) -> Column:
        if self._fields is not None:
            return part.struct_of(raw, self._fields)
        found = self._message.value(raw["message"])
        match self._message.shape:
            case "record":
                return found
            case "union":
                # A message that is null is a row whose branches are all NULL.
                nothing = (f.lit(None).cast(field.dataType).alias(field.name) for field in self.type.fields)
                return f.coalesce(found, f.struct(*nothing))
        return f.struct(found.alias(self._column))

    def field(self, raw: Column, *path: str) -> Column:
        if self._fields is None:
            return super().field(raw, *path)
        found = part.field_of(raw, self._fields, path[0])
        for name in path[1:]:
            found = found[name]
        return found

    def problem(self, raw: Column, body: Column) -> Column | None:
        end = raw[self._end]
        found = f.when(end.isNull(), "does not decode: its bytes are cut short or of another schema")
        found = found.when(end != f.lit(_END), "has bytes after its end, or was cut short")
        for check in self._checks:
            found = found.when(~check.holds(raw), check.problem)
        return found

    def _columns(self) -> t.StructType:
        kind = self._message.type
        if self._message.shape == "value":
            return t.StructType([t.StructField(self._column, kind)])
        assert isinstance(kind, t.StructType)
        return kind

    def _free_name(self) -> str:
        """A name for the end that no field has."""
        taken = {field["name"].lower() for field in self._shadow_fields()}
        name = "end"
        while name in taken:
            name += "_"
        return name

    def _shadow_fields(self) -> list[dict[str, Any]]:
        if self._fields is not None:
            return part.shadow_fields(self._fields)
        return [{"name": "message", "type": self._message.shadow}]

    def _shadow_record(self) -> dict[str, Any]:
        fields = [*self._shadow_fields(), {"name": self._end, "type": "long"}]
        return {"type": "record", "name": "message_and_end", "fields": fields}

    def _all_checks(self) -> tuple[part.Check, ...]:
        if self._fields is not None:
            return self._message.checks
        checks = part.inside(self._message.checks, "message")
        if self._message.shape == "record":
            absent = part.Check(lambda raw: raw["message"].isNotNull(), "is null, not a record")
            return (absent, *checks)
        return checks


def _varint(number: int) -> bytes:
    """A number that is not negative, as Avro encodes a long."""
    rest, encoded = number << 1, bytearray()
    while rest > 0x7F:
        encoded.append(rest & 0x7F | 0x80)
        rest >>= 7
    encoded.append(rest)
    return bytes(encoded)
