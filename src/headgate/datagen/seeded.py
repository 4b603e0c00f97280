"""What all scenarios have in common: a seed that everything follows from, and values in Avro."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, ClassVar

from headgate.datagen.avro import compile_schema, wire_header
from headgate.datagen.debezium import envelope_schema, key_schema
from headgate.datagen.evolve import Evolution, Row, evolved
from headgate.datagen.scenario import Record, Schema
from headgate.datagen.shares import NO_SHARES, Shares
from headgate.datagen.times import START_MS
from headgate.errors import InvalidRequest

GREATEST_SEED = 9_000_000_000
LATEST_START_MS = 7_258_118_400_000  # 2200-01-01T00:00:00Z


class Seeded(ABC):
    name: str
    counted: str
    #: Of the class those of rows; of an object those of what is in the topics.
    schemas: Mapping[str, Schema]
    #: The database that rows of a topic are in, and the column that is their key, where changes can be told.
    database: ClassVar[str] = ""
    keys: ClassVar[Mapping[str, str]] = {}

    #: The topics of what happens, as opposed to those of what there is: their records may be late.
    happenings: ClassVar[frozenset[str]]
    #: What becomes of the schemas of rows when they change.
    evolutions: ClassVar[Mapping[str, Evolution]]

    def __init__(
        self,
        seed: int = 1,
        cdc: bool = False,
        *,
        start_ms: int = START_MS,
        evolve_after: int | None = None,
        shares: Shares = NO_SHARES,
    ) -> None:
        """`cdc`: the topics of `keys` hold Debezium's change events, and rows are updated and deleted.
        `evolve_after` so many records of the counted topic, schemas change."""
        if not 0 <= seed <= GREATEST_SEED:
            raise InvalidRequest(f"{seed} is no seed.", f"Choose one from 0 to {GREATEST_SEED}.")
        if cdc and not self.keys:
            raise InvalidRequest(
                f"The scenario '{self.name}' has no database whose changes could be captured.",
                "Leave --cdc out, or choose orders or hotels.",
            )
        if not 0 <= start_ms <= LATEST_START_MS:
            raise InvalidRequest("A scenario starts between 1970 and 2200.", "Choose another start.")
        if evolve_after is not None and evolve_after < 0:
            raise InvalidRequest(f"Schemas cannot change after {evolve_after} {self.counted}.")
        self.seed, self.cdc, self.start_ms = seed, cdc, start_ms
        self._evolve_after, self._shares = evolve_after, shares
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
        records = self._tell(limit)
        if self._evolve_after is not None:
            records = evolved(records, self.counted, self._evolve_after, self._later)
        return self._shares.applied(records, self.happenings, self.seed) if self._shares else records

    def later_schemas(self, renames: bool = True) -> Mapping[str, Schema]:
        later: dict[str, Schema] = {}
        for topic, row in type(self).schemas.items():
            evolution = self.evolutions.get(topic)
            schema = row if evolution is None else evolution.schema(row, renames)
            captured = topic in self.key_schemas
            later[topic] = envelope_schema(self.database, topic, schema) if captured else schema
        return later

    def _later(self, topic: str, value: Row) -> Row:
        evolution = self.evolutions.get(topic)
        if evolution is None or not value:
            return value
        if topic not in self.key_schemas:
            return evolution.row(value)
        images = {name: value[name] for name in ("before", "after") if value[name] is not None}
        return value | {name: evolution.row(row) for name, row in images.items()}

    def encode(self, record: Record, schema_id: int) -> bytes:
        if not record.value:
            return b""
        return wire_header(schema_id) + self._encoders[record.version][record.topic](record.value)

    @abstractmethod
    def _tell(self, limit: int | None) -> Iterator[Record]:
        """The story from its beginning."""

    @cached_property
    def _encoders(self) -> list[dict[str, Callable[[Any], bytes]]]:
        """By version, by topic."""
        return [
            {topic: compile_schema(schema) for topic, schema in schemas.items()}
            for schemas in (self.schemas, self.later_schemas())
        ]
