"""What lists show beside the names of topics: asked for once for all of them, and never waited for long."""

import threading
import time
from collections.abc import Iterable, Mapping
from typing import cast

from headgate.errors import RegistryUnavailable
from headgate.kafka.offsets import Offsets
from headgate.model import Topic
from headgate.registry.client import SchemaSource, SubjectVersion
from headgate.server.topic_figures import Kept, TopicFigures


class Ends:
    """Offsets of topics that go from 5 to 12 in each partition."""

    def __init__(self) -> None:
        self.asked = 0

    def earliest(self, topics: Iterable[Topic]) -> Mapping[str, Mapping[int, int]]:
        self.asked += 1
        return {topic.name: dict.fromkeys(topic.partitions, 5) for topic in topics}

    def stable_ends(self, topics: Iterable[Topic]) -> Mapping[str, Mapping[int, int]]:
        return {topic.name: dict.fromkeys(topic.partitions, 12) for topic in topics if topic.name != "gone"}


class Registry:
    """Knows the schema of `a-value`; `lists` tells whether it lists all of them in one call."""

    def __init__(self, lists: bool) -> None:
        self.lists = lists
        self.asked: list[str] = []

    def latest_of_all(self) -> Mapping[str, SubjectVersion] | None:
        found = self.version("a-value", "latest")
        return {found.subject: found} if self.lists else None

    def subjects(self) -> list[str]:
        return ["a-value", "other"]

    def version(self, subject: str, version: str) -> SubjectVersion:
        self.asked.append(subject)
        return SubjectVersion(subject, 3, 7, "AVRO", "{}")


def figures(lists: bool = True) -> tuple[TopicFigures, Ends, Registry]:
    ends, registry = Ends(), Registry(lists)
    return TopicFigures(cast(Offsets, ends), cast(SchemaSource, registry)), ends, registry


TOPICS = [Topic("a", "id-a", (0, 1)), Topic("gone", "id-gone", (0,))]


def test_records_of_all_topics_are_asked_for_at_once_and_kept() -> None:
    found, ends, _ = figures()
    assert dict(found.records(TOPICS[:1])) == {"id-a": 14}
    assert dict(found.records(TOPICS[:1])) == {"id-a": 14}
    assert ends.asked == 1


def test_a_topic_that_is_new_is_counted_at_once() -> None:
    found, _, _ = figures()
    found.records(TOPICS[:1])
    newer = Topic("b", "id-b", (0,))
    assert found.records([*TOPICS, newer])["id-b"] == 7


def test_latest_schemas_are_found_with_and_without_a_list_of_them() -> None:
    for lists in (True, False):
        found, _, registry = figures(lists)
        found.records(TOPICS)
        assert found.latest_schemas()["a-value"].id == 7
        assert "other" not in registry.asked


def test_what_takes_long_is_not_waited_for_and_there_the_next_time() -> None:
    free = threading.Event()

    def ask() -> str:
        free.wait(10)
        return "answer"

    kept = Kept(ask, "nothing", 60, "Answers")
    began = time.monotonic()
    assert kept.get(0.05) == "nothing"
    assert time.monotonic() - began < 5
    free.set()
    assert kept.get(10) == "answer"


def test_what_fails_is_not_known_and_asked_again_later() -> None:
    asked = []

    def ask() -> str:
        asked.append(1)
        raise RegistryUnavailable("away")

    kept = Kept(ask, "nothing", 60, "Answers")
    assert [kept.get(5), kept.get(5)] == ["nothing", "nothing"]
    assert len(asked) == 1
    kept.forget()
    kept.get(5)
    assert len(asked) == 2
