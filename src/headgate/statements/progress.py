"""What Spark says of a batch, in our words."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from headgate.statements.scan import AHEAD, BAD, ROWS, WITHOUT_ROW

# What Spark calls its operators.
_GROUPING = frozenset({"stateStoreSave", "sessionWindowStateStoreSaveExec"})
_JOINING = frozenset({"symmetricHashJoin"})
_TOPIC = re.compile(r"Subscribe\[([^\]]*)\]")


@dataclass(frozen=True)
class Progress:
    """As of the last batch."""

    batch: int
    seconds: float
    watermark_ms: int | None
    offsets: Mapping[str, Mapping[int, int]]
    #: By topic and partition: offsets that were there and not read yet.
    behind: Mapping[str, Mapping[int, int]]
    state_rows: int
    state_bytes: int
    #: Of these, what aggregates and joins keep.
    grouped_rows: int = 0
    joined_rows: int = 0

    @classmethod
    def of(cls, told: Mapping[str, Any], before: "Progress | None" = None) -> "Progress":
        """Where nothing ran, the batch is the one before."""
        offsets: dict[str, dict[int, int]] = {}
        behind: dict[str, dict[int, int]] = {}
        for source in told["sources"]:
            topic = _topic(source)
            ends, latest = _offsets(source["endOffset"], topic), _offsets(source["latestOffset"], topic)
            waiting = {p: max(0, latest.get(p, end) - end) for p, end in ends.items()}
            if topic in offsets:
                # Read twice: the reading that is behind counts.
                other = offsets[topic]
                ends = {p: min(other[p], end) for p, end in ends.items() if p in other}
                waiting = behind[topic] | {p: max(behind[topic].get(p, 0), n) for p, n in waiting.items()}
            offsets[topic], behind[topic] = ends, waiting
        operators = told.get("stateOperators") or []
        batch, seconds = told["batchId"], told["durationMs"].get("triggerExecution", 0) / 1000
        if not ran(told):
            batch, seconds = (batch - 1, 0.0) if before is None else (before.batch, before.seconds)
        return cls(
            batch=batch,
            seconds=seconds,
            watermark_ms=_millis((told.get("eventTime") or {}).get("watermark")),
            offsets=offsets,
            behind=behind,
            state_rows=sum(operator["numRowsTotal"] for operator in operators),
            state_bytes=sum(operator["memoryUsedBytes"] for operator in operators),
            grouped_rows=_rows_of(operators, _GROUPING),
            joined_rows=_rows_of(operators, _JOINING),
        )

    @classmethod
    def together(cls, steps: "Sequence[Progress]") -> "Progress":
        """Of several queries that are one statement, in order: the one that is behind counts."""
        offsets: dict[str, dict[int, int]] = {}
        behind: dict[str, dict[int, int]] = {}
        for step in steps:
            for topic, ends in step.offsets.items():
                known = offsets.setdefault(topic, {})
                known |= {p: min(known.get(p, end), end) for p, end in ends.items()}
            for topic, waiting in step.behind.items():
                late = behind.setdefault(topic, {})
                late |= {p: max(late.get(p, 0), count) for p, count in waiting.items()}
        times = [step.watermark_ms for step in steps if step.watermark_ms is not None]
        return cls(
            batch=steps[-1].batch,
            seconds=max(step.seconds for step in steps),
            watermark_ms=min(times, default=None),
            offsets=offsets,
            behind=behind,
            state_rows=sum(step.state_rows for step in steps),
            state_bytes=sum(step.state_bytes for step in steps),
            grouped_rows=sum(step.grouped_rows for step in steps),
            joined_rows=sum(step.joined_rows for step in steps),
        )

    @property
    def lag(self) -> int:
        return sum(sum(partitions.values()) for partitions in self.behind.values())


@dataclass
class Totals:
    """Since the statement was made. A batch that is tried again may count twice here; it is written once."""

    batches: int = 0
    rows_in: int = 0
    rows_out: int = 0
    #: Rows that came behind the watermark and were left out, for each window that they were left out of.
    late_rows: int = 0
    bad_rows: int = 0
    #: Change events without an after-image, where after-images are the rows.
    events_without_row: int = 0
    #: Rows more than an hour ahead of the wall clock: they are read, and move no event time.
    ahead_rows: int = 0

    def add(
        self,
        told: Mapping[str, Any],
        scans: Iterable[Mapping[str, Any]],
        out: Mapping[str, Any] | None,
        late: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        """`out` is None for a batch whose rows stay within the statement; `late` has the rows that came too
        late for aggregates of what is read, which have gathered them when their operators count."""
        for seen in scans:
            self.rows_in += seen.get(ROWS) or 0
            self.bad_rows += seen.get(BAD) or 0
            self.events_without_row += seen.get(WITHOUT_ROW) or 0
            self.ahead_rows += seen.get(AHEAD) or 0
        if out is not None:
            self.batches += 1
            self.rows_out += out.get(ROWS) or 0
        self.late_rows += _late_rows(told.get("stateOperators") or (), late)

    def to_dict(self) -> dict[str, int]:
        return asdict(self)

    @classmethod
    def from_dict(cls, known: Mapping[str, Any]) -> "Totals":
        return cls(**{name: int(known.get(name) or 0) for name in cls.__dataclass_fields__})


def ran(told: Mapping[str, Any]) -> bool:
    """Whether a batch was done, or the query only says that it waits."""
    return "addBatch" in told["durationMs"]


def _late_rows(operators: Sequence[Mapping[str, Any]], counted: Sequence[Mapping[str, Any]]) -> int:
    """What was left out: of aggregates of what is read, which come last, the rows and not the groups."""
    rows = groups = others = 0
    left = len(counted)
    for operator in reversed(operators):
        dropped = operator.get("numRowsDroppedByWatermark") or 0
        if left and operator.get("operatorName") in _GROUPING:
            groups, left = groups + dropped, left - 1
        else:
            others += dropped
    if groups:
        rows = max(groups, sum(seen.get(ROWS) or 0 for seen in counted))
    return rows + others


def _rows_of(operators: Iterable[Mapping[str, Any]], names: frozenset[str]) -> int:
    return sum(operator["numRowsTotal"] for operator in operators if operator.get("operatorName") in names)


def _topic(source: Mapping[str, Any]) -> str:
    found = _TOPIC.search(source["description"])
    if found is None:
        raise AssertionError(f"{source['description']} is no topic")
    return found[1]


def _offsets(told: Any, topic: str) -> dict[int, int]:
    """Spark says an offset as JSON, or as text that holds JSON."""
    found = json.loads(told) if isinstance(told, str) else told or {}
    return {int(partition): int(offset) for partition, offset in (found.get(topic) or {}).items()}


def _millis(text: str | None) -> int | None:
    """Before there is a watermark, Spark says 1970."""
    if text is None:
        return None
    found = int(datetime.fromisoformat(text).timestamp() * 1000)
    return found or None
