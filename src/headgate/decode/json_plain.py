"""Messages that no registry knows: JSON with declared columns, JSON as one column, Kafka Connect's own JSON
with the schema in each message, texts and bytes."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from pyspark.sql import Column
from pyspark.sql import functions as f
from pyspark.sql import types as t

from headgate.decode.connect import CONNECT_DECIMAL, decimal_type
from headgate.decode.json_document import (
    Document,
    Entries,
    Exact,
    Flag,
    Items,
    JsonDocumentReader,
    Node,
    Real,
    Record,
    Text,
    Whole,
    column_type,
    is_valid,
    parsed,
)
from headgate.decode.json_schema import (
    BYTES,
    DATE,
    INSTANT,
    LOCAL_TIMESTAMP,
    named,
    record_of,
    refused,
)
from headgate.decode.reader import Reader
from headgate.errors import InvalidRequest, UnsupportedSchema

_WORDS: Mapping[str, t.DataType] = {
    "boolean": t.BooleanType(),
    "int": t.IntegerType(),
    "integer": t.IntegerType(),
    "bigint": t.LongType(),
    "long": t.LongType(),
    "float": t.FloatType(),
    "real": t.FloatType(),
    "double": t.DoubleType(),
    "string": t.StringType(),
    "binary": t.BinaryType(),
    "date": t.DateType(),
    "timestamp": t.TimestampType(),
    "timestamp_ltz": t.TimestampType(),
    "timestamp_ntz": t.TimestampNTZType(),
    "variant": t.VariantType(),
}
_NODES: Mapping[t.DataType, Node] = {
    t.BooleanType(): Flag(),
    t.IntegerType(): Whole(32),
    t.LongType(): Whole(),
    t.FloatType(): Real(single=True),
    t.DoubleType(): Real(),
    t.StringType(): Text(),
    t.BinaryType(): BYTES,
    t.DateType(): DATE,
    t.TimestampType(): INSTANT,
    t.TimestampNTZType(): LOCAL_TIMESTAMP,
    t.VariantType(): Document(variant=True),
}
_CONNECT: Mapping[str, Node] = {
    "boolean": Flag(),
    "int8": Whole(8),
    "int16": Whole(16),
    "int32": Whole(32),
    "int64": Whole(64),
    "float": Real(single=True),
    "double": Real(),
    "string": Text(),
    "bytes": BYTES,
}
_TOKEN = re.compile(r"\s*(?:(`(?:[^`]|``)*`)|([^\s`<>(),:;'\"]+)|([<>(),:]))", re.ASCII)
_MAX_DEPTH = 60
_CONNECT_REMEDY = "Read the topic with declared columns, or as text."


class JsonReader(JsonDocumentReader):
    """JSON objects with declared columns. Keys that no column has are not in the table."""

    def __init__(self, columns: t.StructType) -> None:
        super().__init__(_declared(columns, ""))


class JsonTextReader(Reader):
    """A JSON document of any kind in one column: its text as it is, or a variant."""

    def __init__(self, column: str, kind: Literal["string", "variant"] = "string") -> None:
        self._column = column
        self._variant = JsonDocumentReader(Document(variant=True), column) if kind == "variant" else None
        self.type = _only(column, t.VariantType() if kind == "variant" else t.StringType())

    def raw(self, body: Column) -> Column:
        return body.cast("string") if self._variant is None else self._variant.raw(body)

    def is_exact(self, raw: Column, body: Column) -> Column:
        if self._variant is None:
            return f.coalesce(f.is_valid_utf8(raw) & is_valid(raw), f.lit(False))
        return self._variant.is_exact(raw, body)

    def value(self, raw: Column) -> Column:
        return f.struct(raw.alias(self._column)) if self._variant is None else self._variant.value(raw)

    def problem(self, raw: Column, body: Column) -> Column | None:
        if self._variant is None:
            return f.when(~f.is_valid_utf8(raw), "is not UTF-8 text").otherwise("is not one JSON document")
        return self._variant.problem(raw, body)


class StringReader(Reader):
    """The message is a text."""

    def __init__(self, column: str = "value") -> None:
        self._column = column
        self.type = _only(column, t.StringType())

    def raw(self, body: Column) -> Column:
        return body.cast("string")

    def is_exact(self, raw: Column, body: Column) -> Column:
        return f.coalesce(f.is_valid_utf8(raw), f.lit(False))

    def value(self, raw: Column) -> Column:
        return f.struct(raw.alias(self._column))

    def problem(self, raw: Column, body: Column) -> Column | None:
        return f.lit("is not UTF-8 text")


class BytesReader(Reader):
    """The message as it is."""

    def __init__(self, column: str = "value") -> None:
        self._column = column
        self.type = _only(column, t.BinaryType())

    def raw(self, body: Column) -> Column:
        return body

    def is_exact(self, raw: Column, body: Column) -> Column:
        return body.isNotNull()

    def value(self, raw: Column) -> Column:
        return f.struct(raw.alias(self._column))


class ConnectJsonReader(Reader):
    """`{"schema": …, "payload": …}`, as Kafka Connect's JsonConverter writes with `schemas.enable`.

    `schema` is that of the first message. A message with another one is not exact: its columns may differ.
    `decimals` is the converter's `decimal.format`.
    """

    def __init__(
        self,
        schema: str | Mapping[str, Any],
        column: str = "value",
        decimals: Literal["base64", "numeric"] = "base64",
    ) -> None:
        said = _connect_schema(schema)
        node = _connect(said, "", decimals)
        if not isinstance(node, Record):
            node = _connect(said, column, decimals)
        self._column = None if isinstance(node, Record) else column
        kind = column_type(node)
        self.type = kind if isinstance(kind, t.StructType) and self._column is None else _only(column, kind)
        name = said.get("name")
        self.record_name = name if isinstance(name, str) else None
        self._whole = JsonDocumentReader(Record((("schema", Document()), ("payload", node))))
        text = json.dumps(said, ensure_ascii=False, separators=(",", ":"))
        self._schema_text = text
        self._prefix = f'{{"schema":{text},"payload":'

    def raw(self, body: Column) -> Column:
        return self._whole.raw(self._short(body))

    def is_exact(self, raw: Column, body: Column) -> Column:
        whole = self._whole.is_exact(raw, self._short(body))
        return whole & self._has_schema(raw, body) & self._has_payload(raw)

    def value(self, raw: Column) -> Column:
        payload = self._whole.value(raw)["payload"]
        return payload if self._column is None else f.struct(payload.alias(self._column))

    def field(self, raw: Column, *path: str) -> Column:
        # Where messages are no records, the only column is the payload.
        return self._whole.field(raw, "payload", *(path if self._column is None else path[1:]))

    def problem(self, raw: Column, body: Column) -> Column | None:
        short = self._short(body)
        return (
            f.when(raw["strict"].isNull(), "is not one JSON document without repeated keys")
            .when(~self._has_schema(raw, body), "has another embedded schema than the first message")
            .when(~self._has_payload(raw) & self._whole.is_exact(raw, short), "has no payload")
            .otherwise(self._whole.problem(raw, short))
        )

    def _short(self, body: Column) -> Column:
        """The message without the schema that it begins with, where that is the same to the letter."""
        text = body.cast("string")
        rest = f.substr(text, f.lit(len(self._prefix) + 1))
        return f.when(text.startswith(self._prefix), f.concat(f.lit('{"payload":'), rest)).otherwise(text)

    def _has_schema(self, raw: Column, body: Column) -> Column:
        """The same to the letter, or with its keys in another order."""
        found = parsed(raw)["schema"]
        same = f.to_json(found) == f.to_json(f.try_parse_json(f.lit(self._schema_text)))
        cut = body.cast("string").startswith(self._prefix)
        return f.coalesce(f.when(cut, found.isNull()).otherwise(same), f.lit(False))

    def _has_payload(self, raw: Column) -> Column:
        """A null is a value, but no record."""
        payload = parsed(raw)["payload"]
        return f.coalesce(payload.isNotNull(), f.lit(False)) if self._column is None else f.lit(True)


def parse_columns(ddl: str) -> t.StructType:
    """Columns as they are declared: `id bigint, price decimal(12,2), at struct<city: string>`."""
    return _Columns(ddl).parse()


def _only(column: str, kind: t.DataType) -> t.StructType:
    return t.StructType([t.StructField(column, kind)])


def _declared(kind: t.DataType, path: str) -> Node:
    match kind:
        case t.StructType():
            where = f"{path}." if path else ""
            return record_of([(x.name, _declared(x.dataType, f"{where}{x.name}")) for x in kind.fields], path)
        case t.ArrayType():
            return Items(_declared(kind.elementType, f"{path}[]"))
        case t.MapType(keyType=t.StringType()):
            return Entries(_declared(kind.valueType, f"{path}{{}}"))
        case t.DecimalType():
            return Exact(kind)
    if kind in _NODES:
        return _NODES[kind]
    raise refused(path, f"the type {kind.simpleString()},")


def _connect_schema(schema: str | Mapping[str, Any]) -> dict[str, Any]:
    try:
        said = json.loads(schema) if isinstance(schema, str) else schema
    except (ValueError, RecursionError) as error:
        raise UnsupportedSchema("The embedded schema is not JSON.", _CONNECT_REMEDY) from error
    if not isinstance(said, Mapping) or not isinstance(said.get("type"), str):
        raise UnsupportedSchema("The embedded schema is none of Kafka Connect's.", _CONNECT_REMEDY)
    return dict(said)


def _connect(schema: Mapping[str, Any], path: str, decimals: str) -> Node:
    """What a schema of Connect's JsonConverter says."""
    match schema.get("type"):
        case "struct":
            node = _connect_struct(schema, path, decimals)
        case "array":
            node = Items(_connect(_part(schema, "items", path), f"{path}[]", decimals))
        case "map" if _part(schema, "keys", path).get("type") == "string":
            node = Entries(_connect(_part(schema, "values", path), f"{path}{{}}", decimals))
        case "map":
            # Keys of other types are written as an array of pairs.
            node = Items(Document())
        case str() as kind if kind in _CONNECT:
            node = _CONNECT[kind]
        case kind:
            raise refused(path, f"the type {kind},")
    if schema.get("name") == CONNECT_DECIMAL and decimals == "numeric":
        found = decimal_type({k: str(v) for k, v in (schema.get("parameters") or {}).items()})
        return node if found is None else Exact(found)
    return named(node, schema.get("name"), schema.get("parameters"))


