"""What the records of an upsert table's batch do, and what becomes of it when they meet the table's rows."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from headgate.tables.deleted_keys import Mark
from headgate.tables.key_index import Numbers, Place
from headgate.tables.orders import comparable, order_of, source_of
from headgate.tables.origin import FIRST_STREAM, LAST_SNAPSHOT
from headgate.tables.records import DELETE, TRUNCATE, UPSERT


@dataclass
class Verdict:
    """What the index says of a batch's keys."""

    #: Rows that go, by file and position, and their keys.
    doomed: dict[str, BitMap64] = field(default_factory=dict)
    doomed_ids: list[bytes] = field(default_factory=list)
    #: Keys whose rows only a truncate removes, and what the index says of them from then on.
    gone: list[tuple[bytes, Place]] = field(default_factory=list)
    #: Keys whose record comes after a later one.
    stale: list[bytes] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    #: Records that are written, by their numbers, in the order of their keys: tasks write them so.
    upserts: Numbers = field(default_factory=lambda: np.empty(0, np.int64))
    differs: bool = False
    #: Whether a record that is written is of another generation than the first.
    has_generations: bool = False
    #: Rows that go, of earlier generations than the record that replaces or deletes them.
    repeated: int = 0
    #: The order of a truncate; empty where its source does not tell it.
    truncate: bytes | None = None
    truncated: dict[str, bytes] = field(default_factory=dict)

    def doom(self, who: bytes, path: str, pos: int) -> None:
        self.doomed.setdefault(path, BitMap64()).add(pos)
        self.doomed_ids.append(who)


class Records:
    """What the records of a batch do, column by column, with the place of each in its task."""

    def __init__(self, found: pa.Table) -> None:
        self._found = found
        self.ids: list[bytes] = found["id"].to_pylist()
        self.upsert: npt.NDArray[np.bool_] = pc.equal(found["op"], UPSERT).to_numpy()
        self.delete: npt.NDArray[np.bool_] = pc.equal(found["op"], DELETE).to_numpy()
        self.partition, self.offset, self.place = (
            found[name].to_numpy().astype(np.int64) for name in ("partition", "offset", "place")
        )
        self.differs: npt.NDArray[np.bool_] = found["differs"].to_numpy(zero_copy_only=False)
        self.buckets: list[Numbers] = [
            found[name].to_numpy().astype(np.int64)
            for name in found.column_names
            if name.startswith("bucket")
        ]
        self.generation = found["generation"].to_numpy().astype(np.int64)
        #: Whether some records tell their position at the source.
        self.has_positions = found["position"].null_count < found.num_rows
        self.orders: list[bytes] | None = None
        if self.has_positions or self.generation.any():
            told = (found[name].to_pylist() for name in ("source", "position", "generation"))
            self.orders = list(map(order_of, *told))

    def order(self, number: int) -> bytes:
        return b"" if self.orders is None else self.orders[number]

    @property
    def lacking(self) -> set[bytes]:
        """Keys whose record does not have all of its values."""
        lacks = pc.greater(pc.list_value_length(self._found["missing"]), 0)
        return set(self._found.filter(lacks)["id"].to_pylist())

    @property
    def truncate(self) -> dict[str, Any] | None:
        """The last one."""
        found = self._found.filter(pc.equal(self._found["op"], TRUNCATE)).to_pylist()
        for row in found:
            row["order"] = order_of(row["source"], row["position"], row["generation"])
        return max(found, key=itemgetter("order", "offset"), default=None)

    @property
    def times(self) -> list[Any]:
        found: list[Any] = self._found["at"].to_pylist()
        return found

    @property
    def sources(self) -> list[str | None]:
        found: list[str | None] = self._found["source"].to_pylist()
        return found

    @property
    def phases(self) -> dict[int, tuple[int | None, int | None]]:
        """The first event from the log and the last one from a snapshot, for each partition of events."""
        if FIRST_STREAM not in self._found.column_names:
            return {}
        found = self._found.group_by("partition").aggregate([(FIRST_STREAM, "min"), (LAST_SNAPSHOT, "max")])
        return {
            row["partition"]: (row[f"{FIRST_STREAM}_min"], row[f"{LAST_SNAPSHOT}_max"])
            for row in found.to_pylist()
        }

    def written_order(self, number: int) -> tuple[bytes, int, int]:
        """What the versions of rows are sorted by when they are written."""
        return self.ids[number], int(self.partition[number]), int(self.offset[number])

    def sorted_by_key(self) -> Numbers:
        """Those that are about a row."""
        keyed = np.flatnonzero(self.upsert | self.delete)
        ids = pa.array([self.ids[n] for n in keyed], pa.binary())
        found: Numbers = keyed[pc.sort_indices(ids).to_numpy()]
        return found


def is_truncated(
    verdict: Verdict, partition: int, offset: int, order: bytes, truncate: Mapping[str, Any] | None
) -> bool:
    """Whether a truncate came after the record."""
    if source_of(order) and order < verdict.truncated.get(source_of(order), b""):
        return True
    if truncate is None or comparable(order, truncate["order"]):
        return False
    return bool(partition == truncate["partition"] and offset < truncate["offset"])
