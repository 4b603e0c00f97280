"""Random schemas, random values and random damage: the reader and a second reading in plain Python agree."""

import json
import math
import os
import random
import struct
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from headgate.decode.json_schema import JsonSchemaReader
from tests.integration.decode.json_oracle import Document, Wrong, parsed, plain, value_of
from tests.integration.decode.json_reading import read

SOAK = os.environ.get("HEADGATE_SOAK") == "1"
EXAMPLES, VALUES = (60, 40) if SOAK else (2, 25)
pytestmark = pytest.mark.soak

TEXTS = st.one_of(
    st.text(max_size=12),
    st.sampled_from(
        ["", "5", "-1.5e3", "true", "null", "{}", "[1]", ":", '":', '": null', "\\", '"', "\\ud800"]
    ),
)
LITERALS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.integers().map(str),
    st.integers(-(10**20), 10**20).map(str),
    st.decimals(allow_nan=False, allow_infinity=False, places=6).map(lambda d: format(d, "f")),
    st.from_regex(r"-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,25})?([eE][-+]?[0-9]{1,3})?", fullmatch=True),
)  # fmt: skip
NAMES = st.one_of(
    st.sampled_from(["a", "b", "a.b", "a b", "ä", "`", "'", '"', "value", "end"]), st.text("xyz", min_size=1)
)


class Literal(float):
    """A number that `json.dumps` writes as it is given."""

    def __new__(cls, text: str) -> "Literal":
        made = super().__new__(cls, 0.0)
        made.text = text
        return made

    text: str

    def __repr__(self) -> str:
        return self.text


def leaves() -> st.SearchStrategy[dict[str, Any]]:
    kinds = st.sampled_from(["string", "integer", "number", "boolean"])
    return st.one_of(
        kinds.map(lambda kind: {"type": kind}), st.just({"type": "string", "format": "date"}), st.just({})
    )


def objects(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    properties = st.dictionaries(NAMES, inner, min_size=1, max_size=4).filter(has_names_of_its_own)
    return st.builds(
        lambda found, closed: {
            "type": "object",
            "properties": found,
            **({"additionalProperties": False} if closed else {}),
        },
        properties,
        st.booleans(),
    )


def has_names_of_its_own(properties: dict[str, Any]) -> bool:
    return len({name.lower() for name in properties}) == len(properties)


def schemas() -> st.SearchStrategy[dict[str, Any]]:
    inner = st.recursive(
        leaves(),
        lambda some: st.one_of(
            objects(some),
            some.map(lambda item: {"type": "array", "items": item}),
            some.filter(bool).map(lambda value: {"type": "object", "additionalProperties": value}),
        ),
        max_leaves=6,
    )
    return objects(inner)


def values(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Mostly what the schema says, sometimes something else."""
    return st.one_of(_proper(schema), _proper(schema), _proper(schema), _proper(schema), anything())


def _proper(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    match schema.get("type"):
        case "string" if "format" in schema:
            return st.dates().map(str)
        case "string":
            return TEXTS
        case "integer":
            return st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(-5, 5))
        case "number":
            return st.one_of(st.floats(allow_nan=False, allow_infinity=False), LITERALS.map(Literal))
        case "boolean":
            return st.booleans()
        case "array":
            return st.lists(values(schema["items"]), max_size=3)
        case "object" if "properties" in schema:
            known = {
                name: st.one_of(st.none(), values(inner)) for name, inner in schema["properties"].items()
            }
            others = st.one_of(st.just({}), st.just({}), st.dictionaries(NAMES, anything(), max_size=1))
            return st.builds(
                lambda one, other: {**other, **one}, st.fixed_dictionaries({}, optional=known), others
            )
        case "object":
            return st.dictionaries(TEXTS, values(schema["additionalProperties"]), max_size=3)
    return anything()


def anything() -> st.SearchStrategy[Any]:
    some = st.one_of(st.none(), st.booleans(), LITERALS.map(Literal), TEXTS)
    return st.recursive(
        some,
        lambda few: st.one_of(st.lists(few, max_size=2), st.dictionaries(TEXTS, few, max_size=2)),
        max_leaves=3,
    )


@st.composite
def bodies(draw: st.DrawFn, schema: dict[str, Any]) -> bytes:
    ways = st.sampled_from([(",", ":"), (", ", ": "), (" ,", " :"), (",\n\t", "\r\n:")])
    text = json.dumps(draw(_proper(schema)), separators=draw(ways), ensure_ascii=draw(st.booleans()))
    body = text.encode("utf-8", "surrogatepass")
    if draw(st.integers(0, 3)):
        return body
    at = draw(st.integers(0, len(body)))
    part = draw(
        st.one_of(
            st.binary(max_size=2),
            st.sampled_from([b'"', b"}", b"]", b",", b":", b"1", b"\\", b" ", b'"a":1,']),
        )
    )
    return body[:at] + part + body[at + draw(st.integers(0, 2)) :]


# A smaller example is not worth the many Spark jobs that it takes to find.
@settings(
    max_examples=EXAMPLES,
    derandomize=not SOAK,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
)
@given(data=st.data())
def test_the_reader_and_python_agree(spark: SparkSession, data: st.DataObject) -> None:
    schema = data.draw(schemas())
    found = data.draw(st.lists(bodies(schema), min_size=VALUES, max_size=VALUES))
    marked = {**schema, "documents": True} if has_documents(schema) else schema
    made = JsonSchemaReader(json.dumps(schema))
    for body, one in zip(found, read(spark, made, found), strict=True):
        try:
            expected = value_of(marked, body)
        except Wrong:
            assert not one.exact, (schema, body, one.value)
            assert one.problem, (schema, body)
        else:
            assert one.exact, (schema, body, one.problem)
            assert comparable(schema, one.value) == comparable(schema, expected), (schema, body)


def has_documents(schema: dict[str, Any]) -> bool:
    inner = [*schema.get("properties", {}).values(), schema.get("items"), schema.get("additionalProperties")]
    return not schema or any(has_documents(one) for one in inner if isinstance(one, dict))


def comparable(schema: dict[str, Any], value: Any) -> Any:
    """Texts of documents as what they say, and floats with their sign."""
    if value is None:
        return None
    match schema.get("type"):
        case None:
            return plain(value.value) if isinstance(value, Document) else parsed(value)
        case "number":
            return repr(float(value))
        case "array":
            return [comparable(schema["items"], item) for item in value]
        case "object" if "properties" in schema:
            return {key: comparable(schema["properties"][key], item) for key, item in value.items()}
        case "object":
            return {key: comparable(schema["additionalProperties"], item) for key, item in value}
    return value


def test_every_double_that_python_prints_is_exact(spark: SparkSession) -> None:
    """Java 17 prints some of them with other digits."""
    bits = random.Random(4)
    count = 20_000 if SOAK else 2_000
    drawn = (struct.unpack("<d", bits.randbytes(8))[0] for _ in range(count))
    doubles = [one for one in drawn if math.isfinite(one)]
    doubles += [2.0**power for power in range(-1074, 1024, 3)]
    doubles += [bits.uniform(-1, 1) * 10.0**power for power in range(-320, 300)]
    made = JsonSchemaReader('{"type":"object","properties":{"d":{"type":"number"}}}')
    found = read(spark, made, [b'{"d":%s}' % repr(one).encode() for one in doubles])
    assert [repr(one) for one, got in zip(doubles, found, strict=True) if not got.exact] == []
    assert [repr(got.value["d"]) for got in found if got.value] == [repr(one) for one in doubles]
