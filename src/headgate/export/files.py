"""The files of a run: one, or parts of a size. The same rows give the same parts, however batches are cut."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa

from headgate.export.definition import ExportOptions
from headgate.export.encoders import ENCODERS
from headgate.export.folder import CountingFile, FileFigures
from headgate.export.formats import SLICE_ROWS, Encoder, Sink
from headgate.export.packing import packed
from headgate.export.places import Destination

PARTS = "parts"


@dataclass(frozen=True)
class WrittenFile:
    """A file of a run; `draft` is where it lies until it gets its name."""

    name: str
    rows: int
    figures: FileFigures
    draft: Path | None = None

    def to_dict(self, folder: Destination) -> dict[str, Any]:
        figures = {"rows": self.rows, "bytes": self.figures.bytes, "sha256": self.figures.sha256}
        return {"file": folder.address(self.name), **figures}


def files_of(detail: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """The files that a run has recorded: of each `file` (its address), `rows`, `bytes` and `sha256`."""
    if PARTS in detail:
        parts: Sequence[Mapping[str, Any]] = detail[PARTS]
        return parts
    return [{name: detail.get(name) for name in ("file", "rows", "bytes", "sha256")}]


def name_in(file: Mapping[str, Any]) -> str:
    return str(file["file"]).rpartition("/")[2]


def even_blocks(batches: Iterable[pa.RecordBatch], rows: int = SLICE_ROWS) -> Iterator[pa.RecordBatch]:
    """The same rows in blocks of one size, the last of them shorter."""
    waiting: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        waiting.append(batch)
        count += batch.num_rows
        if count >= rows:
            table = pa.Table.from_batches(waiting).combine_chunks()
            whole = count - count % rows
            yield from table.slice(0, whole).to_batches(max_chunksize=rows)
            waiting, count = table.slice(whole).to_batches(), count % rows
    if count:
        yield from pa.Table.from_batches(waiting).combine_chunks().to_batches()


class _Counter:
    """A sink that counts what is put into it."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self.bytes = 0

    closed = False

    def write(self, data: bytes) -> int:
        self.bytes += len(data)
        self._sink.write(data)
        return len(data)

    def flush(self) -> None:
        """What is below is flushed when its block ends."""

    def writable(self) -> bool:
        return True


class FileWriter:
    """Writes drafts of the files of a run; `name_of` gives their names, by their numbers from 1.

    A part ends with the block of rows with which it reaches its size. Drafts are gone where the block fails.
    """

    def __init__(
        self,
        folder: Destination,
        options: ExportOptions,
        schema: pa.Schema,
        name_of: Callable[[int], str],
    ) -> None:
        self._folder = folder
        self._options = options
        self._schema = schema
        self._name_of = name_of
        self._inner = "none" if options.format in ("parquet", "xlsx") else options.compression
        self._open = ExitStack()
        self._encoder: Encoder | None = None
        self.files: list[WrittenFile] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            return
        try:
            if self._encoder is not None:
                self._encoder.abandon()
        finally:
            self._open.__exit__(kind, error, trace)
            for file in self.files:
                if file.draft is not None:
                    file.draft.unlink(missing_ok=True)

    def write(self, rows: pa.RecordBatch) -> None:
        encoder = self._encoder or self._begin()
        encoder.write(rows)
        self._rows += rows.num_rows
        limit = self._options.part_bytes
        if limit is not None and self._counter.bytes >= limit:
            self._end()

    def finish(self) -> None:
        """Without a row there is a file too."""
        if self._encoder is None and not self.files:
            self._begin()
        if self._encoder is not None:
            self._end()

    def _begin(self) -> Encoder:
        self._name = self._name_of(len(self.files) + 1)
        self._draft: tuple[Path, CountingFile] = self._open.enter_context(self._folder.draft(self._name))
        self._counter = _Counter(self._open.enter_context(packed(self._draft[1], self._inner)))
        self._rows = 0
        encoder = ENCODERS[self._options.format](self._counter, self._schema.names, self._options)
        self._encoder = encoder
        encoder.begin(self._schema)
        return encoder

    def _end(self) -> None:
        assert self._encoder is not None
        self._encoder.end()
        self._encoder = None
        self._open.close()
        path, out = self._draft
        self.files.append(WrittenFile(self._name, self._rows, out.figures, path))
