"""Random schemas, random values written by fastavro, and random damage.

The reader and a second reading of the bytes in plain Python agree on what is exact and on every value.
"""

import json
import os
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from tests.integration.decode.avro_oracle import Wrong, columns_of, name_of
from tests.integration.decode.avro_reading import encoded, read_all

SOAK = os.environ.get("HEADGATE_SOAK") == "1"
EXAMPLES, SCHEMAS = (60, 12) if SOAK else (3, 6)
INT = st.integers(-(2**31), 2**31 - 1)
LONG = st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(-100, 100))
MILLIS = st.integers(-(2**63 - 1) // 1000, (2**63 - 1) // 1000)


class Names:
    """Named types have names of their own."""

    def __init__(self) -> None:
        self.count = 0

    def new(self) -> str:
        self.count += 1
        return f"T{self.count}"


def logical(kind: str, logical_type: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": logical_type, **more}


@st.composite
def leaves(draw: st.DrawFn, names: Names) -> Any:
    kind = draw(st.integers(0, 5))
    if kind == 0:
        precision = draw(st.integers(1, 38))
        return logical("bytes", "decimal", precision=precision, scale=draw(st.integers(0, precision)))
    if kind == 1:
        precision = draw(st.integers(1, 38))
        size = draw(st.integers((precision * 10 // 3 + 9) // 8 + 1, 20))
        digits = {"precision": precision, "scale": draw(st.integers(0, precision))}
        return logical("fixed", "decimal", name=names.new(), size=size, **digits)
    if kind == 2:
        symbols = [f"S{number}" for number in range(draw(st.integers(1, 4)))]
        return {"type": "enum", "name": names.new(), "symbols": symbols}
    if kind == 3:
        size, name = draw(st.sampled_from([(16, "uuid"), (12, "duration"), (3, "")]))
        return logical("fixed", name, name=names.new(), size=size)
    if kind == 4:
        return draw(
            st.sampled_from(
                [
                    logical("int", "date"),
                    logical("int", "time-millis"),
                    logical("long", "timestamp-millis"),
                    logical("long", "timestamp-micros"),
                    logical("long", "local-timestamp-millis"),
                    logical("long", "local-timestamp-micros"),
                    logical("long", "timestamp-nanos"),
                    logical("long", "time-micros"),
                    {"type": "string", "avro.java.string": "String"},
                ]
            )
        )
    return draw(st.sampled_from(["boolean", "int", "long", "float", "double", "bytes", "string"]))


@st.composite
def schemas(draw: st.DrawFn, names: Names, depth: int = 0) -> Any:
    kind = draw(st.integers(0, 8 if depth < 3 else 3))
    if kind <= 3:
        return draw(leaves(names))
    if kind == 4:
        return {"type": "array", "items": draw(schemas(names, depth + 1))}
    if kind == 5:
        return {"type": "map", "values": draw(schemas(names, depth + 1))}
    if kind == 6:
        return draw(records(names, depth + 1))
    branches = {}
    for _ in range(1 if kind == 7 else draw(st.integers(2, 4))):
        branch = draw(schemas(names, depth + 1))
        if not isinstance(branch, list):
            branches[name_of(branch)] = branch
    found = list(branches.values()) or ["int"]
    if kind == 7 or draw(st.booleans()):
        found.insert(draw(st.integers(0, len(found))), "null")
    return found


@st.composite
def records(draw: st.DrawFn, names: Names, depth: int = 0) -> Any:
    name = names.new()
    count = draw(st.integers(1, 6 if depth == 0 else 3))
    fields = [{"name": f"f{number}", "type": draw(schemas(names, depth))} for number in range(count)]
    return {"type": "record", "name": name, "fields": fields}


def values(schema: Any) -> st.SearchStrategy[Any]:
    """As fastavro takes them: a branch with its name, numbers for what numbers stand for."""
    if isinstance(schema, list):
        return st.one_of(*(_branch(branch) for branch in schema))
    kind = schema if isinstance(schema, str) else schema["type"]
    name = None if isinstance(schema, str) else schema.get("logicalType")
    match kind:
        case "boolean":
            return st.booleans()
        case "int":
            return INT
        case "long":
            return MILLIS if str(name).endswith("timestamp-millis") else LONG
        case "float":
            return st.floats(width=32)
        case "double":
            return st.floats()
        case "bytes" | "fixed" if name == "decimal":
            most = 10 ** schema["precision"] - 1
            return st.integers(-most, most).map(lambda number: _as_bytes(number, schema.get("size")))
        case "bytes":
            return st.binary(max_size=20)
        case "string":
            return st.text(max_size=20)
        case "fixed":
            return st.binary(min_size=schema["size"], max_size=schema["size"])
        case "enum":
            return st.sampled_from(schema["symbols"])
        case "array":
            return st.lists(values(schema["items"]), max_size=3)
        case "map":
            return st.dictionaries(st.text(max_size=5), values(schema["values"]), max_size=3)
    return st.fixed_dictionaries({field["name"]: values(field["type"]) for field in schema["fields"]})


def _branch(branch: Any) -> st.SearchStrategy[Any]:
    if branch == "null":
        return st.none()
    return values(branch).map(lambda value: (name_of(branch), value))


def _as_bytes(number: int, size: int | None) -> bytes:
    return number.to_bytes(size or (number.bit_length() + 8) // 8, "big", signed=True)


@st.composite
def damaged(draw: st.DrawFn, body: bytes) -> bytes:
    at = draw(st.integers(0, max(len(body) - 1, 0)))
    other = bytes([draw(st.integers(0, 255))])
    return draw(
        st.sampled_from(
            [
                body[:at],
                body[:at] + other + body[at + 1 :],
                body[:at] + other + body[at:],
                body[:at] + body[at + 1 :],
                body + other,
            ]
        )
    )


@st.composite
def cases(draw: st.DrawFn) -> list[tuple[Any, list[bytes | None]]]:
    found: list[tuple[Any, list[bytes | None]]] = []
    for _ in range(SCHEMAS):
        schema = draw(records(Names()))
        good = [encoded(schema, value) for value in draw(st.lists(values(schema), min_size=2, max_size=6))]
        bad = [draw(damaged(body)) for body in good for _ in range(3)]
        found.append((schema, [*good, *bad, draw(st.binary(max_size=30))]))
    return found


@pytest.mark.soak
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.function_scoped_fixture,
    ],
)
@given(cases=cases())
def test_random_schemas_values_and_damage(
    spark: SparkSession, cases: list[tuple[Any, list[bytes | None]]]
) -> None:
    for (schema, bodies), found in zip(cases, read_all(spark, cases, as_numbers=True), strict=True):
        for body, one in zip(bodies, found, strict=True):
            assert body is not None
            try:
                expected: Any = columns_of(schema, body)
            except Wrong:
                expected = None
            # As text: what is no number equals nothing, and -0.0 is not 0.0.
            assert repr(one.value) == repr(expected), f"{json.dumps(schema)} {body.hex()}"
            assert one.exact == (expected is not None)
