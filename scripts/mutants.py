"""Defects planted one at a time, each of which a named test must catch: `make mutants`.

`planted_defects.py` has the lines on which exactly-once, fencing and access rest. For each, a copy of the
sources gets the line replaced, and its test is run on the copy: the test must fail. A mutant that survives is
a line that could be broken tomorrow with every check green. `tests/unit/test_mutants.py` keeps the list true.
"""

import argparse
import ast
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import SimpleQueue

from scripts.planted_defects import MUTANTS, Mutant

ROOT = Path(__file__).resolve().parents[1]
COPIED = ("src", "tests", "scripts", "pyproject.toml")
LINKED = (".venv", ".jars")
# Unit tests run two at a time. The others start a broker, a JVM or Spark, and have the machine to themselves.
UNIT_WORKERS = 2
TIMEOUT_SECONDS = 900.0
GRACE_SECONDS = 60.0
TESTS_FAILED = 1
# A mutant that raises these is no defect that a user could meet: any test would stumble over it.
BROKEN = ("SyntaxError", "ImportError", "ModuleNotFoundError", "NameError", "UnboundLocalError")


@dataclass(frozen=True)
class Result:
    """What a mutant's test did: `reason` is its failure, or why the mutant counts as not caught."""

    mutant: Mutant
    caught: bool
    reason: str
    seconds: float


def stale_entries(root: Path) -> list[str]:
    """Why entries no longer fit the sources: their text does not stand exactly once, their test is gone."""
    stale = [f"{mutant.name}: {problem}" for mutant in MUTANTS for problem in _problems(mutant, root)]
    names = [mutant.name for mutant in MUTANTS]
    twice = sorted({name for name in names if names.count(name) > 1})
    return stale + [f"{name}: two mutants have this name" for name in twice]


def _problems(mutant: Mutant, root: Path) -> Iterator[str]:
    source = root / mutant.file
    text = source.read_text() if source.is_file() else ""
    count = text.count(mutant.old)
    if count != 1:
        yield f"its old text stands {count} times in {mutant.file}"
    else:
        try:
            ast.parse(text.replace(mutant.old, mutant.new))
        except SyntaxError as error:
            yield f"its new text is not Python: {error}"
    path, _, name = mutant.test.partition("::")
    test_file = root / path
    tree = ast.parse(test_file.read_text() if test_file.is_file() else "")
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    if name.partition("[")[0] not in functions:
        yield f"there is no test {mutant.test}"


class Copy:
    """A copy of the sources, in which one mutant at a time is planted."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        for name in COPIED:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(ROOT / name, folder / name)
        for name in LINKED:
            if (ROOT / name).exists():
                (folder / name).symlink_to((ROOT / name).resolve())

    def run(self, mutant: Mutant) -> Result:
        began = time.monotonic()
        with self._planted(mutant):
            code, output = self.pytest([mutant.test], TIMEOUT_SECONDS)
        caught, reason = outcome(mutant.test, code, output)
        return Result(mutant, caught, reason, time.monotonic() - began)

    def pytest(self, tests: Sequence[str], timeout: float) -> tuple[int | None, str]:
        """The exit code, None after a timeout, and the output."""
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", "-q", "--tb=no", "-p", "no:cacheprovider", *tests],
            cwd=self._folder,
            env=self._environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            output, _ = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            return None, _interrupt(process)
        except BaseException:
            _interrupt(process)
            raise
        return process.returncode, output

    def _environment(self) -> dict[str, str]:
        dropped = ("HEADGATE_SOAK", "HEADGATE_TEST_TIMES")
        kept = {name: value for name, value in os.environ.items() if name not in dropped}
        # pytest cuts off the reason of a failure where a line is short.
        return {**kept, "PYTHONPATH": str(self._folder / "src"), "COLUMNS": "400"}

    @contextmanager
    def _planted(self, mutant: Mutant) -> Iterator[None]:
        path = self._folder / mutant.file
        text = path.read_text()
        _write(path, text.replace(mutant.old, mutant.new))
        try:
            yield
        finally:
            _write(path, text)


def _interrupt(process: subprocess.Popen[str]) -> str:
    """The output up to now. As after Ctrl-C, fixtures end the processes that they have started."""
    process.send_signal(signal.SIGINT)
    try:
        output, _ = process.communicate(timeout=GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        output, _ = process.communicate()
    return output


def _write(path: Path, text: str) -> None:
    path.write_text(text)
    # Bytecode is matched by second and size: a mutant of the same length would run as its original.
    Path(importlib.util.cache_from_source(str(path))).unlink(missing_ok=True)


def outcome(test: str, code: int | None, output: str) -> tuple[bool, str]:
    """Whether the test failed as a test, and its reason, or why the mutant is not caught.

    A test without its parameters in brackets stands for all of them: one that fails is enough.
    """
    if code is None:
        return False, f"no end after {TIMEOUT_SECONDS:g} s"
    if code == 0:
        return False, "the test passes"
    failed = re.compile(rf"FAILED {re.escape(test)}(?:\[.*?\])?(?: - (?P<reason>.*))?")
    matches = filter(None, map(failed.fullmatch, output.splitlines()))
    reasons = [match["reason"] or "failed" for match in matches]
    if code != TESTS_FAILED or not reasons:
        lines = output.strip().splitlines()
        return False, f"exit code {code} without a failure of the test: {lines[-1] if lines else 'no output'}"
    broken = [reason for reason in reasons if reason.startswith(BROKEN)]
    if broken:
        return False, f"the mutant does not run: {broken[0]}"
    return True, reasons[0]


class Report:
    """Progress on stderr, line by line."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._done = 0

    def add(self, result: Result) -> None:
        self._done += 1
        mutant = result.mutant
        state = f"caught by {mutant.test}" if result.caught else f"SURVIVED {mutant.test}: {result.reason}"
        tell(f"{self._done} of {self._count}  {mutant.name}  {state}  ({result.seconds:.1f} s)")


def tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def check_unbroken(copy: Copy, mutants: Sequence[Mutant]) -> bool:
    """Whether the named tests pass while nothing is planted: one that fails anyway catches nothing."""
    passed = True
    for is_unit in (True, False):
        # Sorted: tests of the catalog's JVM come before those that start Spark, as in a whole run.
        tests = sorted({mutant.test for mutant in mutants if mutant.is_unit is is_unit})
        if not tests:
            continue
        began = time.monotonic()
        code, output = copy.pytest(tests, TIMEOUT_SECONDS * 2)
        kind = "unit" if is_unit else "integration"
        seconds = time.monotonic() - began
        tell(f"{len(tests)} {kind} tests without a mutant: exit code {code}, {seconds:.1f} s")
        if code != 0:
            tell(output)
            passed = False
    return passed


def run(mutants: Sequence[Mutant]) -> list[Result]:
    """Every mutant's result, in the order of the list; empty when a test fails without a mutant."""
    with tempfile.TemporaryDirectory(prefix="headgate-mutants-") as folder:
        copies = [Copy(_new_folder(folder, number)) for number in range(UNIT_WORKERS)]
        if not check_unbroken(copies[0], mutants):
            return []
        report, results = Report(len(mutants)), list[Result]()
        idle: SimpleQueue[Copy] = SimpleQueue()
        for copy in copies:
            idle.put(copy)

        def in_idle_copy(mutant: Mutant) -> Result:
            copy = idle.get()
            try:
                return copy.run(mutant)
            finally:
                idle.put(copy)

        with ThreadPoolExecutor(UNIT_WORKERS) as workers:
            units = [workers.submit(in_idle_copy, mutant) for mutant in mutants if mutant.is_unit]
            try:
                for future in as_completed(units):
                    results.append(future.result())
                    report.add(results[-1])
            except BaseException:
                workers.shutdown(wait=False, cancel_futures=True)
                raise
        for mutant in mutants:
            if not mutant.is_unit:
                results.append(copies[0].run(mutant))
                report.add(results[-1])
    return sorted(results, key=lambda result: mutants.index(result.mutant))


def _new_folder(parent: str, number: int) -> Path:
    path = Path(parent) / str(number)
    path.mkdir()
    return path


def table(results: Sequence[Result]) -> str:
    rows = [("mutant", "file", "test", "seconds", "caught")]
    rows += [
        (
            result.mutant.name,
            result.mutant.file.removeprefix("src/headgate/"),
            result.mutant.test.removeprefix("tests/"),
            f"{result.seconds:.1f}",
            "yes" if result.caught else f"NO: {result.reason}",
        )
        for result in results
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description="Plant defects one at a time; each must fail its test.")
    parser.add_argument("--only", action="append", metavar="NAME", help="this mutant alone; may be repeated")
    parser.add_argument("--list", action="store_true", help="show the mutants and run nothing")
    parser.add_argument("--json", action="store_true", help="print results as JSON")
    options = parser.parse_args()
    unknown = set(options.only or ()) - {mutant.name for mutant in MUTANTS}
    if unknown:
        parser.error(f"there is no mutant {', '.join(sorted(unknown))}; --list shows them")
    mutants = [mutant for mutant in MUTANTS if not options.only or mutant.name in options.only]
    if options.list:
        if options.json:
            print(json.dumps([asdict(mutant) for mutant in mutants], indent=2))
        else:
            print("\n".join(f"{mutant.name}\n    {mutant.harm}\n    {mutant.test}" for mutant in mutants))
        return 0
    if stale := stale_entries(ROOT):
        tell("The list does not fit the sources any more:\n" + "\n".join(stale))
        return 1
    began = time.monotonic()
    results = run(mutants)
    if options.json:
        print(json.dumps([asdict(result) for result in results], indent=2))
    elif results:
        print(table(results))
    survived = [result.mutant.name for result in results if not result.caught]
    tell(
        f"{len(results) - len(survived)} of {len(mutants)} mutants caught in {time.monotonic() - began:.0f} s"
        + (f"; survived: {', '.join(survived)}" if survived else "")
    )
    return 0 if results and not survived else 1


if __name__ == "__main__":
    sys.exit(main())
