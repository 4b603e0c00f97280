"""Tokens: made once, for their owner only."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from headgate.embedded.secrets import secret


def test_a_secret_is_made_once(tmp_path: Path) -> None:
    first = secret(tmp_path, "connect")

    assert len(first) >= 40
    assert secret(tmp_path, "connect") == first
    assert secret(tmp_path, "other") != first


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_only_its_owner_can_read_it(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        secret(tmp_path, "connect")
    finally:
        os.umask(before)

    assert (tmp_path / "secrets").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "secrets" / "connect").stat().st_mode & 0o777 == 0o600


def test_all_who_ask_at_once_get_the_same(tmp_path: Path) -> None:
    with ThreadPoolExecutor(16) as pool:
        found = set(pool.map(lambda _: secret(tmp_path, "connect"), range(64)))

    assert len(found) == 1
    assert [file.name for file in (tmp_path / "secrets").iterdir()] == ["connect"]
