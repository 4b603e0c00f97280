"""What is sent as it happens: how all stands, what needs somebody, and figures of the last hour."""

from typing import Literal

from pydantic import Field, JsonValue

from headgate.server.answers.shape import Shape
from headgate.store import IntegrationState, RunState


class ActionAnswer(Shape):
    """A request that mends something; `confirm` is a name to be typed before, as records are given up."""

    label: str
    method: Literal["POST", "PATCH"]
    path: str
    body: dict[str, JsonValue] | None
    confirm: str | None


class AttentionAnswer(Shape):
    """Something that needs somebody. An action is there where there is one that its reader may take."""

    kind: Literal["table", "statement", "process", "catalog", "export"]
    name: str
    state: str
    since: float | None
    reason: str
    remedy: str
    action: ActionAnswer | None


class CatalogStandingAnswer(Shape):
    """An outside catalog, and how many tables stand how in it."""

    name: str
    kind: str
    state: IntegrationState
    reason: str
    since: float
    tables: dict[str, int]


class LastRunAnswer(Shape):
    """The run of an export that ended last."""

    id: str
    state: RunState
    reason: str
    ended_at: float | None
    rows: int | None
    bytes: int | None


class ExportStandingAnswer(Shape):
    """An export, and how many of its runs are in which state."""

    name: str
    paused: bool
    runs: dict[str, int]
    last: LastRunAnswer | None


class FiguresAnswer(Shape):
    """Rows a second, offsets that are still to be read, and for how many seconds a record has been waiting;
    null where it is not known."""

    rate: float | None
    lag: int | None
    freshness: float | None


class SampleAnswer(Shape):
    """One moment's figures: in total, and by name. The total of a freshness is the worst."""

    at: float = Field(description="Seconds since 1970.")
    total: FiguresAnswer
    tables: dict[str, FiguresAnswer]
    statements: dict[str, FiguresAnswer]
