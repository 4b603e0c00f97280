"""Tutorials that are no world of their own, typed as they stand."""

from pathlib import Path

import pytest

from tests.support.pages import Typist, read_page
from tests.support.stack import Stack
from tests.support.there import There, take_away


@pytest.mark.parametrize("name", ["docs/tutorials/orders.md", "docs/tutorials/clean-topics.md"])
def test_a_page_does_what_it_says(stack: Stack, tmp_path: Path, name: str) -> None:
    before = There.on(stack)
    try:
        Typist(stack, read_page(name), tmp_path).type_on()
    finally:
        take_away(stack, before)
