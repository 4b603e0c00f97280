"""Kafka's topics."""

from headgate.model import TableState
from headgate.server.answers.positions import ReachAnswer
from headgate.server.answers.shape import Shape


class TopicAnswer(Shape):
    """A topic."""

    name: str
    id: str
    partitions: list[int]
    internal: bool


class ListedTopicAnswer(TopicAnswer):
    """A topic in a list; `table` is the state of its table."""

    table: TableState | None


class ShownTopicAnswer(TopicAnswer):
    """One topic, with what was set on it, and from where to where its partitions reach."""

    config: dict[str, str]
    offsets: list[ReachAnswer]
