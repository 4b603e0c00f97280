"""How much memory is left, as Linux says it, and what follows for the query driver."""

from pathlib import Path

import pytest

from headgate.config import Query, Settings
from headgate.embedded.eager import start_query_driver
from headgate.embedded.memory import BESIDE_HEAP, available_bytes, driver_bytes
from headgate.store import Store

GIB = 1024**3


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """8 GiB are available, and nothing is said of control groups."""
    proc = tmp_path / "proc"
    (proc / "self").mkdir(parents=True)
    (proc / "meminfo").write_text(f"MemTotal: 1 kB\nMemAvailable:   {8 * 1024**2} kB\nSwapFree: 9 kB\n")
    return tmp_path


def left(machine: Path) -> int | None:
    return available_bytes(machine / "proc", machine / "groups")


def group(machine: Path, path: str, **files: str) -> None:
    folder = machine / "groups" / path
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)


def test_without_groups_the_machine_says_it(machine: Path) -> None:
    assert left(machine) == 8 * GIB
    (machine / "proc" / "self" / "cgroup").write_text("0::/a/b\n")
    assert left(machine) == 8 * GIB, "no group has a limit"


def test_a_group_above_may_leave_less(machine: Path) -> None:
    (machine / "proc" / "self" / "cgroup").write_text("0::/a/b\n")
    group(machine, "a/b", memory__max="max\n", memory__current="5\n")
    group(machine, "a", memory__max=f"{4 * GIB}\n", memory__current=f"{3 * GIB}\n")
    assert left(machine) == GIB
    group(machine, "a", memory__stat=f"anon 5\ninactive_file {GIB}\n")
    assert left(machine) == 2 * GIB, "pages that can be given back are free"


def test_groups_of_the_first_version_are_read_too(machine: Path) -> None:
    (machine / "proc" / "self" / "cgroup").write_text("5:cpu,cpuacct:/x\n4:memory:/x\n0::/\n")
    group(machine, "memory/x", memory__limit_in_bytes=f"{3 * GIB}", memory__usage_in_bytes=f"{GIB}")
    group(machine, "memory", memory__limit_in_bytes=str(2**63 - 4096), memory__usage_in_bytes="5")
    assert left(machine) == 2 * GIB


def test_what_is_not_told_is_not_known(tmp_path: Path) -> None:
    assert available_bytes(tmp_path, tmp_path) is None


@pytest.mark.parametrize(
    ("heap", "size"), [("2g", 2 * GIB), ("1500m", 1500 * 1024**2), ("2GB", 2 * GIB), ("2048", 2 * GIB)]
)
def test_a_heap_is_read_as_spark_reads_it(heap: str, size: int) -> None:
    assert driver_bytes(heap) == size + BESIDE_HEAP


@pytest.mark.parametrize(
    ("start", "free", "wanted", "said"),
    [
        ("eager", 3 * GIB, True, "starts in the background: 3.0 GiB"),
        (
            "eager",
            3 * GIB - 1,
            False,
            "somebody asks: 3.0 GiB of memory are free, and it may take 3.0 GiB",
        ),
        ("eager", None, False, "when somebody asks: how much memory is free is not known"),
        ("lazy", 100 * GIB, False, None),
    ],
)
def test_the_query_driver_starts_behind_ready_if_there_is_memory(
    settings: Settings, start: str, free: int | None, wanted: bool, said: str | None
) -> None:
    store = Store.open(settings.store_url)
    lines: list[str] = []
    query = Query.model_validate({"start": start, "memory": "2g"})
    assert start_query_driver(query, store, lines.append, lambda: free) is wanted
    assert store.process("query").wanted is wanted
    assert (said in lines[0]) if said is not None else not lines
    store.close()
