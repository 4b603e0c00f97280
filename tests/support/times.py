"""Where a test run's time goes: a pytest plugin, and the report of `make test-times`.

With HEADGATE_TEST_TIMES=FOLDER each run writes a line per test into that folder: wall seconds of its set-up,
call and teardown, processor seconds of all processes of the run meanwhile, JVMs and stacks started meanwhile.
`python -m tests.support.times FOLDER` adds them up by file and by lane.
"""

import json
import os
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

FOLDER = "HEADGATE_TEST_TIMES"
INTERVAL_SECONDS = 0.25
# A process of ours by a word of its command line, in the order in which they are looked for.
KINDS = (
    ("broker", "kafka.Kafka"),
    ("catalog JVM", "py4j.GatewayServer"),
    ("driver JVM", "org.apache.spark.deploy.SparkSubmit"),
    ("stack", "headgate up"),
    ("server", "headgate.server"),
    ("engine", "headgate.engine"),
    ("query", "headgate.query"),
)


@dataclass
class Usage:
    """Processor seconds and processes started, up to one moment."""

    processor: float = 0.0
    started: Counter[str] = field(default_factory=Counter)


class Tree:
    """The processes below this one, also those that outlive their parents, as seen every quarter second."""

    def __init__(self) -> None:
        self._root = psutil.Process()
        self._seen: dict[tuple[int, float], float] = {}
        self._known: dict[tuple[int, float], psutil.Process] = {}
        self._started: Counter[str] = Counter()
        self._lock = threading.Lock()
        threading.Thread(target=self._watch, daemon=True).start()

    def usage(self) -> Usage:
        with self._lock:
            self._look()
            return Usage(sum(self._seen.values()), Counter(self._started))

    def _watch(self) -> None:
        while True:
            with self._lock:
                self._look()
            time.sleep(INTERVAL_SECONDS)

    def _look(self) -> None:
        for process in (self._root, *self._root.children(recursive=True), *self._known.values()):
            with suppress(psutil.Error):
                key = (process.pid, process.create_time())
                if key not in self._known:
                    kind = _kind(process)
                    if kind is not None:
                        self._started[kind] += 1
                    self._known[key] = process
                times = process.cpu_times()
                self._seen[key] = max(self._seen.get(key, 0.0), times.user + times.system)
        self._known = {key: process for key, process in self._known.items() if process.is_running()}


def _kind(process: psutil.Process) -> str | None:
    words = " ".join(process.cmdline())
    return next((kind for kind, word in KINDS if word in words), None)


class Times:
    """Writes a line for each test when it has ended."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = folder / f"{os.getpid()}.jsonl"
        self._tree = Tree()
        self._phases: dict[str, float] = {}
        self._outcome = "passed"

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._phases, self._outcome = {}, "passed"
        before, began = self._tree.usage(), time.monotonic()
        result = yield
        after = self._tree.usage()
        line = {
            "test": item.nodeid,
            "wall": time.monotonic() - began,
            "processor": after.processor - before.processor,
            "started": after.started - before.started,
            "outcome": self._outcome,
            **self._phases,
        }
        with self._file.open("a") as out:
            out.write(json.dumps(line) + "\n")
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._phases[report.when or "call"] = report.duration
        if report.outcome != "passed":
            self._outcome = report.outcome


@dataclass
class Total:
    tests: int = 0
    wall: float = 0.0
    processor: float = 0.0
    started: Counter[str] = field(default_factory=Counter)


def totals(folder: Path, by_lane: bool = False) -> dict[str, Total]:
    """What the runs that wrote into `folder` took, by file or by lane."""
    found: dict[str, Total] = defaultdict(Total)
    for path in sorted(folder.glob("*.jsonl")):
        for text in path.read_text().splitlines():
            line = json.loads(text)
            file = line["test"].partition("::")[0]
            total = found[file.split("/")[1] if by_lane else file]
            total.tests += 1
            total.wall += line["wall"]
            total.processor += line["processor"]
            total.started.update(line["started"])
    return found


def report(folder: Path, most: int = 40) -> str:
    """The lanes, then the files that take longest, then the tests."""
    lines = []
    for title, found in (("folder", totals(folder, by_lane=True)), ("file", totals(folder))):
        lines.append(f"{title:<58}{'tests':>6}{'wall s':>9}{'cpu s':>9}  started")
        for name, total in sorted(found.items(), key=lambda one: -one[1].wall)[:most]:
            started = ", ".join(f"{count} {kind}" for kind, count in sorted(total.started.items()))
            lines.append(f"{name:<58}{total.tests:>6}{total.wall:>9.1f}{total.processor:>9.1f}  {started}")
        lines.append("")
    tests = [json.loads(text) for path in folder.glob("*.jsonl") for text in path.read_text().splitlines()]
    lines.append(f"{'test':<100}{'setup s':>9}{'call s':>9}{'cpu s':>9}")
    for test in sorted(tests, key=lambda one: -one["wall"])[:most]:
        setup, call = test.get("setup", 0.0), test.get("call", 0.0)
        lines.append(f"{test['test'][-99:]:<100}{setup:>9.1f}{call:>9.1f}{test['processor']:>9.1f}")
    return "\n".join(lines)


if __name__ == "__main__":
    print(report(Path(sys.argv[1])))
