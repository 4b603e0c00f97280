"""Bytes on their way into a file, packed so that the same bytes give the same file."""

import gzip
import io
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from headgate.export.folder import CountingFile
from headgate.export.formats import Sink

# What is packed comes in pieces of one size: no packed byte depends on how rows were cut.
PIECE_BYTES = 1024 * 1024
GZIP_LEVEL = 6


class _Pieces(io.RawIOBase):
    """A sink as Python's buffers want it."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        piece = bytes(data)  # type: ignore[call-overload]
        self._sink.write(piece)
        return len(piece)


class EvenPieces:
    """Gives on pieces of one size, and what is left at the end."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._waiting = bytearray()

    def write(self, data: bytes) -> int:
        self._waiting += data
        while len(self._waiting) >= PIECE_BYTES:
            self._sink.write(bytes(self._waiting[:PIECE_BYTES]))
            del self._waiting[:PIECE_BYTES]
        return len(data)

    def finish(self) -> None:
        if self._waiting:
            self._sink.write(bytes(self._waiting))
            self._waiting.clear()


@contextmanager
def packed(out: CountingFile, compression: str) -> Iterator[Sink]:
    """Where what is to be packed goes; whole in `out` when the block ends."""
    match compression:
        case "gzip":
            # Without a name and a time, which the format has room for.
            with gzip.GzipFile(
                filename="", mode="wb", compresslevel=GZIP_LEVEL, fileobj=out, mtime=0
            ) as inner:
                even = EvenPieces(inner)
                yield even
                even.finish()
        case "zstd":
            with pa.CompressedOutputStream(pa.PythonFile(_Pieces(out), mode="w"), "zstd") as stream:
                even = EvenPieces(stream)
                yield even
                even.finish()
        case _:
            yield out
