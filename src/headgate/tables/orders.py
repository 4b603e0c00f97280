"""Which of two records of a key is the later one, where Kafka's order alone does not tell."""

import hashlib

from headgate.tables.deleted_keys import Mark
from headgate.tables.key_index import Place

# An order is the source of a change event, shortened, and its position there; empty where it has none.
_SOURCE_LENGTH = 8


def order_of(source: str | None, position: bytes | None) -> bytes:
    """Sortable within a source."""
    if source is None or position is None:
        return b""
    return hashlib.sha256(source.encode()).digest()[:_SOURCE_LENGTH] + position


def source_of(order: bytes) -> str:
    return order[:_SOURCE_LENGTH].hex()


def comparable(one: bytes, other: bytes) -> bool:
    return bool(one) and bool(other) and one[:_SOURCE_LENGTH] == other[:_SOURCE_LENGTH]


def is_stale(order: bytes, before: bytes) -> bool:
    """Equal ones are the same event, or told apart by Kafka's order."""
    return comparable(order, before) and order < before


def comes_late(partition: int, offset: int, order: bytes, place: Place, replay: bool) -> bool:
    """Whether a later record of the key was applied before."""
    if comparable(order, place.order):
        return is_stale(order, place.order)
    # Batches go forward. A dead letter that is replayed may be older; nobody can tell across partitions.
    return replay and (partition != place.partition or offset <= place.offset)


def is_later(mark: Mark, place: Place | None) -> bool:
    """Whether a mark says something newer of its key than is known."""
    if place is None:
        return True
    if comparable(mark.order, place.order):
        return mark.order > place.order
    return mark.partition == place.partition and mark.offset > place.offset
