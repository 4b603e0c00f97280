"""The difference between a Delta log and a snapshot, file by file."""

from typing import Any, cast
from unittest.mock import MagicMock

from headgate.delta.actions import add_action
from headgate.delta.state import LogState
from headgate.tables.mirror import DeltaMirror


class Live:
    """A source whose snapshot has these data files, each with the names of its delete files."""

    def __init__(self, **files: tuple[str, ...]) -> None:
        self._files = files

    def live(self, *_: Any) -> dict[str, tuple[str, tuple[str, ...]]]:
        return {path: (path, deletes) for path, deletes in self._files.items()}

    def data_file(self, _: Any, file: str) -> str:
        return file

    def deletes_tag(self, deletes: tuple[str, ...]) -> str | None:
        return ",".join(deletes) or None


def difference(logged: dict[str, str | None], source: Live) -> Any:
    """From files by path with the delete files that the log knows of, to those of the source."""
    state = LogState()
    for path, deletes in logged.items():
        action = add_action(path, {"file-size-in-bytes": 1}, "{}", 1, True, None, deletes=deletes)
        state.files[path] = action["add"]
    mirror = DeltaMirror(MagicMock(), cast(Any, None), "orders")
    mirror._source = cast(Any, source)
    return mirror._difference(None, state, None)


def test_files_that_are_gone_are_removed_and_new_ones_added() -> None:
    found = difference({"a": None, "b": None}, Live(b=(), c=()))
    assert (found.removed, found.added, found.vectors) == (["a"], ["c"], {})


def test_a_file_whose_deleted_rows_changed_gets_another_vector() -> None:
    found = difference(
        {"a": None, "b": "old", "c": "same", "d": "old"}, Live(a=("x",), b=("y",), c=("same",), d=())
    )
    assert (found.removed, found.added) == ([], [])
    assert found.vectors == {"a": ("x",), "b": ("y",), "d": ()}


def test_a_new_file_comes_with_the_rows_that_are_deleted_in_it() -> None:
    found = difference({}, Live(a=(), b=("x",)))
    assert (found.added, found.vectors) == (["a", "b"], {"b": ("x",)})
