"""The engine is killed at each step of its work; what died in the middle of what is in `drills_on_….py`.

The drills share their engines: each holds its table where the engine is to die, one SIGKILL finds them all.
"""

import os
from collections.abc import Callable
from typing import Any

import pytest

from headgate.failpoints import POINTS
from tests.faults import (
    drills_on_batches,
    drills_on_maintenance,
    drills_on_rollbacks,
    drills_on_upserts,
)
from tests.support.rounds import Drill, Rounds
from tests.support.services import Services

SOAK = os.environ.get("HEADGATE_SOAK") == "1"
# Places of a batch that have a table of their own each.
ALONE = drills_on_batches.BATCH if SOAK else ("table-evolved", "dead-letters-published")
DRILLS: dict[str, Callable[[Rounds], Drill]] = {
    "each_step": drills_on_batches.killed_at_each_step,
    **{f"at_{place}": drills_on_batches.killed_at(place) for place in ALONE},
    **{
        f"good_in_the_first_try_and_bad_in_the_second_{others}": (
            drills_on_batches.good_in_the_first_try_and_bad_in_the_second(others)
        )
        for others in ("with-bad", "alone")
    },
    "retention_overtakes_a_batch_that_was_begun": (
        drills_on_batches.retention_overtakes_a_batch_that_was_begun
    ),
    "wiping_scratch_changes_nothing": drills_on_batches.wiping_scratch_between_two_runs,
    "each_step_of_the_mirror": drills_on_upserts.killed_at_each_step_of_the_mirror,
    "between_commit_and_index_and_the_index_deleted": (
        drills_on_upserts.killed_between_commit_and_index_and_the_index_deleted
    ),
    "on_the_way_of_an_erasure": drills_on_maintenance.killed_on_the_way_of_an_erasure,
    **drills_on_rollbacks.DRILLS,
}
# The first engines do what they are asked for; later ones look after the tables as well.
ENGINES: tuple[dict[str, Any], ...] = ({}, {}, drills_on_maintenance.EAGER)


@pytest.fixture(scope="module")
def ends(
    request: pytest.FixtureRequest, services: Services, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, BaseException | None]:
    """How each drill ended that this run has chosen."""
    chosen = {
        item.callspec.params["drill"]
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.originalname == test_killed.__name__
    }
    rounds = Rounds(services, tmp_path_factory.mktemp("rounds") / "points")
    return rounds.run({name: DRILLS[name](rounds) for name in DRILLS if name in chosen}, ENGINES)


@pytest.mark.soak
@pytest.mark.parametrize("drill", DRILLS)
def test_killed(ends: dict[str, BaseException | None], drill: str) -> None:
    """What the drill says of its table, whose engine was killed with others' at places of their own."""
    end = ends[drill]
    if end is not None:
        raise end


def test_every_place_of_a_table_has_a_drill() -> None:
    armed = {
        *drills_on_batches.BATCH,
        *drills_on_batches.REPLAY,
        *drills_on_upserts.OF_MIRROR,
        "index-written",
        *drills_on_maintenance.ALL,
        *drills_on_rollbacks.OF_ROLLBACK,
    }
    assert armed == {point for point in POINTS if not point.startswith("statement")}
