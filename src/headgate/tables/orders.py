"""Which of two records of a key is the later one, where Kafka's order alone does not tell.

An order is the generation of a record, then the source of its change event, shortened, and its position
there, if it has one. Positions of two generations are never compared.
"""

import hashlib

from headgate.tables.deleted_keys import Mark
from headgate.tables.generations import ERA_SHIFT, generation_of, with_generation, without_generation
from headgate.tables.key_index import Place

_SOURCE_LENGTH = 8


def order_of(source: str | None, position: bytes | None, generation: int = 0) -> bytes:
    """The order of a record, sortable within a generation and source; empty for one that has neither."""
    if source is None or position is None:
        return with_generation(generation, b"")
    return with_generation(generation, hashlib.sha256(source.encode()).digest()[:_SOURCE_LENGTH] + position)


def source_of(order: bytes) -> str:
    """The source, with its generation; empty where the order has no position."""
    source = without_generation(order)[:_SOURCE_LENGTH]
    return with_generation(generation_of(order), source).hex() if source else ""


def comparable(one: bytes, other: bytes) -> bool:
    return source_of(one) == source_of(other) != ""


def is_stale(order: bytes, before: bytes) -> bool:
    """Equal ones are the same event, or told apart by Kafka's order."""
    return comparable(order, before) and order < before


def comes_late(partition: int, offset: int, order: bytes, place: Place, replay: bool) -> bool:
    """Whether a later record of the key was applied before."""
    if comparable(order, place.order):
        return is_stale(order, place.order)
    eras = era_of(order), era_of(place.order)
    if replay and eras[0] != eras[1]:
        return eras[0] < eras[1]
    # Batches go forward. A dead letter that is replayed may be older; nobody can tell across partitions.
    return replay and (partition != place.partition or offset <= place.offset)


def is_later(mark: Mark, place: Place | None) -> bool:
    """Whether a mark says something newer of its key than is known."""
    if place is None:
        return True
    if comparable(mark.order, place.order):
        return mark.order > place.order
    eras = era_of(mark.order), era_of(place.order)
    if eras[0] != eras[1]:
        return eras[0] > eras[1]
    return mark.partition == place.partition and mark.offset > place.offset


def era_of(order: bytes) -> int:
    return generation_of(order) >> ERA_SHIFT
