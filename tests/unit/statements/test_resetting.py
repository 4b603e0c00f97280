"""What a reset repeats and skips, and what it leaves to be done again."""

import json
from collections.abc import Mapping
from typing import Any, cast

import pytest

from headgate.cli.statement import reset_lines
from headgate.errors import InvalidRequest, NotFound
from headgate.kafka.markers import Marker
from headgate.kafka.offsets import Offsets
from headgate.kafka.topics import Topics
from headgate.model import Start, StartKind, Topic
from headgate.statements.recovery import NO_BATCH
from headgate.statements.resetting import (
    Places,
    Redo,
    ResetPlan,
    check_last,
    plan_reset,
    settled_at_last,
    standing,
)
from headgate.statements.scan import start_of_all

SETTLED = {"topics": {"orders": "id-1", "__headgate.stage.x.1": "id-2"}, "starts": {}}
BOTH = {"topics": {"orders": "id-1", "people": "id-3"}}


class Broker:
    """Two topics: partition 0 has offsets 10 to 99, partition 1 has 0 to 49."""

    ids: Mapping[str, str] = {"orders": "id-1", "people": "id-3"}

    def describe_many(self, names: list[str]) -> dict[str, Topic]:
        return {name: Topic(name, self.ids[name], (0, 1)) for name in names if name in self.ids}

    def earliest(self, topics: list[Topic]) -> dict[str, dict[int, int]]:
        return {topic.name: {0: 10, 1: 0} for topic in topics}

    def start_offsets(self, start: Start, topic: Topic) -> dict[int, int]:
        if start.kind is StartKind.OFFSETS:
            return {0: 10, 1: 0} | dict(start.offsets or {})
        return {0: 10, 1: 0} if start.kind is StartKind.EARLIEST else {0: 100, 1: 50}


def planned(
    places: Places, stand: Mapping[str, Mapping[int, int]], settled: Mapping[str, Any] = SETTLED
) -> ResetPlan:
    broker = Broker()
    return plan_reset("s", settled, places, stand, cast(Topics, broker), cast(Offsets, broker))


def spans(plan: ResetPlan) -> tuple[list[tuple[int, int, int]], list[tuple[int, int, int]]]:
    found = [[(s.partition, s.start, s.end) for s in told] for told in (plan.repeats, plan.skips)]
    return found[0], found[1]


def test_what_was_read_is_repeated_as_far_as_it_is_there() -> None:
    plan = planned("earliest", {"orders": {0: 60, 1: 0}})
    assert spans(plan) == ([(0, 10, 60)], [])
    assert plan.starts == {"orders": "earliest"}


def test_what_was_not_read_is_skipped() -> None:
    plan = planned("latest", {"orders": {0: 60, 1: 50}})
    assert spans(plan) == ([], [(0, 60, 100)])
    assert json.loads(plan.starts["orders"]) == {"orders": {"0": 100, "1": 50}}
    assert plan.places == {"orders": "0:100,1:50"}, "the same, when more has come"
    assert spans(planned("0:70,1:20", {"orders": {0: 60, 1: 50}})) == ([(1, 20, 50)], [(0, 60, 70)])
    # A partition of which nothing is known was not read.
    assert spans(planned("latest", {})) == ([], [(0, 10, 100), (1, 0, 50)])


def test_in_a_topic_that_was_created_again_nothing_was_read() -> None:
    plan = planned("earliest", {"orders": {0: 60}}, {"topics": {"orders": "id-0"}})
    assert spans(plan) == ([], [])


def test_each_topic_may_begin_elsewhere() -> None:
    plan = planned(
        {"orders": "0:20", "people": "latest"}, {"orders": {0: 20}, "people": {0: 100, 1: 50}}, BOTH
    )
    assert spans(plan) == ([], [])
    assert planned(plan.places, {}, BOTH).starts == plan.starts
    for wrong in ({"orders": "latest"}, "0:20,1:5"):
        with pytest.raises(InvalidRequest, match="people"):
            planned(cast(Places, wrong), {}, BOTH)
    with pytest.raises(InvalidRequest, match="not a place"):
        planned("somewhere", {})
    with pytest.raises(NotFound, match="'gone'"):
        planned("earliest", {}, {"topics": {"gone": "id-9"}})


def entry(batch: int, end: int) -> str:
    metadata = {"batchWatermarkMs": batch * 1000, "batchTimestampMs": batch, "conf": {"a": "b"}}
    return "\n".join(["v1", json.dumps(metadata), json.dumps({"orders": {"0": end}}), "-"])


LAST = Marker(8, "c", entry(8, 80), entry(7, 70))
MARKERS = [LAST, Marker(7, "c", entry(7, 70), entry(6, 60)), None, LAST]


def test_the_step_that_is_behind_says_how_far_it_was_read() -> None:
    assert standing([MARKERS, [Marker(3, "d", entry(3, 75))]], {}) == {"orders": {0: 75}}
    assert standing([[Marker(NO_BATCH, "c"), None]], {"orders": {"0": 5}}) == {"orders": {0: 5}}
    assert standing([MARKERS], {"orders": {"0": 90, "1": 4}}) == {"orders": {0: 90, 1: 4}}


def test_from_last_the_last_batch_is_left_to_the_tasks_that_had_not_written_it() -> None:
    more, redo = settled_at_last("s", SETTLED, MARKERS, stateful=False)
    assert redo == Redo(0, LAST.entry, [0, 3])
    assert json.loads(more["starts"]["orders"]) == {"orders": {"0": 70}}


def test_from_last_state_is_rebuilt_up_to_the_batch_before() -> None:
    more, redo = settled_at_last("s", SETTLED, MARKERS, stateful=True)
    assert redo == Redo(2, LAST.entry, [0, 3])
    assert more == {
        "starts": {},
        "rebuild": {
            "offsets": {"orders": {"0": 70}},
            "watermark_ms": 7000,
            "conf": {"a": "b"},
            "entry": LAST.entry,
        },
    }


def test_where_nothing_says_where_the_output_stands_another_place_is_asked_for() -> None:
    latest = SETTLED | {"starts": {"orders": "latest"}}
    with pytest.raises(InvalidRequest, match="cannot be rebuilt"):
        settled_at_last("s", latest, MARKERS, stateful=True)
    with pytest.raises(InvalidRequest, match="several steps"):
        check_last("s", SETTLED | {"steps": ["a"]}, MARKERS)
    for markers in ([None], [Marker(NO_BATCH, "c")], [Marker(7)], [Marker(0, "c", entry(0, 5))]):
        with pytest.raises(InvalidRequest, match="Name another place"):
            check_last("s", SETTLED, markers)


def test_partitions_that_were_added_since_are_begun_at_their_beginning() -> None:
    start = json.dumps({"orders": {"0": 100}})
    assert json.loads(start_of_all("orders", start, (0, 1))) == {"orders": {"0": 100, "1": -2}}
    assert start_of_all("orders", "latest", (0, 1)) == "latest"


def test_what_is_said_before_it_is_done() -> None:
    plan = planned("0:70,1:20", {"orders": {0: 60, 1: 50}}).to_dict()
    assert reset_lines("s", plan) == [
        "repeats orders, partition 1, offsets 20 to 49: 30 records at most",
        "skips orders, partition 0, offsets 60 to 69: 10 records at most",
        "What it remembers begins empty.",
    ]
    assert "nothing is skipped" in reset_lines("s", ResetPlan("last", {}, (), ()).to_dict())[0]
