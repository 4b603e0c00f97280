"""The list of planted defects fits the sources, and a defect counts as caught only if its test failed."""

import pytest

from scripts.mutants import ROOT, outcome, stale_entries
from scripts.planted_defects import MUTANTS

TEST = "tests/unit/test_x.py::test_it"


def test_every_mutant_fits_the_sources_and_names_a_test() -> None:
    assert stale_entries(ROOT) == []
    assert len(MUTANTS) >= 20
    assert all(mutant.harm.endswith(".") for mutant in MUTANTS)


@pytest.mark.parametrize(
    ("code", "line", "caught"),
    [
        (1, f"FAILED {TEST} - AssertionError: assert 1 == 2", True),
        (1, f"FAILED {TEST}[one - two] - Failed: DID NOT RAISE StaleBatch", True),
        (1, f"FAILED {TEST}", True),
        (1, f"FAILED {TEST} - NameError: name 'x' is not defined", False),
        (1, f"FAILED {TEST}_too - AssertionError", False),
        (1, f"ERROR {TEST} - RuntimeError: the broker did not start", False),
        (2, f"ERROR {TEST} - SyntaxError", False),
        (4, f"ERROR: not found: {TEST}", False),
        (0, "1 passed", False),
        (None, "", False),
    ],
)
def test_only_a_failure_of_the_named_test_catches_a_mutant(code: int | None, line: str, caught: bool) -> None:
    assert outcome(TEST, code, f"..F\n{line}\n1 failed in 1.00s\n")[0] is caught
