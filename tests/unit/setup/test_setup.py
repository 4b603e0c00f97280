"""The progress that `make setup` shows, from what pip and Maven print."""

import io
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from scripts.setup import (
    PACKAGES,
    ROOT,
    MavenProgress,
    PipProgress,
    Report,
    SetupFailed,
    count_requirements,
    folder_size,
    format_seconds,
    format_size,
    parse_size,
    remove,
    run,
    unpack_postgres,
)

PIP = """\
Looking in indexes: https://packages.example/simple
Ignoring colorama: markers 'sys_platform == "win32"' don't match your environment
Collecting alembic==1.20.1 (from -r requirements.lock (line 1))
  Obtaining dependency information for alembic==1.20.1 from https://packages.example/alembic.whl.metadata
  Downloading alembic-1.20.1-py3-none-any.whl.metadata (7.2 kB)
Requirement already satisfied: numpy==2.4.6 in ./.venv/lib (from -r requirements.lock (line 9)) (2.4.6)
  Using cached alembic-1.20.1-py3-none-any.whl (262 kB)
Collecting pyspark[connect]==4.1.1 (from -r requirements.lock (line 5))
  Downloading pyspark-4.1.1.tar.gz (455.4 MB)
"""
MAVEN = """\
[INFO] Downloading from central: https://repository.example/org/plugin/plugin-3.8.1.pom
[INFO] Downloaded from central: https://repository.example/org/plugin/plugin-3.8.1.pom (4.3 kB at 17 kB/s)
[INFO] Downloading from central: https://repository.example/org/a/big/1.12.0/big-1.12.0.jar
[INFO] Downloading from central: https://repository.example/org/a/small/1.0/small-1.0.jar
[INFO] Downloaded from central: https://repository.example/org/a/small/1.0/small-1.0.jar (12 MB at 1.9 MB/s)
"""


def pip_progress(folder: Path, output: str, packages: int = 4) -> PipProgress:
    progress = PipProgress(packages, 600_000_000, folder, folder)
    for line in output.splitlines():
        progress.read(line)
    return progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("number", "unit", "size"),
    [("7.2", "kB", 7_200), ("455.4", "MB", 455_400_000), ("12", "B", 12), ("1,024", "bytes", 1_024)],
)
def test_sizes_of_pip_and_maven_are_parsed(number: str, unit: str, size: int) -> None:
    assert parse_size(number, unit) == size


def test_sizes_and_times_are_short() -> None:
    assert [format_size(size) for size in (0, 7_200, 262_000_000, 1_500_000_000)] == [
        "0 kB",
        "7 kB",
        "262 MB",
        "1.5 GB",
    ]
    assert [format_seconds(seconds) for seconds in (4.6, 59.9, 134)] == ["5 s", "1 min 0 s", "2 min 14 s"]


def test_requirements_are_counted_without_hashes_and_comments() -> None:
    lock = [
        "# a comment",
        "alembic==1.20.1 \\",
        "    --hash=sha256:83",
        "numpy==2.4.6 ; sys_platform != 'win32' \\",
    ]

    assert count_requirements(lock) == 2


def test_pip_state_names_the_file_and_the_bytes_that_have_arrived(tmp_path: Path) -> None:
    progress = pip_progress(tmp_path, PIP)
    (tmp_path / "pip-unpack-x").mkdir()
    (tmp_path / "pip-unpack-x" / "pyspark-4.1.1.tar.gz").write_bytes(b"\0" * 5_000_000)

    assert progress.state() == (
        "3 of 3 packages, 5 MB of about 600 MB: downloading pyspark-4.1.1.tar.gz, 5 MB of 455 MB"
    )


def test_pip_file_counts_as_downloaded_once_pip_goes_on(tmp_path: Path) -> None:
    progress = pip_progress(tmp_path, PIP)
    assert (progress.downloaded, progress.cached) == (0, 262_000)

    progress.read("  Building wheel for pyspark (pyproject.toml): started")

    assert (progress.downloaded, progress.cached) == (455_400_000, 262_000)
    assert progress.state().endswith("456 MB of about 600 MB: building pyspark, 0 kB unpacked")


