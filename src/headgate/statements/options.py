"""What can be set for a statement, as it is kept in its record."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from headgate.errors import InvalidRequest


@dataclass(frozen=True)
class StatementOptions:
    """None: as the configuration says."""

    #: How long an input is silent until event time goes on without it.
    idle_seconds: float | None = None
    #: How long all inputs are silent until what has come is closed; None is never.
    idle_flush_seconds: float | None = None
    interval_seconds: float | None = None
    max_rows: int | None = None
    on_bad_record: Literal["fail", "skip"] = "fail"
    #: The stopped statement whose offsets this one begins at.
    initial_offset_from: str | None = None
    #: The last request to close what has come.
    finish: str | None = None
    #: By topic, where to begin: `earliest`, `latest`, or offsets as Spark's source takes them.
    starts: Mapping[str, str] | None = None
    #: How long state without a bound of its own is kept; 0 is for ever.
    state_ttl_ms: int | None = None
    #: The session's zone, when it was made.
    zone: str | None = None
    #: The tables and views as they were when it was made: what is altered later is for later statements.
    tables: Mapping[str, Any] | None = None
    #: Of a statement that ends: by topic its id, and from where to where it is read.
    ends: Mapping[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value is not None}

    @classmethod
    def from_dict(cls, known: Mapping[str, Any]) -> "StatementOptions":
        unknown = [name for name in known if name not in cls.__dataclass_fields__]
        if unknown:
            raise InvalidRequest(
                f"'{unknown[0]}' is no option of a statement.",
                f"There are {', '.join(cls.__dataclass_fields__)}.",
            )
        found = cls(**known)
        if found.on_bad_record not in ("fail", "skip"):
            raise InvalidRequest(
                f"'{found.on_bad_record}' cannot be done with bad records.", "Say fail or skip."
            )
        for name in ("idle_seconds", "idle_flush_seconds", "interval_seconds", "max_rows"):
            value = getattr(found, name)
            if value is not None and not value > 0:
                raise InvalidRequest(f"The option {name} must be more than 0, not {value}.")
        return found
