"""Where something stands in its topics."""

from headgate.server.answers.shape import Maybe, Shape

# By partition, written as text.
Offsets = dict[str, int]


class EraAnswer(Shape):
    """What was read of a topic before it was created again, or its source's timeline ended."""

    topic: str
    ends: Offsets


class PositionAnswer(Shape):
    """The next offset that a table reads of each partition."""

    cluster: str
    topic: str
    offsets: Offsets
    earlier: Maybe[list[EraAnswer]]
    # How many snapshots of Debezium, where the last one began, and whether changes came since.
    snapshots: Maybe[dict[str, tuple[int, int, bool]]]
    epochs: Maybe[Offsets]
    reread: Maybe[Offsets]


class OffsetRangeAnswer(Shape):
    """Offsets of one partition, the end not included."""

    partition: int
    start: int
    end: int


class ReachAnswer(Shape):
    """From where to where a partition can be read."""

    partition: int
    earliest: int
    end: int
