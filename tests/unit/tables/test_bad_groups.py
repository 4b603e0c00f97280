"""Bad records of more kinds than are looked at together: all are counted, and the look ends."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from headgate.model import TableSpec
from headgate.tables.lane import BadGroup
from headgate.tables.materialize import GROUPS, Materializer
from headgate.tables.plan import Limits

LOOKS = 20


class Lane:
    """A batch with so many kinds of bad records, one of each."""

    def __init__(self, kinds: int) -> None:
        self._groups = [BadGroup("Undecodable", f"is odd: {n}", 1, 0, n, None) for n in range(kinds)]
        self.looks = 0

    def bad(self, _: Any, __: Any, limit: int) -> list[BadGroup]:
        self.looks += 1
        assert self.looks < LOOKS, "the look does not end"
        return self._groups[:limit]


@pytest.mark.parametrize("kinds", [1, GROUPS, 5 * GROUPS + 1])
def test_kinds_of_bad_records_are_found_however_many_they_are(kinds: int) -> None:
    lane = Lane(kinds)
    parts: Any = SimpleNamespace(evolve=lambda _: SimpleNamespace(headers=False))
    one = Materializer(
        TableSpec("orders", partition=()), "first", parts, cast(Any, lane), parts, parts, Limits(9, 9)
    )
    one._in_play = parts
    _, groups = one._understand(cast(Any, "records"))
    assert sum(group.count for group in groups) == kinds
