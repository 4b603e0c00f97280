"""Slowly changing dimensions of type 2: every version of a row, from when to when it held."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from headgate.model import Deletes
from headgate.tables.deleted_keys import Mark
from headgate.tables.key_index import Entries, Numbers, Place
from headgate.tables.orders import comes_late
from headgate.tables.records import CHANGE, VALID_FROM, VALID_TO
from headgate.tables.upsert import Records, StagedChanges, Upserts, Verdict, is_truncated, written

_ONE_EACH = "postgresql"
_MOMENT = pa.timestamp("us", "UTC")


class Versions(Upserts):
    """The present version of a key is its row without an end; a change ends it and begins another."""

    def _chosen(self, changes: DataFrame) -> DataFrame:
        """All records, in their order."""
        rows, order = self._ordered(changes)
        return rows.sortWithinPartitions(f"{CHANGE}.id", *order).drop("_headgate_stretch", "_headgate_source")

    def _carry_out(
        self, last: DataFrame, found: Records, table: Any, topic_id: str, replay: bool
    ) -> StagedChanges:
        verdict, until, ended = self._versions(found, replay)
        truncate = found.truncate
        if verdict.truncate is not None and truncate is not None:
            before = set(verdict.doomed_ids)
            self._truncate(verdict, table)
            ended |= {who: truncate["at"] for who in verdict.doomed_ids if who not in before}
        self._hold_keys(verdict, table)
        columns = self._lake.columns(table).names
        files: list[Any] = []
        entries: list[Entries] = []
        if len(verdict.upserts):
            files += self._lane.stage(self._begun(last, found, verdict.upserts, until, columns), table).files
            present = {int(n) for n in verdict.upserts if until[int(n)] is None}
            at = {(int(found.partition[n]), int(found.offset[n])) for n in present}
            # Only the present version of a key can be replaced.
            entries = [_only(one, at) for one in self._placed(found, verdict.upserts, files, table)]
        removed: tuple[str, ...] = ()
        if verdict.doomed:
            closed = self._closed(verdict, ended, table, columns)
            if self._how is Deletes.COPY_ON_WRITE:
                removed = tuple(verdict.doomed)
                files += self._rewritten(closed, verdict, table)
            else:
                files += self._lane.stage(closed, table).files
        return self._staged(verdict, table, topic_id, files, entries, removed)

    def _versions(
        self, found: Records, replay: bool
    ) -> tuple[Verdict, dict[int, datetime | None], dict[bytes, datetime]]:
        """What is written, when each of that ends, and when the versions that are in the table end."""
        verdict = Verdict(truncated=self.places.index.truncated)
        truncate = found.truncate
        if truncate is not None:
            self._judge_truncate(verdict, truncate)
        times, sources = found.times, found.sources
        by_key: dict[bytes, list[int]] = {}
        for n in np.argsort(found.place):
            if found.upsert[n] or found.delete[n]:
                by_key.setdefault(found.ids[n], []).append(int(n))
        ids = sorted(by_key)
        ended: dict[bytes, datetime] = {}
        until: dict[int, datetime | None] = {}

        def truncated(n: int) -> bool:
            at = int(found.partition[n]), int(found.offset[n])
            return is_truncated(verdict, *at, found.order(n), truncate)

        def is_new(n: int, place: Place | None) -> bool:
            if place is None:
                return True
            at = int(found.partition[n]), int(found.offset[n])
            late = comes_late(*at, found.order(n), place, replay)
            return not (late or _is_same(found.order(n), place.order, sources[n]))

        for who, place in zip(ids, self.places.index.get(ids), strict=True):
            events = [n for n in _once(by_key[who], found, sources) if is_new(n, place)]
            if not events:
                continue
            for n, after in zip(events, [*events[1:], None], strict=True):
                if found.upsert[n]:
                    until[n] = None if after is None else times[after]
                    if after is None and truncate is not None and truncated(n):
                        until[n] = truncate["at"]
            if place is not None and place.path is not None and place.path in self.places.live:
                verdict.doom(who, place.path, place.pos)
                ended[who] = times[events[0]]
            last = events[-1]
            if found.delete[last] or truncated(last):
                at = int(found.partition[last]), int(found.offset[last])
                verdict.marks.append(Mark(who, *at, found.order(last)))
        chosen = np.array(sorted(until), np.int64)
        verdict.upserts = chosen[np.argsort(found.place[chosen])]
        verdict.differs = bool(found.differs[chosen].any())
        return verdict, until, ended

    def _begun(
        self,
        rows: DataFrame,
        found: Records,
        upserts: Numbers,
        until: Mapping[int, datetime | None],
        columns: list[str],
    ) -> DataFrame:
        """New versions, each with the end that it has already."""
        chosen = pa.table(
            {
                "chosen_partition": pa.array(found.partition[upserts], pa.int32()),
                "chosen_offset": pa.array(found.offset[upserts], pa.int64()),
                "until": pa.array([until[int(n)] for n in upserts], _MOMENT),
            }
        )
        change = f.col(CHANGE)
        same = (change["partition"] == f.col("chosen_partition")) & (
            change["offset"] == f.col("chosen_offset")
        )
        joined = rows.join(f.broadcast(self._lane.spark.createDataFrame(chosen)), same)
        own = {VALID_FROM: change["at"], VALID_TO: f.col("until")}
        return joined.select(*((own[name] if name in own else written(name)).alias(name) for name in columns))

    def _closed(
        self, verdict: Verdict, ended: Mapping[bytes, datetime], table: Any, columns: list[str]
    ) -> DataFrame:
        """The versions that were present, with their end."""
        live = self.places.live
        ids = list(verdict.doomed_ids)
        ends = pa.table(
            {"ended_id": pa.array(ids, pa.binary()), "ended": pa.array([ended[who] for who in ids], _MOMENT)}
        )
        with live.rows(table, [live[path] for path in verdict.doomed]) as before:
            present = self.places.present(before)
            joined = present.join(
                f.broadcast(self._lane.spark.createDataFrame(ends)),
                self.places.id_of(present) == f.col("ended_id"),
            )
            closed = joined.select(
                *(
                    (f.col("ended") if name == VALID_TO else f.col(f"`{name}`")).alias(name)
                    for name in columns
                )
            )
            # While the files can still be read by their names.
            return closed.localCheckpoint()


def _once(events: Sequence[int], found: Records, sources: Sequence[str | None]) -> list[int]:
    """An event that was sent twice is one."""
    return [
        n
        for n, after in zip(events, [*events[1:], None], strict=True)
        if after is None or not _is_same(found.order(n), found.order(after), sources[n])
    ]


def _is_same(order: bytes, other: bytes, source: str | None) -> bool:
    """Places in the log of Postgres are of one event each; elsewhere several may share one."""
    return bool(order) and order == other and (source or "").startswith(_ONE_EACH)


def _only(entries: Entries, at: set[tuple[int, int]]) -> Entries:
    chosen = [
        n
        for n, place in enumerate(zip(entries.partition.tolist(), entries.offset.tolist(), strict=True))
        if place in at
    ]
    return Entries(
        [entries.ids[n] for n in chosen],
        entries.paths,
        entries.file[chosen],
        entries.pos[chosen],
        entries.partition[chosen],
        entries.offset[chosen],
        None if entries.orders is None else [entries.orders[n] for n in chosen],
    )
