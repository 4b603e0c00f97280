"""JVMs start with an archive of their classes, and without one that is of no use."""

from pathlib import Path

import pytest

from headgate.jvm import Jvm, archive, archive_options


@pytest.fixture
def folder(jars: Path, tmp_path: Path) -> Path:
    """The same jars, without any archive."""
    (tmp_path / "spark").symlink_to(jars / "spark")
    return tmp_path


def test_without_an_archive_nothing_is_said(folder: Path) -> None:
    assert archive_options(folder, "query", "engine") == []


def test_the_first_that_is_there(folder: Path) -> None:
    archive(folder, "engine").touch()
    assert f"-XX:SharedArchiveFile={folder}/engine.jsa" in archive_options(folder, "query", "engine")
    archive(folder, "query").touch()
    assert f"-XX:SharedArchiveFile={folder}/query.jsa" in archive_options(folder, "query", "engine")


@pytest.mark.parametrize("content", [b"", b"no archive at all" * 1000])
def test_one_that_does_not_fit_is_left_alone(folder: Path, content: bytes) -> None:
    archive(folder, "server").write_bytes(content)
    with Jvm(folder) as jvm:
        assert jvm.java.java.lang.Integer.parseInt("7") == 7
