"""Where each key's row is: a point look-up beside the table, so that a batch costs what the batch is.

A cache of the table on local disk, in RocksDB. It says which snapshot it reflects, written together with its
entries; one that is lost, behind or of another table is brought up to date from the table itself.
"""

import json
import logging
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from rocksdict import BlockBasedOptions, Cache, Options, Rdict, WriteBatch

from headgate.errors import IndexLost

log = logging.getLogger(__name__)

ID_LENGTH = 16
_LIVE, _DELETED = 1, 2
# The order of the record at its source follows.
_ENTRY = np.dtype([("kind", "u1"), ("file", ">u4"), ("pos", ">u8"), ("partition", ">i4"), ("offset", ">i8")])
_SIZE = _ENTRY.itemsize
_NOTHING = bytes(_SIZE)
_META = b"meta"
_FILE = b"file"
# An older layout is built anew.
_LAYOUT = 2
_CACHE_BYTES = 256 * 1024 * 1024
_WRITE_BUFFER_BYTES = 16 * 1024 * 1024


class Place(NamedTuple):
    """What is known of a key: the row's file and position, or that it was deleted (`path` is None)."""

    path: str | None
    pos: int
    partition: int
    offset: int
    order: bytes = b""


Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Entries:
    """Many live rows, column by column. `file` numbers the paths."""

    ids: Sequence[bytes]
    paths: Sequence[str]
    file: Numbers
    pos: Numbers
    partition: Numbers
    offset: Numbers
    orders: Sequence[bytes] | None = None


@dataclass(frozen=True)
class Found:
    """What is known of many keys, in the order in which they were asked for."""

    #: Where a key is known at all, and where it has a row.
    known: npt.NDArray[np.bool_]
    live: npt.NDArray[np.bool_]
    #: By the index's own numbers: see `KeyIndex.path`.
    file: Numbers
    pos: Numbers
    partition: Numbers
    offset: Numbers
    orders: Sequence[bytes]


@dataclass(frozen=True)
class Reflected:
    """The state of the table that the index stands for."""

    table_id: str
    snapshot_id: int
    sequence_number: int


