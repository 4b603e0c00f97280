"""Schemas that tests share, and how a refusal is expected."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema, SchemaReference
from confluent_kafka.schema_registry.error import SchemaRegistryError


def record_text(*fields: dict[str, Any], name: str = "Order", namespace: str = "shop") -> str:
    return json.dumps({"type": "record", "name": name, "namespace": namespace, "fields": list(fields)})


def field(name: str, kind: Any = "string", **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, **more}


def avro(*fields: dict[str, Any], **named: str) -> Schema:
    return Schema(record_text(*fields, **named), "AVRO")


def referring(text: str, references: Sequence[tuple[str, str, int]], kind: str = "AVRO") -> Schema:
    return Schema(
        text, kind, [SchemaReference(name, subject, version) for name, subject, version in references]
    )


def unique(name: str) -> Schema:
    """A schema that no other test registers: its field bears the test's name."""
    cleaned = "".join(c if c.isalnum() else "_" for c in name)
    return avro(field(cleaned))


@contextmanager
def refused(status: int, code: int, *said: str) -> Iterator[None]:
    with pytest.raises(SchemaRegistryError) as caught:
        yield
    assert (caught.value.http_status_code, caught.value.error_code) == (status, code), caught.value
    for words in said:
        assert words in caught.value.error_message
