"""From where to where topics are read by what ends."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from headgate.errors import NotFound
from headgate.kafka.access import KafkaAccess
from headgate.kafka.offsets import Offsets
from headgate.kafka.topics import Topics

# By partition, from this offset on and up to that one.
Ranges = Mapping[int, tuple[int, int]]


@dataclass(frozen=True)
class Ends:
    """Up to where a statement reads, settled when it was made: by topic its id, and ranges by partition."""

    ids: Mapping[str, str]
    ranges: Mapping[str, Ranges]

    @classmethod
    def now(cls, access: KafkaAccess, names: list[str], starts: Mapping[str, str]) -> Self:
        ids = {name: topic.id for name, topic in Topics(access).describe_many(names).items()}
        return cls(ids, ranges_of(access, names, starts))

    def to_dict(self) -> dict[str, Any]:
        return {
            name: {"id": self.ids[name], "offsets": {str(p): list(one) for p, one in ranges.items()}}
            for name, ranges in self.ranges.items()
        }

    @classmethod
    def from_dict(cls, known: Mapping[str, Any]) -> Self:
        ranges = {
            name: {int(p): (int(start), int(end)) for p, (start, end) in said["offsets"].items()}
            for name, said in known.items()
        }
        return cls({name: said["id"] for name, said in known.items()}, ranges)

    def left(self) -> dict[str, dict[int, int]]:
        return {
            name: {p: end - start for p, (start, end) in one.items()} for name, one in self.ranges.items()
        }

    def ends(self) -> dict[str, dict[int, int]]:
        return {name: {p: end for p, (_, end) in one.items()} for name, one in self.ranges.items()}


def ranges_of(access: KafkaAccess, names: list[str], starts: Mapping[str, str]) -> dict[str, Ranges]:
    """What is committed now, by topic; from where its table begins to be read."""
    topics = Topics(access).describe_many(names)
    offsets = Offsets(access)
    ends, firsts = offsets.stable_ends(topics.values()), offsets.earliest(topics.values())
    found: dict[str, Ranges] = {}
    for name in names:
        if name not in ends or name not in firsts:
            raise NotFound(f"There is no topic '{name}'.", "`headgate topic list` shows those that are.")
        first = ends[name] if starts.get(name) == "latest" else firsts[name]
        # Retention may have moved on between the two looks.
        found[name] = {p: (min(first[p], end), end) for p, end in sorted(ends[name].items())}
    return found
