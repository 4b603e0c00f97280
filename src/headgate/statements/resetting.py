"""A stopped statement begins at another place: what that repeats or skips, and how it is carried out.

The new checkpoint has an id of its own, and every task a marker that names it: what was recorded before says
nothing of the batches to come.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from headgate.errors import InvalidRequest, NotFound
from headgate.kafka.access import KafkaAccess
from headgate.kafka.markers import Marker, prepare_markers
from headgate.kafka.offsets import Offsets
from headgate.kafka.topics import Topics, is_reserved
from headgate.kafka.transactional import TransactionalWriter, take_over_markers
from headgate.model import StartKind, Topic
from headgate.options import parse_start
from headgate.statements.checkpoint import (
    Checkpoint,
    entry_conf,
    entry_offsets,
    entry_watermark_ms,
)
from headgate.statements.query import Running
from headgate.statements.recovery import NO_BATCH
from headgate.statements.sink import MARKERS
from headgate.statements.staged import running_of
from headgate.statements.takeover import REBUILD_BATCHES, Rebuild, start_texts
from headgate.store import StatementRecord

LAST = "last"
_INSTEAD = "Name another place: earliest, latest, a time, or offsets by partition as 0:12,1:40."
#: Where to begin, for all topics or by topic: earliest, latest, a time, offsets, or for all of them `last`.
Places = str | Mapping[str, str]


@dataclass(frozen=True)
class Span:
    """Offsets of one partition, the end not included."""

    topic: str
    partition: int
    start: int
    end: int


@dataclass(frozen=True)
class ResetPlan:
    """`places` asks for the same once more, whatever comes into the topics meanwhile."""

    places: Places
    #: By topic, as Spark's source takes them; none of them for `last`, which the engine settles.
    starts: Mapping[str, str]
    repeats: Sequence[Span]
    skips: Sequence[Span]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def standing(
    markers: Sequence[Sequence[Marker | None]], told: Mapping[str, Mapping[str, int]]
) -> dict[str, dict[int, int]]:
    """By topic and partition, up to where it was read: of all steps, the one that is behind.

    `markers`: by step and task. `told`: by the statement while it ran, of batches without rows as well.
    """
    found: dict[str, dict[int, int]] = {}
    for tasks in markers:
        last = last_of(tasks)
        for topic, ends in entry_offsets(last.entry if last is not None else "").items():
            known = found.setdefault(topic, {})
            known |= {p: min(known.get(p, end), end) for p, end in ends.items()}
    for topic, partitions in told.items():
        known = found.setdefault(topic, {})
        known |= {int(p): max(known.get(int(p), 0), end) for p, end in partitions.items()}
    return found


def last_of(markers: Sequence[Marker | None]) -> Marker | None:
    known = [marker for marker in markers if marker is not None and marker.batch > NO_BATCH]
    return max(known, key=lambda marker: marker.batch, default=None)


def plan_reset(
    name: str,
    settled: Mapping[str, Any],
    places: Places,
    stand: Mapping[str, Mapping[int, int]],
    topics: Topics,
    offsets: Offsets,
) -> ResetPlan:
    """Refuses places that there are not."""
    known = {topic: topic_id for topic, topic_id in settled["topics"].items() if not is_reserved(topic)}
    by_topic = _by_topic(name, places, sorted(known))
    described = topics.describe_many(list(known))
    missing = sorted(known.keys() - described.keys())
    if missing:
        raise NotFound(
            f"There is no topic '{missing[0]}', which statement '{name}' reads.",
            "Create it, or delete the statement.",
        )
    starts: dict[str, str] = {}
    told: dict[str, str] = {}
    repeats: list[Span] = []
    skips: list[Span] = []
    for topic, place in by_topic.items():
        start, found = parse_start(place), described[topic]
        first = offsets.start_offsets(start, found)
        is_earliest = start.kind is StartKind.EARLIEST
        starts[topic] = place if is_earliest else start_texts({topic: first})[topic]
        told[topic] = place if is_earliest else ",".join(f"{p}:{o}" for p, o in sorted(first.items()))
        # In a topic that was created again nothing was read yet.
        was = stand.get(topic, {}) if found.id == known[topic] else {}
        again, over = _spans(found, first, was, offsets)
        repeats += again
        skips += over
    return ResetPlan(told, starts, repeats, skips)


def _by_topic(name: str, places: Places, topics: Sequence[str]) -> dict[str, str]:
    if isinstance(places, str):
        if len(topics) > 1 and parse_start(places).kind is StartKind.OFFSETS:
            raise InvalidRequest(
                f"Statement '{name}' reads {len(topics)} topics: offsets are of one of them.",
                "Name them: " + ", ".join(f"{topic}={places}" for topic in topics) + ".",
            )
        return dict.fromkeys(topics, places)
    if sorted(places) != list(topics):
        raise InvalidRequest(
            f"Statement '{name}' reads {', '.join(topics)}: places are needed for all of them and no other.",
            "Name one for each, or one for all: " + ", ".join(f"{topic}=earliest" for topic in topics) + ".",
        )
    return dict(places)


def _spans(
    topic: Topic, first: Mapping[int, int], was: Mapping[int, int], offsets: Offsets
) -> tuple[list[Span], list[Span]]:
    """What is read a second time, and what is never read."""
    there = offsets.earliest([topic]).get(topic.name, {})
    again = [
        Span(topic.name, p, max(start, there.get(p, 0)), was[p])
        for p, start in sorted(first.items())
        if max(start, there.get(p, 0)) < was.get(p, 0)
    ]
    over = [
        Span(topic.name, p, max(was.get(p, 0), there.get(p, 0)), start)
        for p, start in sorted(first.items())
        if max(was.get(p, 0), there.get(p, 0)) < start
    ]
    return again, over


def plan_of_record(
    record: StatementRecord, places: Places, access: KafkaAccess, topics: Topics, offsets: Offsets
) -> ResetPlan:
    """Of a stopped statement: who still sleeps can write no more of it."""
    settled = record.settled
    steps = len(settled.get("steps") or ()) + 1
    running = Running(record.id, "", int(settled["tasks"]))
    markers = [
        take_over_markers(access, own.writer, own.tasks, MARKERS)
        for own in (running_of(running, step, steps) for step in range(1, steps + 1))
    ]
    if places == LAST:
        check_last(record.name, settled, markers[-1])
        return ResetPlan(LAST, {}, (), ())
    stand = standing(markers, record.detail.get("offsets") or {})
    return plan_reset(record.name, settled, places, stand, topics, offsets)


# -- carried out


@dataclass(frozen=True)
class Redo:
    """The batch that was written last, done again under a new number: tasks that had written their share
    leave it out."""

    number: int
    entry: str
    tasks: Sequence[int]


def check_last(name: str, settled: Mapping[str, Any], markers: Sequence[Marker | None]) -> Marker:
    """The marker that a statement can go on from."""
    if settled.get("steps"):
        raise InvalidRequest(
            f"Statement '{name}' runs in several steps: what was under way between them is not known.",
            _INSTEAD,
        )
    last = last_of(markers)
    if last is None or not last.before:
        raise InvalidRequest(
            f"The output of statement '{name}' does not say after which batch it is to go on.", _INSTEAD
        )
    return last


def settled_at_last(
    name: str, settled: Mapping[str, Any], markers: Sequence[Marker | None], stateful: bool
) -> tuple[dict[str, Any], Redo]:
    """What is settled for going on where the output stands.

    State is built from the beginning up to the last batch, as when one statement takes over from another.
    """
    last = check_last(name, settled, markers)
    before = entry_offsets(last.before)
    tasks = [
        task
        for task, marker in enumerate(markers)
        if marker is not None and (marker.batch, marker.entry) == (last.batch, last.entry)
    ]
    if not stateful:
        return {"starts": start_texts(before)}, Redo(0, last.entry, tasks)
    starts = dict(settled.get("starts") or {})
    if any(start == StartKind.LATEST for start in starts.values()):
        raise InvalidRequest(
            f"Statement '{name}' began at the end of a topic, and it is not known any more where that was: "
            "its state cannot be rebuilt.",
            _INSTEAD,
        )
    rebuild = Rebuild(before, entry_watermark_ms(last.before), entry_conf(last.entry), entry=last.entry)
    return {"starts": starts, "rebuild": rebuild.to_dict()}, Redo(REBUILD_BATCHES, last.entry, tasks)


def begin_again(
    checkpoint: Checkpoint,
    access: KafkaAccess,
    writer: str,
    tasks: int,
    checkpoint_id: str,
    redo: Redo | None,
) -> None:
    """An empty checkpoint, then the markers that go with it. The same again comes to the same."""
    checkpoint.begin(checkpoint_id)
    if redo is not None and redo.number == 0:
        checkpoint.write_entry(0, redo.entry)
    prepare_markers(access, MARKERS)
    for task in range(tasks):
        marker = Marker(NO_BATCH, checkpoint_id)
        if redo is not None and task in redo.tasks:
            marker = Marker(redo.number, checkpoint_id, redo.entry)
        with TransactionalWriter(access, writer, task, MARKERS) as opened:
            opened.replace_marker(marker)


def empty_topics(access: KafkaAccess, names: Sequence[str]) -> None:
    """Nobody reads what is in them, from now on."""
    topics = Topics(access)
    for name, ends in Offsets(access).stable_ends(topics.describe_many(names).values()).items():
        topics.delete_before(name, {p: end for p, end in ends.items() if end > 0})
