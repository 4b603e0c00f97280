"""Idempotency keys: what they must be, and what makes two requests the same."""

import pytest

from headgate.catalog.errors import CatalogError
from headgate.catalog.idempotency import once

KEY = "017F22E2-79B0-7CC3-98C4-DC0C0C07398F"


def test_without_a_header_there_is_no_key() -> None:
    assert once(None, "POST /x", b"{}") is None


def test_a_key_must_be_a_uuid() -> None:
    with pytest.raises(CatalogError) as caught:
        once("seven", "POST /x", b"{}")
    assert caught.value.status == 400


def test_the_same_request_has_the_same_fingerprint() -> None:
    assert once(KEY, "POST /x", b"{}") == once(KEY.lower(), "POST /x", b"{}")


@pytest.mark.parametrize("other", [("POST /x", b"{ }"), ("POST /y", b"{}"), ("POST /x{", b"}")])
def test_another_request_has_another_fingerprint(other: tuple[str, bytes]) -> None:
    assert once(KEY, "POST /x", b"{}") != once(KEY, *other)
