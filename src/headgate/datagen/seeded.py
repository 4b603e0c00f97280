"""What all scenarios have in common: a seed that everything follows from, and values in Avro."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, ClassVar

from headgate.datagen.avro import compile_schema, wire_header
from headgate.datagen.debezium import envelope_schema, key_schema
from headgate.datagen.scenario import Record, Schema
from headgate.errors import InvalidRequest

GREATEST_SEED = 9_000_000_000


class Seeded(ABC):
    name: str
    counted: str
    #: Of the class those of rows; of an object those of what is in the topics.
    schemas: Mapping[str, Schema]
    #: The database that rows of a topic are in, and the column that is their key, where changes can be told.
    database: ClassVar[str] = ""
    keys: ClassVar[Mapping[str, str]] = {}

    def __init__(self, seed: int = 1, cdc: bool = False) -> None:
        """`cdc`: the topics of `keys` hold Debezium's change events, and rows are updated and deleted."""
        if not 0 <= seed <= GREATEST_SEED:
            raise InvalidRequest(f"{seed} is no seed.", f"Choose one from 0 to {GREATEST_SEED}.")
        if cdc and not self.keys:
            raise InvalidRequest(
                f"The scenario '{self.name}' has no database whose changes could be captured.",
                "Leave --cdc out, or choose orders or hotels.",
            )
        self.seed, self.cdc = seed, cdc
        captured = self.keys if cdc else {}
        rows = type(self).schemas
        self.schemas = {
            topic: envelope_schema(self.database, topic, row) if topic in captured else row
            for topic, row in rows.items()
        }
        self.key_schemas: Mapping[str, Schema] = {
            topic: key_schema(self.database, topic, rows[topic], key) for topic, key in captured.items()
        }

    def records(self, limit: int | None = None) -> Iterator[Record]:
        if limit is not None and limit < 0:
            raise InvalidRequest(f"There cannot be {limit} {self.counted}.")
        return self._tell(limit)

    def encode(self, record: Record, schema_id: int) -> bytes:
        if not record.value:
            return b""
        return wire_header(schema_id) + self._encoders[record.topic](record.value)

    @abstractmethod
    def _tell(self, limit: int | None) -> Iterator[Record]:
        """The story from its beginning."""

    @cached_property
    def _encoders(self) -> dict[str, Callable[[Any], bytes]]:
        return {topic: compile_schema(schema) for topic, schema in self.schemas.items()}
