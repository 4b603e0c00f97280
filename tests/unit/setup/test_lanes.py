"""`make test` runs each test file once, in one of its lanes."""

import os
import subprocess
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_each_test_file_is_in_one_lane() -> None:
    files = Counter(file for lane in commands_of_make_test() for file in files_of(lane))
    every = {str(file.relative_to(ROOT)) for file in (ROOT / "tests").rglob("test_*.py")}
    assert files == Counter(every)


def commands_of_make_test() -> list[list[str]]:
    """The arguments of each run of pytest, as make would start it."""
    # Make tells those that it starts how it was started itself.
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("MAKE", "MFLAGS"))}
    printed = subprocess.run(
        ["make", "--dry-run", "test"], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    words = [line.split() for line in printed.stdout.splitlines()]
    return [line[line.index("pytest") + 1 :] for line in words if "pytest" in line]


def files_of(arguments: list[str]) -> set[str]:
    left_out = {word.removeprefix("--ignore=") for word in arguments if word.startswith("--ignore=")}
    asked = [word for word in arguments if word.startswith("tests/")]
    return set().union(*map(files_below, asked)).difference(*map(files_below, left_out))


def files_below(place: str) -> set[str]:
    path = ROOT / place
    found = [path] if path.is_file() else list(path.rglob("test_*.py"))
    assert found, f"there is no {place}"
    return {str(file.relative_to(ROOT)) for file in found}
