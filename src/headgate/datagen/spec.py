"""What a generator is to make: a scenario with all that is said of it."""

from dataclasses import asdict, dataclass
from typing import Any, Self

from headgate.datagen.formats import Format
from headgate.datagen.hotels import Hotels
from headgate.datagen.orders import Orders
from headgate.datagen.pace import check_pace
from headgate.datagen.sales import Sales
from headgate.datagen.seeded import Seeded
from headgate.datagen.shares import Shares
from headgate.datagen.times import START_MS
from headgate.errors import InvalidRequest

SCENARIOS: dict[str, type[Seeded]] = {kind.name: kind for kind in (Orders, Hotels, Sales)}


@dataclass(frozen=True)
class GeneratorSpec:
    """The same one makes the same records."""

    scenario: str
    limit: int | None = None
    seed: int = 1
    prefix: str = ""
    cdc: bool = False
    format: Format = Format.AVRO
    start_ms: int = START_MS
    rate: float | None = None
    speed: float | None = None
    evolve_after: int | None = None
    late_share: float = 0.0
    duplicate_share: float = 0.0

    def made(self) -> Seeded:
        """The scenario; InvalidRequest where there can be no such one."""
        if self.scenario not in SCENARIOS:
            raise InvalidRequest(
                f"'{self.scenario}' is no scenario.", f"There are {', '.join(sorted(SCENARIOS))}."
            )
        if self.limit is not None and self.limit < 1:
            raise InvalidRequest(f"{self.limit} is no limit.", "Choose one above 0, or none.")
        if self.cdc and self.format is Format.PROTOBUF:
            raise InvalidRequest("Debezium writes no Protobuf.", "Choose avro or json for change events.")
        check_pace(self.rate, self.speed)
        return SCENARIOS[self.scenario](
            self.seed,
            self.cdc,
            start_ms=self.start_ms,
            evolve_after=self.evolve_after,
            shares=Shares(self.late_share, self.duplicate_share),
        )

    def topics(self) -> list[str]:
        """The topics that it writes."""
        return [self.prefix + topic for topic in self.made().schemas]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, raw: dict[str, Any]) -> Self:
        return cls(**raw | {"format": Format(raw["format"])})