def test_pip_state_shows_how_the_folder_grows_while_pip_unpacks(tmp_path: Path) -> None:
    progress = pip_progress(tmp_path, "Installing collected packages: alembic, pyspark\n")
    (tmp_path / "module.py").write_bytes(b"\1" * 3_000_000)

    assert progress.state().endswith(f": installing, {format_size(folder_size(tmp_path))} in {tmp_path.name}")
    assert folder_size(tmp_path) >= 3_000_000


def test_more_bytes_than_expected_raise_the_expected_ones(tmp_path: Path) -> None:
    progress = PipProgress(1, 1_000, tmp_path, tmp_path)
    progress.read("Downloading large-1.0-py3-none-any.whl (2.0 MB)")
    progress.finish()

    assert "2 MB of about 2 MB" in progress.state()


def test_maven_state_counts_bytes_and_names_files_without_hosts() -> None:
    progress = MavenProgress(250_000_000)
    for line in MAVEN.splitlines():
        progress.read(line)

    assert progress.state() == "12 MB of about 250 MB: downloading big-1.12.0.jar"

    progress.read("[INFO] BUILD SUCCESS")

    assert progress.state() == "12 MB of about 250 MB: resolving"


def test_report_without_a_terminal_writes_a_line_every_five_seconds() -> None:
    out, now = io.StringIO(), 0.0
    report = Report("jars", out, lambda: now)
    for now in range(12):  # noqa: B007 - the clock reads it
        report.progress(lambda: "resolving")

    assert out.getvalue() == "jars: 5 s, resolving\njars: 10 s, resolving\n"


def test_report_on_a_terminal_rewrites_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    out, now = Terminal(), 0.0
    report = Report("jars", out, lambda: now)
    now = 1.0
    report.progress(lambda: "resolving, and more than fits")
    report.line("done")

    assert out.getvalue() == "\rjars: 1 s, resolvin\x1b[K\rjars: done\x1b[K\n"


def test_failed_command_shows_the_end_of_its_output(capsys: pytest.CaptureFixture[str]) -> None:
    script = "for number in range(100): print('line', number)\nprint('no such package')\nraise SystemExit(3)"

    with pytest.raises(SetupFailed, match="ended with code 3"):
        run([sys.executable, "-c", script], MavenProgress(0), Report("jars", sys.stdout))

    out = capsys.readouterr().out
    assert "line 99\n  no such package\n" in out
    assert "line 50\n" not in out


def test_postgres_is_unpacked_and_its_jar_removed(tmp_path: Path) -> None:
    folder = tmp_path / "postgres"
    (tmp_path / "bin").mkdir()
    folder.mkdir()
    program = tmp_path / "bin" / "initdb"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    with tarfile.open(tmp_path / "postgres.txz", "w:xz") as archive:
        archive.add(program, "bin/initdb")
    with zipfile.ZipFile(folder / "binaries.jar", "w") as jar:
        jar.write(tmp_path / "postgres.txz", "postgres-linux-x86_64.txz")

    unpack_postgres(folder)

    assert [path.name for path in folder.iterdir()] == ["bin"]
    assert (folder / "bin" / "initdb").stat().st_mode & 0o777 == 0o755


def test_folder_without_the_jar_of_postgres_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SetupFailed, match="has 0"):
        unpack_postgres(tmp_path)


def test_link_is_removed_and_its_target_kept(tmp_path: Path) -> None:
    target, link = tmp_path / "installed", tmp_path / "postgres"
    target.mkdir()
    link.symlink_to(target)

    remove(link)

    assert target.is_dir()
    assert not link.is_symlink()


def locked(purpose: str) -> set[str]:
    """The lines of a lock file that name a package and its version."""
    lines = (ROOT / PACKAGES[purpose].sources[0]).read_text().splitlines()
    return {line for line in lines if line[:1].isalnum()}


def test_demo_packages_are_locked_to_the_versions_of_the_tests() -> None:
    assert locked("demo") < locked("tests")
