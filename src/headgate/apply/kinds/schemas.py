"""Schemas by subject. Another text is the subject's next version.

A subject moves on by itself when a producer registers a later schema. A registry gives no second version to
a text that it has, so a file's schema stands as long as it is among the versions.
"""

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


def _versions(live: Live) -> list[Spec]:
    """All versions of a subject, the oldest first."""
    return [*live.detail.get("earlier", ()), live.spec]


def _version_of(spec: Spec, live: Live) -> int | None:
    """Which version of its subject a file's schema is, by its place among them; None where it is none."""
    for number, version in reversed(list(enumerate(_versions(live), 1))):
        if spec["type"] == version["type"]:
            kind = spec["type"]
            if content(kind, text_of(spec)) == content(kind, text_of(version)):
                return number
    return None


class Schemas(Kind):
    name = "schemas"
    holds = "the schema by which its topic's records are read"

    def check(self, name: str, spec: Spec) -> None:
        try:
            content(spec["type"], text_of(spec))
        except ValueError as error:
            raise InvalidRequest(f"The schema of subject '{name}' is no JSON: {error}.") from error

    def note(self, name: str, spec: Spec, live: Live) -> str:
        version, versions = _version_of(spec, live), len(_versions(live))
        if version is None or version == versions:
            return ""
        return f"schema {name} has moved on: that of the file is version {version} of {versions}"

    def difference(self, name: str, spec: Spec, live: Live, owner: Owner | None) -> Difference | None:
        if _version_of(spec, live) is not None:
            return None
        wanted, there = spec["type"], live.spec["type"]
        changes = [Change("type", there, wanted)] if wanted != there else []
        return Difference((*changes, Change("schema", text_of(live.spec), text_of(spec))))
