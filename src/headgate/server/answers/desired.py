"""Desired state: plans, what runs as a file says it, and what worlds have made."""

from typing import Literal

from pydantic import JsonValue

from headgate.model import TableState
from headgate.server.answers.shape import Shape
from headgate.server.answers.status import AddressesAnswer


class ChangeAnswer(Shape):
    """A field that changes."""

    field: str
    before: JsonValue
    after: JsonValue


class _Step(Shape):
    kind: str
    name: str
    why: str
    asks: str


class CreateStepAnswer(_Step):
    """Something is made."""

    action: Literal["create"]
    spec: dict[str, JsonValue]
    keeps: str
    at: str


class ChangeStepAnswer(_Step):
    """Something is changed where it is."""

    action: Literal["change"]
    changes: list[ChangeAnswer]
    keeps: str
    at: str


class ReplaceStepAnswer(_Step):
    """Something is removed and made again."""

    action: Literal["replace"]
    changes: list[ChangeAnswer]
    lost: str
    at: str


class RemoveStepAnswer(_Step):
    """Something is removed."""

    action: Literal["remove"]
    lost: str


class ReleaseStepAnswer(_Step):
    """Something is nobody's from now on."""

    action: Literal["release"]


class PlanAnswer(Shape):
    """What apply would do. `asks` of a step is what somebody must agree to."""

    id: str
    world: str | None
    steps: list[
        CreateStepAnswer | ChangeStepAnswer | ReplaceStepAnswer | RemoveStepAnswer | ReleaseStepAnswer
    ]
    notes: list[str]


class WorldTableAnswer(Shape):
    """A table that a world has made."""

    name: str
    state: TableState
    rows: int | None
    formats: list[str]
    location: str | None


class WorldAnswer(Shape):
    """What a world has made, and where it is."""

    world: str
    cluster: str
    warehouse: str | None
    addresses: AddressesAnswer
    topics: list[str]
    statements: list[str]
    tables: list[WorldTableAnswer]
    storage: list[str]
    catalogs: list[str]
    generators: list[str]


# What runs now, as a file says it: by kind and name, and the world's name.
DumpAnswer = dict[str, str | dict[str, dict[str, JsonValue]]]
