"""Names: which are accepted, and that no two meet in SQL or in a path."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from headgate.catalog.errors import CatalogError
from headgate.catalog.names import (
    LONGEST_SEGMENT,
    Identifier,
    check_name,
    parse_identifier,
    parse_namespace,
    path_segment,
    shown_levels,
    shown_names,
    stored_levels,
    stored_namespace,
)

names = st.text(st.characters(exclude_categories=("Cc", "Cs")), min_size=1, max_size=255).filter(
    lambda name: name not in (".", "..") and "\ufffd" not in name
)
hostile = ["a.b", "a b", "ü", "50%", "%2E", "it's", '"', "a/b", "a\\b", "..a", "~2e", "*", "a?b#c", "🚰"]


@pytest.mark.parametrize("name", hostile)
def test_odd_names_are_names(name: str) -> None:
    assert check_name(name) == name


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a\x00", "a\x1fb", "\n", "a\ud800", "\ufffd", "x" * 256, None, 7]
)
def test_what_cannot_be_kept_is_refused(name: object) -> None:
    with pytest.raises(CatalogError) as caught:
        check_name(name)
    assert caught.value.status == 400


def test_a_namespace_is_split_at_the_unit_separator() -> None:
    assert parse_namespace("a.b\x1fc") == ("a.b", "c")
    with pytest.raises(CatalogError):
        parse_namespace("a\x1f")


@pytest.mark.parametrize(
    "raw", [None, {}, [], {"namespace": "a", "name": "b"}, {"namespace": [], "name": "b"}]
)
def test_an_identifier_needs_both_parts(raw: object) -> None:
    with pytest.raises(CatalogError) as caught:
        parse_identifier(raw)
    assert caught.value.status == 400


def test_an_identifier_is_read_from_json() -> None:
    assert parse_identifier({"namespace": ["a", "b"], "name": "c.d"}) == Identifier(("a", "b"), "c.d")


@given(st.lists(names, min_size=1, max_size=4))
def test_levels_come_back_as_they_went(levels: list[str]) -> None:
    assert shown_levels(stored_levels(levels)) == levels
    assert shown_levels(stored_namespace(levels).split(".")) == levels


@given(names, names)
def test_no_two_names_share_a_path_segment(one: str, other: str) -> None:
    assume(one != other)
    assert path_segment(one) != path_segment(other)


@given(names)
def test_a_path_segment_is_safe_everywhere(name: str) -> None:
    segment = path_segment(name)
    assert 0 < len(segment) <= LONGEST_SEGMENT
    assert segment not in (".", "..")
    assert set(segment) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-~")


def test_answers_show_names_as_clients_know_them() -> None:
    document = {
        "namespaces": [["a%2Eb"]],
        "namespace": ["50%25"],
        "identifiers": [{"namespace": ["a%2Eb"], "name": "t"}],
    }
    assert shown_names(document) == {
        "namespaces": [["a.b"]],
        "namespace": ["50%"],
        "identifiers": [{"namespace": ["a.b"], "name": "t"}],
    }
