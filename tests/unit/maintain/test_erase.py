"""Which failure of an erasure says that nothing is erased."""

import pytest
from pyspark.errors import PySparkException

from headgate.maintain.erase import is_of_the_condition


class Failure(PySparkException):
    def __init__(self, state: str | None) -> None:
        super().__init__("failed")
        self._state = state

    def getSqlState(self) -> str | None:  # noqa: N802 - Spark's name
        return self._state


@pytest.mark.parametrize(
    ("state", "is_its"), [("22018", True), ("42703", True), ("XX000", False), ("KD000", False), (None, False)]
)
def test_only_a_failure_of_the_condition_says_that_nothing_is_erased(state: str | None, is_its: bool) -> None:
    """Any other may have come after the commit."""
    assert is_of_the_condition(Failure(state)) is is_its
