"""What a list of topics shows beside their names, however many they are: asked for all at once, and kept for
a moment."""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Generic, TypeVar

from headgate.errors import HeadgateError
from headgate.kafka.offsets import Offsets
from headgate.model import Topic
from headgate.registry.client import SchemaSource, SubjectVersion

log = logging.getLogger(__name__)

RECORDS_SECONDS = 2.0
SCHEMAS_SECONDS = 15.0
# A list does not wait longer for what it can do without.
PATIENCE_SECONDS = 1.0
# Of a registry that tells schemas one by one.
AT_ONCE = 8
_T = TypeVar("_T")


class Kept(Generic[_T]):
    """The last answer to a question that takes a while: at most so old, or older while it is asked again."""

    def __init__(self, ask: Callable[[], _T], empty: _T, seconds: float, what: str) -> None:
        self._ask = ask
        self._answer = empty
        self._seconds = seconds
        self._what = what
        self._asked_at = float("-inf")
        self._asking: Future[None] | None = None
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="kept")

    def get(self, patience: float = PATIENCE_SECONDS) -> _T:
        with self._lock:
            if self._asking is None and time.monotonic() - self._asked_at >= self._seconds:
                self._asking = self._pool.submit(self._renew)
            asking = self._asking
        if asking is not None:
            wait([asking], patience)
        return self._answer

    def forget(self) -> None:
        """The next answer is a new one."""
        with self._lock:
            self._asked_at = float("-inf")

    def _renew(self) -> None:
        try:
            self._answer = self._ask()
        except HeadgateError as error:
            log.warning("%s are not known now: %s", self._what, error)
        finally:
            with self._lock:
                self._asked_at, self._asking = time.monotonic(), None


class TopicFigures:
    """Records and latest schemas of topics."""

    def __init__(self, offsets: Offsets, schemas: SchemaSource) -> None:
        self._offsets = offsets
        self._schemas = schemas
        self._wanted: dict[str, Topic] = {}
        self._records: Kept[Mapping[str, int]] = Kept(self._count, {}, RECORDS_SECONDS, "Records of topics")
        self._latest: Kept[Mapping[str, SubjectVersion]] = Kept(
            self._look_up, {}, SCHEMAS_SECONDS, "Latest schemas"
        )

    def records(self, topics: Iterable[Topic]) -> Mapping[str, int]:
        """By topic id, how many offsets lie between a topic's beginning and its end. Where Kafka is slow to
        tell, some are missing."""
        self._wanted = {topic.name: topic for topic in topics}
        known = self._records.get()
        if all(topic.id in known for topic in self._wanted.values()):
            return known
        self._records.forget()
        return self._records.get()

    def latest_schemas(self) -> Mapping[str, SubjectVersion]:
        """By subject."""
        return self._latest.get()

    def _count(self) -> Mapping[str, int]:
        topics = list(self._wanted.values())
        first, ends = self._offsets.earliest(topics), self._offsets.stable_ends(topics)
        return {
            topic.id: sum(ends[topic.name].values()) - sum(first[topic.name].values())
            for topic in topics
            if topic.name in first and topic.name in ends
        }

    def _look_up(self) -> Mapping[str, SubjectVersion]:
        found = self._schemas.latest_of_all()
        if found is not None:
            return found
        wanted = {f"{name}-{part}" for name in list(self._wanted) for part in ("key", "value")}
        subjects = sorted(wanted.intersection(self._schemas.subjects()))
        with ThreadPoolExecutor(AT_ONCE) as pool:
            versions = pool.map(lambda subject: self._schemas.version(subject, "latest"), subjects)
            return {one.subject: one for one in versions if one is not None}
