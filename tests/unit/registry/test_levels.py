import pytest

from headgate.registry.compatibility import Earlier, Level, to_compare
from headgate.registry.schemas import ResolvedSchema, Schema

EARLIER = [Earlier(n, ResolvedSchema(Schema('"string"'))) for n in (1, 2, 5)]


@pytest.mark.parametrize(
    ("level", "backward", "forward", "versions"),
    [
        ("NONE", False, False, []),
        ("BACKWARD", True, False, [5]),
        ("BACKWARD_TRANSITIVE", True, False, [5, 2, 1]),
        ("FORWARD", False, True, [5]),
        ("FORWARD_TRANSITIVE", False, True, [5, 2, 1]),
        ("FULL", True, True, [5]),
        ("FULL_TRANSITIVE", True, True, [5, 2, 1]),
    ],
)
def test_what_each_level_asks_for(level: str, backward: bool, forward: bool, versions: list[int]) -> None:
    found = Level(level)
    assert (found.backward, found.forward) == (backward, forward)
    assert [e.version for e in to_compare(found, EARLIER)] == versions
    assert list(to_compare(found, [])) == []


def test_there_are_seven_levels() -> None:
    assert len(Level) == 7