def _connect_struct(schema: Mapping[str, Any], path: str, decimals: str) -> Node:
    fields: Sequence[Mapping[str, Any]] = schema.get("fields") or ()
    if not fields:
        return Document()
    found = []
    for field in fields:
        name = field.get("field")
        if not isinstance(name, str):
            raise refused(path, "a field without a name,")
        found.append((name, _connect(field, f"{path}.{name}" if path else name, decimals)))
    return record_of(found, path)


def _part(schema: Mapping[str, Any], key: str, path: str) -> Mapping[str, Any]:
    part = schema.get(key)
    if not isinstance(part, Mapping):
        raise refused(path, f"a schema without '{key}',")
    return part


class _Columns:
    """A strict parser: what it does not know is an error, with the place where it stands."""

    def __init__(self, ddl: str) -> None:
        self._ddl = ddl
        self._tokens = list(_tokens(ddl))
        self._at = 0

    def parse(self) -> t.StructType:
        found = self._fields(end="", depth=0)
        self._expect("")
        return found

    def _fields(self, end: str, depth: int) -> t.StructType:
        fields: list[t.StructField] = []
        seen: set[str] = set()
        while True:
            name = self._name()
            if name.lower() in seen:
                raise self._nonsense(f"the name '{name}' is there twice")
            seen.add(name.lower())
            if end and self._peek() == ":":
                self._next()
            fields.append(t.StructField(name, self._type(depth)))
            if self._peek() != ",":
                return t.StructType(fields)
            self._next()

    def _type(self, depth: int) -> t.DataType:
        if depth > _MAX_DEPTH:
            raise self._nonsense("the types are nested too deeply")
        word = self._next()
        match word.lower():
            case "decimal" | "numeric":
                return self._decimal()
            case "array":
                self._expect("<")
                item = self._type(depth + 1)
                self._expect(">")
                return t.ArrayType(item)
            case "map":
                return self._map(depth)
            case "struct":
                self._expect("<")
                inner = self._fields(end=">", depth=depth + 1)
                self._expect(">")
                return inner
            case known if known in _WORDS:
                return _WORDS[known]
        raise self._nonsense(f"there is no type '{word}'" if word else "a type is missing at its end")

    def _map(self, depth: int) -> t.DataType:
        self._expect("<")
        key = self._type(depth + 1)
        if not isinstance(key, t.StringType):
            raise self._nonsense("the keys of a map must be string")
        self._expect(",")
        value = self._type(depth + 1)
        self._expect(">")
        return t.MapType(key, value)

    def _decimal(self) -> t.DecimalType:
        self._expect("(")
        precision, scale = self._number(), 0
        if self._peek() == ",":
            self._next()
            scale = self._number()
        self._expect(")")
        if not (0 <= scale <= precision and 0 < precision <= 38):
            raise self._nonsense(f"there is no decimal({precision},{scale}); 38 digits are the most")
        return t.DecimalType(precision, scale)

    def _number(self) -> int:
        text = self._next()
        if not re.fullmatch(r"[0-9]{1,4}", text):
            raise self._nonsense(f"'{text}' is no number of digits")
        return int(text)

    def _name(self) -> str:
        token = self._next()
        if token.startswith("`") and len(token) > 2:
            return token[1:-1].replace("``", "`")
        if re.fullmatch(r"\w+", token):
            return token
        raise self._nonsense(
            f"'{token}' is no column name" if token else "a column name is missing at its end"
        )

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _next(self) -> str:
        token = self._peek()
        self._at += 1
        return token

    def _expect(self, wanted: str) -> None:
        found = self._next()
        if found != wanted:
            raise self._nonsense(
                f"'{found or 'its end'}' is not expected there" + (f", '{wanted}' is" if wanted else "")
            )

    def _nonsense(self, why: str) -> InvalidRequest:
        return _nonsense(self._ddl, why)


def _tokens(ddl: str) -> Iterator[str]:
    at = 0
    text = ddl.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise _nonsense(ddl, f"it does not go on after '{text[:at]}'")
        at = match.end()
        yield match.group().strip() if match.group(1) is None else match.group(1)


def _nonsense(ddl: str, why: str) -> InvalidRequest:
    return InvalidRequest(
        f"The columns '{ddl}' cannot be read: {why}.",
        "Declare them as in 'id bigint, price decimal(12,2), tags array<string>, at struct<city: string>'.",
    )
