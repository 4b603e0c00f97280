"""Another broker leads a partition: what a statement has read must still be what its topic has."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from headgate.errors import StatementFailed
from headgate.kafka.offsets import Found
from headgate.model import Topic
from headgate.statements.leaders import Leaders

TOPIC = Topic("orders", "T1", (0, 1))


class Kept:
    """A checkpoint whose batches have read up to 100 in partition 0, and 7 in the other."""

    def __init__(self) -> None:
        self.text: str | None = None
        self.writes = 0
        self.readings = [{"orders": {"0": 100, "1": 7}}]

    def entry(self, batch: int) -> str | None:
        ends = "\n".join(map(json.dumps, self.readings))
        return None if batch < 0 else f'v1\n{{"batchWatermarkMs": 0, "conf": {{}}}}\n{ends}'

    def leaders(self) -> str | None:
        return self.text

    def keep_leaders(self, text: str) -> None:
        self.text, self.writes = text, self.writes + 1


class Broker:
    """Led by the leaders of these epochs; `steps` says who wrote what stands in partition 0."""

    epochs: Mapping[int, int | None] = {0: 5, 1: 5}
    end = 500
    steps: Sequence[tuple[int, int]] = ()
    looks: list[Any]

    def __init__(self, _: Any) -> None:
        self.looks = []

    def ends(self, topics: Any) -> dict[str, dict[int, Found]]:
        return {
            topic.name: {p: Found(self.end, epoch) for p, epoch in self.epochs.items()} for topic in topics
        }

    def earliest(self, topics: Any) -> dict[str, dict[int, int]]:
        return {topic.name: {0: 10, 1: 0} for topic in topics}

    def leader_epochs(self, _: Topic, ranges: Mapping[int, tuple[int, int]]) -> dict[int, Any]:
        self.looks.append(ranges)
        return {0: self.steps}


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> Kept:
    monkeypatch.setattr("headgate.statements.leaders.Offsets", Broker)
    return Kept()


def leaders(kept: Kept, epochs: Mapping[int, int | None], steps: Sequence[tuple[int, int]] = ()) -> Leaders:
    """Of a run that begins now."""
    made = Leaders("kafka:9092", "totals", kept)
    broker: Any = made._offsets
    broker.epochs, broker.steps = epochs, steps
    return made


def test_records_that_another_leader_has_written_over_stop_the_statement(kept: Kept) -> None:
    leaders(kept, {0: 5, 1: 5}).check([TOPIC], 0)
    again = leaders(kept, {0: 6, 1: 5}, [(10, 4), (60, 5), (80, 6)])
    with pytest.raises(StatementFailed, match="partition 0: 80 to 99") as raised:
        again.check([TOPIC], 3)
    assert "headgate statement reset totals" in raised.value.remedy
    broker: Any = again._offsets
    assert broker.looks == [{0: (10, 100)}]
    assert kept.text is not None
    assert json.loads(kept.text) == {"orders": {"0": 5, "1": 5}}, "it fails again at the next start"


def test_records_that_are_gone_and_not_written_over_yet_stop_the_statement_too(kept: Kept) -> None:
    """Else the new leader would be known when it writes there, and nobody would look again."""
    leaders(kept, {0: 5, 1: 5}).check([TOPIC], 0)
    again = leaders(kept, {0: 6, 1: 5}, [(10, 4), (60, 5)])
    broker: Any = again._offsets
    broker.end = 90
    with pytest.raises(StatementFailed, match="partition 0: 90 to 99"):
        again.check([TOPIC], 3)
    assert json.loads(str(kept.text)) == {"orders": {"0": 5, "1": 5}}, "it fails again at the next start"


def test_of_a_topic_that_is_read_twice_the_reading_that_is_ahead_counts(kept: Kept) -> None:
    """What it has read is in its state, though the other reading is not there yet."""
    kept.readings = [{"orders": {"0": 40, "1": 7}}, {"orders": {"0": 100, "1": 7}}]
    leaders(kept, {0: 5, 1: 5}).check([TOPIC], 0)
    with pytest.raises(StatementFailed, match="partition 0: 80 to 99"):
        leaders(kept, {0: 6, 1: 5}, [(10, 4), (60, 5), (80, 6)]).check([TOPIC], 3)


def test_a_clean_election_costs_one_look(kept: Kept) -> None:
    leaders(kept, {0: 5, 1: 5}).check([TOPIC], 0)
    again = leaders(kept, {0: 6, 1: 5}, [(10, 4), (60, 5)])
    for batch in (3, 4, 5):
        again.check([TOPIC], batch)
    broker: Any = again._offsets
    assert len(broker.looks) == 1
    assert kept.writes == 2


def test_before_a_first_batch_nothing_is_compared(kept: Kept) -> None:
    first = leaders(kept, {0: 9, 1: None}, [(10, 9)])
    first.check([TOPIC], 0)
    assert json.loads(str(kept.text)) == {"orders": {"0": 9}}
    broker: Any = first._offsets
    assert broker.looks == []
