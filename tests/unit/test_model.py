"""The nouns: what passes between stages is frozen and survives the way through JSON."""

from dataclasses import FrozenInstanceError, fields

import pytest

from headgate.errors import InvalidRequest
from headgate.model import BATCH_KEY, FROM_KEY, POSITION_KEY, Batch, Position, Start, StartKind, TableSpec


def test_position_through_json() -> None:
    position = Position("C", "T", {10: 1, 2: 3})
    assert Position.from_json(position.to_json()) == position
    assert position.to_json() == '{"cluster":"C","topic":"T","offsets":{"2":3,"10":1}}'


def test_positions_are_values_and_frozen() -> None:
    offsets = {0: 1}
    position = Position("C", "T", offsets)
    offsets[0] = 99
    assert position == Position("C", "T", {0: 1})
    with pytest.raises(TypeError):
        position.offsets[0] = 5  # type: ignore[index]
    with pytest.raises(FrozenInstanceError):
        position.topic_id = "X"  # type: ignore[misc]


def test_every_batch_has_an_id_of_its_own() -> None:
    position = Position("C", "T", {0: 0})
    one, other = Batch(position, position), Batch(position, position)
    assert one.id != other.id


def test_a_batch_says_where_it_starts_and_ends() -> None:
    batch = Batch(Position("C", "T", {0: 4}), Position("C", "T", {0: 9, 1: 2}))
    summary = batch.summary()
    assert Position.from_json(summary[FROM_KEY]) == batch.start
    assert Position.from_json(summary[POSITION_KEY]) == batch.end
    assert summary[BATCH_KEY] == batch.id
    assert batch.offsets == 7


@pytest.mark.parametrize(
    "start",
    [
        Start(),
        Start(StartKind.LATEST),
        Start(StartKind.TIMESTAMP, 1234),
        Start(StartKind.OFFSETS, None, {3: 4}),
    ],
)
def test_specs_through_json(start: Start) -> None:
    spec = TableSpec("a.b", start=start, freshness_seconds=30)
    assert TableSpec.from_dict(spec.to_dict()) == spec


def test_no_field_of_a_spec_is_lost() -> None:
    assert TableSpec("t").to_dict().keys() == {field.name for field in fields(TableSpec)}
    stored = TableSpec("t", storage="vault", rewrite=True)
    assert TableSpec.from_dict(stored.to_dict()) == stored


def test_a_freshness_too_small_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="1 s or more"):
        TableSpec("a", freshness_seconds=0.1)
