"""The end of a demo: what it says depends on whether its Headgate is there still."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from headgate.demo.ports import Progress
from headgate.demo.tour import Demo, show_what_next


class Lines:
    """A screen that keeps what it is told."""

    def __init__(self) -> None:
        self.text = ""

    def step(self, text: str) -> None:
        self.say(text)

    def say(self, text: str) -> None:
        self.text += text + "\n"

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        raise AssertionError("no table")

    def progress(self, text: str) -> AbstractContextManager[Progress]:
        raise AssertionError("nothing takes long")


class Silent:
    """A Headgate that only tells its addresses."""

    def run(self, words: Sequence[str]) -> None:
        raise AssertionError("nothing is run")

    def get(self, *path: str) -> Any:
        return {"addresses": {"console": "http://127.0.0.1:4711/"}}

    def prepare_queries(self) -> None:
        raise AssertionError("nothing is queried")

    def query(self, sql: str) -> list[dict[str, Any]]:
        raise AssertionError("nothing is queried")


@pytest.mark.parametrize("stays", [True, False])
def test_addresses_are_told_only_of_a_headgate_that_stays(stays: bool) -> None:
    screen = Lines()
    show_what_next(Demo("sales", Path("/data/of demo"), stays=stays), Silent(), screen)
    assert ("http://127.0.0.1:4711/" in screen.text) == stays
    assert ("export HEADGATE_DATA='/data/of demo'" in screen.text) == stays
    assert ("This Headgate ends now" in screen.text) != stays
    assert "headgate output sales" in screen.text
