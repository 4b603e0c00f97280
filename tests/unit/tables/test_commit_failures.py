"""What becomes of a batch's files when its commit fails: only those of no snapshot are removed."""

from collections.abc import Iterable
from typing import Any, cast

import pytest

from headgate.errors import CommitRefused, CommitUnknown, HeadgateError, StaleBatch, TopicReplaced
from headgate.model import Batch, Position, TableSpec, Topic
from headgate.tables.lane import SparkLane, Staged
from headgate.tables.materialize import Materializer, TopicView
from headgate.tables.plan import Limits

START = Position("cluster", "T1", {0: 0})
BATCH = Batch(START, START.advanced_to({0: 5}))


class Lake:
    """Refuses each commit with `error`; `found` is the batch's snapshot, if the catalog has it."""

    def __init__(self, error: HeadgateError, found: object | None = None) -> None:
        self.error, self.found = error, found
        self.deleted: list[Any] = []
        self.asked = 0

    def commit(self, *_: Any) -> Any:
        self.asked += 1
        raise self.error

    def find_batch(self, *_: Any) -> object | None:
        return self.found

    def delete_files(self, _: Any, files: Iterable[Any]) -> None:
        self.deleted += files


class Source:
    """The topic as it is when the batch is to be committed."""

    def __init__(self, topic_id: str = "T1") -> None:
        self.topic_id = topic_id

    def view(self, topic: str) -> TopicView:
        return TopicView("cluster", Topic(topic, self.topic_id, (0,)), {0: 0}, {0: 5})


def deleted_after(lake: Lake, source: Source, expected: type[HeadgateError]) -> list[Any]:
    materializer = Materializer(
        TableSpec("orders"),
        "first",
        cast(Any, lake),
        cast(SparkLane, None),
        cast(Any, None),
        cast(Any, source),
        Limits(100, 100),
    )
    materializer.position = START
    with pytest.raises(expected):
        materializer._commit(BATCH, Staged(("file",)), 0, {})
    return lake.deleted


def test_files_of_a_refused_batch_are_removed() -> None:
    assert deleted_after(Lake(StaleBatch("stale")), Source(), StaleBatch) == ["file"]


def test_files_of_a_batch_that_the_catalog_forbids_are_removed() -> None:
    assert deleted_after(Lake(CommitRefused("no")), Source(), CommitRefused) == ["file"]


def test_files_of_a_batch_that_lost_against_its_own_first_copy_stay() -> None:
    assert deleted_after(Lake(StaleBatch("stale"), found="snapshot"), Source(), StaleBatch) == []


def test_files_of_a_commit_without_an_answer_stay_though_it_is_not_seen_yet() -> None:
    assert deleted_after(Lake(CommitUnknown("no answer")), Source(), CommitUnknown) == []


def test_a_topic_that_was_created_again_while_it_was_read_is_not_committed() -> None:
    lake = Lake(StaleBatch("never asked"))
    assert deleted_after(lake, Source("T2"), TopicReplaced) == ["file"]
    assert lake.asked == 0
