"""A process begins without a search for garbage, and has one afterwards."""

import gc
import sys
from types import ModuleType

import pytest

from headgate.embedded.start import run_main


def test_garbage_is_looked_for_when_the_process_runs_and_not_before(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = ModuleType("begun")
    begun.main = lambda: 10 * gc.isenabled() + (gc.get_freeze_count() > 0)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "begun", begun)
    before = gc.isenabled()
    try:
        assert run_main("begun") == 11
    finally:
        gc.unfreeze()
        assert gc.isenabled() is before
