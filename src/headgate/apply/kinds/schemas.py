"""Schemas by subject. Another text is the subject's next version."""

import json
from typing import Any

from headgate.apply.kinds.kind import Kind
from headgate.apply.model import Change, Difference, Live, Owner, Spec
from headgate.errors import InvalidRequest


def text_of(spec: Spec) -> str:
    """The schema as the registry takes it."""
    schema = spec["schema"]
    return schema if isinstance(schema, str) else json.dumps(schema)


def content(kind: str, text: str) -> Any:
    """What tells one schema from another: JSON without its blanks, or the text."""
    return text.strip() if kind == "protobuf" else json.loads(text)


class Schemas(Kind):
    name = "schemas"
    holds = "the schema by which its topic's records are read"

    def check(self, name: str, spec: Spec) -> None:
        try:
            content(spec["type"], text_of(spec))
        except ValueError as error:
            raise InvalidRequest(f"The schema of subject '{name}' is no JSON: {error}.") from error

    def difference(self, name: str, spec: Spec, live: Live, owner: Owner | None) -> Difference | None:
        wanted, there = spec["type"], live.spec["type"]
        if wanted == there and content(wanted, text_of(spec)) == content(there, text_of(live.spec)):
            return None
        changes = [Change("type", there, wanted)] if wanted != there else []
        return Difference((*changes, Change("schema", text_of(live.spec), text_of(spec))))
