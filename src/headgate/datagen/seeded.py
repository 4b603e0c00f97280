"""What all scenarios have in common: a seed that everything follows from, and values in Avro."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, ClassVar

from headgate.datagen.avro import compile_schema, wire_header
from headgate.datagen.scenario import Record, Schema
from headgate.errors import InvalidRequest

GREATEST_SEED = 9_000_000_000


class Seeded(ABC):
    name: str
    counted: str
    schemas: ClassVar[Mapping[str, Schema]]

    def __init__(self, seed: int = 1) -> None:
        if not 0 <= seed <= GREATEST_SEED:
            raise InvalidRequest(f"{seed} is no seed.", f"Choose one from 0 to {GREATEST_SEED}.")
        self.seed = seed

    def records(self, limit: int | None = None) -> Iterator[Record]:
        if limit is not None and limit < 0:
            raise InvalidRequest(f"There cannot be {limit} {self.counted}.")
        return self._tell(limit)

    def encode(self, record: Record, schema_id: int) -> bytes:
        return wire_header(schema_id) + self._encoders[record.topic](record.value)

    @abstractmethod
    def _tell(self, limit: int | None) -> Iterator[Record]:
        """The story from its beginning."""

    @cached_property
    def _encoders(self) -> dict[str, Callable[[Any], bytes]]:
        return {topic: compile_schema(schema) for topic, schema in self.schemas.items()}