class KeyIndex:
    """The index of one table. Not for two processes at once: RocksDB holds a lock on its folder."""

    def __init__(self, folder: Path) -> None:
        # An engine that was stopped and not ended holds its index: the next one has another.
        self._folders = [folder.with_name(f"{folder.name}{suffix}") for suffix in ("", "-2", "-3")]
        self._folder = folder
        self._db: Any = None
        self._paths: dict[int, str] = {}
        self._numbers: dict[str, int] = {}
        self._next = 0

    @property
    def is_open(self) -> bool:
        return self._db is not None

    def open(self) -> None:
        """Take it up as it is; one that cannot be read is as good as none."""
        if self._db is not None:
            return
        self._db = self._opened()
        meta = self._meta()
        if meta.get("layout") not in (None, _LAYOUT):
            self.clear()
        self._read_files()

    def _opened(self) -> Any:
        for folder in self._folders:
            self._folder = folder
            folder.parent.mkdir(parents=True, exist_ok=True)
            try:
                return Rdict(str(folder), options=_options())
            except Exception as error:  # noqa: BLE001 - RocksDB's errors have no class of their own
                if "lock" in str(error).lower():
                    continue
                log.warning("the key index in %s is built anew: %s", folder, error)
                shutil.rmtree(folder, ignore_errors=True)
                return Rdict(str(folder), options=_options())
        raise IndexLost(
            f"All of {', '.join(map(str, self._folders))} are in use.", "End the engines that were stopped."
        )

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """What cannot be read any more is thrown away, and built anew when the table is opened again."""
        try:
            yield
        except IndexLost:
            raise
        except Exception as error:
            self.close()
            shutil.rmtree(self._folder, ignore_errors=True)
            raise IndexLost(f"The key index in {self._folder} cannot be read: {error}.") from error

    def close(self) -> None:
        if self._db is not None:
            self._db.close()
            self._db = None

    def clear(self) -> None:
        """Forget everything."""
        self.close()
        shutil.rmtree(self._folder, ignore_errors=True)
        self._paths, self._numbers, self._next = {}, {}, 0
        self.open()

    @property
    def reflects(self) -> Reflected | None:
        meta = self._meta()
        if "snapshot_id" not in meta:
            return None
        return Reflected(meta["table_id"], meta["snapshot_id"], meta["sequence_number"])

    @property
    def truncated(self) -> dict[str, bytes]:
        """For each source, the order of the last record that removed everything before it."""
        return {source: bytes.fromhex(text) for source, text in self._meta().get("truncated", {}).items()}

    @property
    def is_empty(self) -> bool:
        """Whether no key was ever put; look-ups can be spared."""
        return not self._paths and not self._meta().get("marked")

    def size(self) -> int:
        """Bytes on disk and in memory not yet there."""
        on_disk = self._db.property_int_value("rocksdb.total-sst-files-size") or 0
        return int(on_disk) + int(self._db.property_int_value("rocksdb.cur-size-all-mem-tables") or 0)

    def get(self, ids: Sequence[bytes]) -> list[Place | None]:
        """In the order of `ids`, which should be sorted: neighbours share blocks."""
        found = self.find(ids)
        return [
            Place(
                self._paths[int(found.file[n])] if found.live[n] else None,
                int(found.pos[n]),
                int(found.partition[n]),
                int(found.offset[n]),
                found.orders[n],
            )
            if found.known[n]
            else None
            for n in range(len(ids))
        ]

    def find(self, ids: Sequence[bytes]) -> Found:
        """As `get`, column by column."""
        values: list[bytes | None] = [None] * len(ids)
        if ids and not self.is_empty:
            with self._watched():
                values = self._db.get(list(ids))
        heads = b"".join([_NOTHING if value is None else value[:_SIZE] for value in values])
        entries = np.frombuffer(heads, _ENTRY)
        orders = [b"" if value is None else value[_SIZE:] for value in values]
        kind = entries["kind"]
        file, pos, partition, offset = (
            entries[name].astype(np.int64) for name in ("file", "pos", "partition", "offset")
        )
        return Found(kind != 0, kind == _LIVE, file, pos, partition, offset, orders)

    def live(self) -> Iterator[tuple[str, int]]:
        """The file and position of every key that has a row: all entries are read."""
        for key, value in self._db.items():
            if len(key) == ID_LENGTH and value[0] == _LIVE:
                entry = np.frombuffer(value[:_SIZE], _ENTRY)[0]
                yield self._paths[int(entry["file"])], int(entry["pos"])

    def path(self, file: int) -> str:
        return self._paths[file]

    def put(
        self,
        entries: Iterable[tuple[bytes, Place]],
        reflects: Reflected | None,
        truncated: Mapping[str, bytes] | None = None,
        forget: Iterable[bytes] = (),
        rows: Sequence[Entries] = (),
    ) -> None:
        """All of it at once, with the snapshot that it makes the index stand for. None: it is being built."""
        batch = WriteBatch(raw_mode=True)
        marked = False
        for key, place in entries:
            marked = marked or place.path is None
            batch.put(key, self._value(place, batch))
        for many in rows:
            self._put_rows(batch, many)
        for key in forget:
            batch.delete(key)
        meta = self._meta() if reflects is not None else {}
        meta["layout"] = _LAYOUT
        if marked or self._meta().get("marked"):
            meta["marked"] = True
        if reflects is not None:
            meta |= vars(reflects)
        known = {**self.truncated, **(truncated or {})}
        if known:
            meta["truncated"] = {source: position.hex() for source, position in known.items()}
        batch.put(_META, json.dumps(meta).encode())
        with self._watched():
            self._db.write(batch)

    def fill(self, entries: Iterable[Entries]) -> None:
        """Many entries, piece by piece; until `put` says what they stand for, they stand for nothing."""
        for many in entries:
            self.put((), None, rows=[many])

    def _put_rows(self, batch: Any, rows: Entries) -> None:
        numbers = np.array([self._number(path, batch) for path in rows.paths], np.int64)
        packed = np.empty(len(rows.ids), _ENTRY)
        packed["kind"] = _LIVE
        packed["file"] = numbers[rows.file] if len(rows.ids) else 0
        for name in ("pos", "partition", "offset"):
            packed[name] = getattr(rows, name)
        data = packed.tobytes()
        values = [data[at : at + _SIZE] for at in range(0, len(data), _SIZE)]
        if rows.orders is not None:
            values = [value + order for value, order in zip(values, rows.orders, strict=True)]
        put = batch.put
        for key, value in zip(rows.ids, values, strict=True):
            put(key, value)

    # -- bytes

    def _value(self, place: Place, batch: Any) -> bytes:
        kind, number = _DELETED, 0
        if place.path is not None:
            kind, number = _LIVE, self._number(place.path, batch)
        packed = np.array([(kind, number, place.pos, place.partition, place.offset)], _ENTRY)
        return packed.tobytes() + place.order

    def _number(self, path: str, batch: Any) -> int:
        number = self._numbers.get(path)
        if number is None:
            number, self._next = self._next, self._next + 1
            self._numbers[path], self._paths[number] = number, path
            batch.put(_FILE + number.to_bytes(4, "big"), path.encode())
        return number

    def _meta(self) -> dict[str, Any]:
        found = self._db.get(_META)
        return {} if found is None else dict(json.loads(found))

    def _read_files(self) -> None:
        self._paths = {}
        for key, value in self._db.items(from_key=_FILE):
            if not key.startswith(_FILE):
                break
            # An id of a row may begin with the same bytes, but is longer.
            if len(key) == len(_FILE) + 4:
                self._paths[int.from_bytes(key[len(_FILE) :], "big")] = value.decode()
        self._numbers = {path: number for number, path in self._paths.items()}
        self._next = max(self._paths, default=-1) + 1


@cache
def _block_cache() -> Any:
    """One for all tables: what is asked for often stays in memory, whose ever it is."""
    return Cache(_CACHE_BYTES)


def _options() -> Any:
    table = BlockBasedOptions()
    table.set_bloom_filter(10, False)
    table.set_block_cache(_block_cache())
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_block_based_table_factory(table)
    options.set_max_background_jobs(2)
    # For each table; it is written to disk when it is full.
    options.set_write_buffer_size(_WRITE_BUFFER_BYTES)
    # Its own log of what it does: a few, small.
    options.set_keep_log_file_num(2)
    options.set_max_log_file_size(1024 * 1024)
    return options
