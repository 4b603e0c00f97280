"""The page of functions says what the code has, and every function has an answer that was computed by
hand."""

import re
from pathlib import Path

import pytest

from headgate.sql.functions import FUNCTIONS
from headgate.sql.functions.aggregates import AGGREGATES
from headgate.sql.reference import functions_page
from tests.integration.sql.answers import ANSWERS

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "sql-functions.md"


def test_the_page_is_made_of_the_code() -> None:
    assert PAGE.read_text() == functions_page(), (
        "write the page anew: python -c 'from headgate.sql.reference import functions_page; "
        'print(functions_page(), end="")\''
        " > docs/reference/sql-functions.md"
    )


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_every_function_is_tested(name: str) -> None:
    written = {"IS_JSON": r"IS JSON"}.get(name, rf"\b{name}\b")
    assert any(re.search(written, expression) for expression, _ in ANSWERS), (
        f"{name} has no answer in answers.py"
    )


def test_aggregates_are_no_functions() -> None:
    assert not set(FUNCTIONS) & set(AGGREGATES)
