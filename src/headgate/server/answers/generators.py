"""Managed generators of made-up data."""

from typing import Literal

from headgate.datagen import GeneratorSpec
from headgate.server.answers.shape import Shape
from headgate.store import GeneratorState


class GeneratorAnswer(Shape):
    """A generator, and the topics that it writes."""

    name: str
    spec: GeneratorSpec
    topics: list[str]
    desired: Literal["running", "stopped"]
    created_at: float
    state: GeneratorState
    reason: str
    since: float
    records: int
    rate: float
    updated_at: float
    is_at_rest: bool
