"""Queries of the lake as commands ask them: by the API, their rows read as they come."""

import io
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headgate.cli.client import Client, connect, error_of_line
from headgate.cli.output import progress
from headgate.errors import ServerUnavailable, TerminalError

if TYPE_CHECKING:
    import pyarrow as pa

QUERIES = ("queries",)
LAST_WORD = b"headgate"
COMPLETED = "Completed"
POLL_SECONDS = 0.25
START_SECONDS = 120.0


class Answer:
    """A query's rows, batch by batch; `end` is known after the last."""

    def __init__(self, stream: "pa.RecordBatchReader", query_id: str = "") -> None:
        self.id = query_id
        self.schema: pa.Schema = stream.schema
        self.columns: list[str] = list(stream.schema.names)
        self.end: Mapping[str, Any] = {}
        self._stream = stream

    def batches(self) -> "Iterator[pa.RecordBatch]":
        """As they come: none is kept."""
        import pyarrow as pa

        try:
            while True:
                batch, metadata = self._stream.read_next_batch_with_custom_metadata()
                if metadata is not None and LAST_WORD in metadata:
                    self._take_end(json.loads(metadata[LAST_WORD]))
                    return
                yield batch
        except (pa.ArrowInvalid, OSError, StopIteration) as error:
            raise _cut_short() from error

    def rows(self) -> Iterator[Sequence[Any]]:
        """By place, since two columns may have one name; values in JSON's types, nothing rounded."""
        for batch in self.batches():
            yield from zip(*(_values(column) for column in batch.columns), strict=True)

    def _take_end(self, end: Mapping[str, Any]) -> None:
        if end["op"] == "error":
            raise error_of_line(end)
        if end["state"] != COMPLETED:
            # What came before looks like all of it.
            raise TerminalError("The query was cancelled: its rows are not all there.", "Ask again.")
        self.end = end


@contextmanager
def answer(body: Mapping[str, Any], data: Path | None, path: Sequence[str] = QUERIES) -> Iterator[Answer]:
    """What is asked, as long as the block lasts: who leaves it early stops the query."""
    import pyarrow as pa

    with connect(data) as client:
        asked = _ask(client, path, {**body, "format": "arrow"})
        with client.content("queries", asked["id"], "rows") as pieces:
            try:
                stream = pa.ipc.open_stream(pa.PythonFile(_Pieces(pieces), mode="r"))
            except (pa.ArrowInvalid, OSError) as error:
                raise _cut_short() from error
            yield Answer(stream, str(asked["id"]))


def rows_of(sql: str, data: Path | None) -> list[dict[str, Any]]:
    """All rows of a query of the lake."""
    with answer({"sql": sql, "lake": True}, data) as found:
        return [dict(zip(found.columns, row, strict=True)) for row in found.rows()]


def _values(column: "pa.Array") -> list[Any]:
    """A column's values in JSON's types: as Arrow gives them, where those are the same."""
    import pyarrow as pa

    values: list[Any] = column.to_pylist(maps_as_pydicts="strict")
    kind = column.type
    is_plain = pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_string(kind)
    return values if is_plain or pa.types.is_null(kind) else [plain(value) for value in values]


def plain(value: Any) -> Any:
    """In JSON's types, nothing rounded; bytes as `topic consume` shows them."""
    from headgate.kafka.readable import exact

    match value:
        case None | str() | bool() | int():
            return value
        case dict():
            return {str(key): plain(item) for key, item in value.items()}
        case list():
            return [plain(item) for item in value]
        case datetime():
            return str(value)
    return exact(value)


def _ask(client: Client, path: Sequence[str], body: Mapping[str, Any]) -> Any:
    """The query driver is started for it, if it does not run."""
    if client.get("query")["state"] != "ready":
        start_driver(client)
    return client.post(*path, body=body)


def start_driver(client: Client) -> None:
    """The query driver runs only when somebody asks."""
    client.post("query", "start")
    deadline = time.monotonic() + START_SECONDS
    with progress("starting the query driver") as shown:
        while (state := client.get("query")["state"]) != "ready":
            shown.update(f"the query driver is {state}")
            if time.monotonic() > deadline:
                raise ServerUnavailable(
                    f"The query driver is still {state} after {START_SECONDS:.0f} s.",
                    "See logs/query.log in the data folder.",
                )
            time.sleep(POLL_SECONDS)


class _Pieces(io.RawIOBase):
    """An answer's pieces as a file."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = b""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        parts, missing = [], size
        while missing != 0:
            if not self._rest:
                self._rest = next(self._pieces, b"")
                if not self._rest:
                    break
            taken = self._rest if missing < 0 else self._rest[:missing]
            self._rest = self._rest[len(taken) :]
            parts.append(taken)
            missing -= len(taken) if missing > 0 else 0
        return b"".join(parts)


def _cut_short() -> ServerUnavailable:
    return ServerUnavailable("The rows have ended before the query did.", "Ask again.")
