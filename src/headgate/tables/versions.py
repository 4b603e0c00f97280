"""Slowly changing dimensions of type 2: every version of a row, from when to when it held."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from headgate.model import Deletes
from headgate.tables.batch_records import Records, Verdict, is_truncated
from headgate.tables.deleted_keys import Mark
from headgate.tables.generations import generation_of
from headgate.tables.key_index import Entries, Numbers, Place
from headgate.tables.orders import comes_late, source_of
from headgate.tables.origin import Origin
from headgate.tables.records import CHANGE, VALID_FROM, VALID_TO
from headgate.tables.upsert import StagedChanges, Upserts, written

_ONE_EACH = "postgresql"
_MOMENT = pa.timestamp("us", "UTC")


class Versions(Upserts):
    """The present version of a key is its row without an end; a change ends it and begins another."""

    def _chosen(self, changes: DataFrame, origin: Origin) -> DataFrame:
        """All records, in their order."""
        rows, order = self._ordered(changes, origin)
        return rows.sortWithinPartitions(f"{CHANGE}.id", *order).drop("_headgate_stretch", "_headgate_before")

    def _carry_out(self, last: DataFrame, found: Records, table: Any, origin: Origin) -> StagedChanges:
        verdict, events = self._versions(found, origin.is_replay)
        times, truncate = found.times, found.truncate
        ended: dict[bytes, datetime] = {who: times[events[who][0]] for who in verdict.doomed_ids}
        if verdict.truncate is not None and truncate is not None:
            self._truncate(verdict, table)
            ended |= {who: truncate["at"] for who in verdict.doomed_ids if who not in ended}
        self._hold_columns(verdict, table)
        columns = self._lake.columns(table).names
        closed = self._closed(verdict, ended, table, columns) if verdict.doomed else None
        files: list[Any] = []
        entries: list[Entries] = []
        if len(verdict.upserts):
            spans = _spans(found, events, self._begun_later(closed, ended), self._truncations(verdict, found))
            files += self._lane.stage(self._begun(last, found, verdict.upserts, spans, columns), table).files
            at = {
                (int(found.partition[n]), int(found.offset[n]))
                for n in verdict.upserts
                if spans[int(n)][1] is None
            }
            # Only the present version of a key can be replaced.
            entries = [_only(one, at) for one in self._placed(found, verdict.upserts, files, table)]
        removed: tuple[str, ...] = ()
        if closed is not None:
            if self._how is Deletes.COPY_ON_WRITE:
                removed = tuple(verdict.doomed)
                files += self._rewritten(closed, verdict, table)
            else:
                files += self._lane.stage(closed, table).files
        return self._staged(verdict, table, origin, files, entries, removed)

    def _versions(self, found: Records, replay: bool) -> tuple[Verdict, dict[bytes, list[int]]]:
        """What becomes of the table's rows, and the events of each key that count, in their order."""
        verdict = Verdict(truncated=self.places.index.truncated)
        truncate = found.truncate
        if truncate is not None:
            self._judge_truncate(verdict, truncate)
        sources = found.sources
        by_key: dict[bytes, list[int]] = {}
        for n in np.argsort(found.place):
            if found.upsert[n] or found.delete[n]:
                by_key.setdefault(found.ids[n], []).append(int(n))
        ids = sorted(by_key)
        counted: dict[bytes, list[int]] = {}
        is_gone = self._truncations(verdict, found)
        known = self.places.index.truncated

        def is_new(n: int, place: Place | None) -> bool:
            source = source_of(found.order(n))
            if source in known and found.order(n) < known[source]:
                return False  # it came before a truncate that the table has
            if place is None:
                return True
            at = int(found.partition[n]), int(found.offset[n])
            late = comes_late(*at, found.order(n), place, replay)
            return not (late or _is_same(found.order(n), place.order, sources[n]))

        for who, place in zip(ids, self.places.index.get(ids), strict=True):
            events = [n for n in _once(by_key[who], found, sources) if is_new(n, place)]
            if not events:
                continue
            counted[who] = events
            last = events[-1]
            if place is not None and place.path is not None and place.path in self.places.live:
                verdict.doom(who, place.path, place.pos)
                verdict.repeated += generation_of(place.order) < found.generation[last]
            if found.delete[last] or is_gone(last) is not None:
                at = int(found.partition[last]), int(found.offset[last])
                verdict.marks.append(Mark(who, *at, found.order(last)))
        upserts = [n for events in counted.values() for n in events if found.upsert[n]]
        verdict.upserts = np.array(sorted(upserts, key=found.written_order), np.int64)
        verdict.differs = bool(found.differs[verdict.upserts].any())
        verdict.has_generations = bool(found.generation[verdict.upserts].any())
        return verdict, counted

    @staticmethod
    def _truncations(verdict: Verdict, found: Records) -> Callable[[int], datetime | None]:
        """When a truncate ended what a record wrote; None where none did."""
        truncate = found.truncate

        def ended(n: int) -> datetime | None:
            at = int(found.partition[n]), int(found.offset[n])
            gone = truncate is not None and is_truncated(verdict, *at, found.order(n), truncate)
            return truncate["at"] if truncate is not None and gone else None

        return ended

    def _begun_later(
        self, closed: DataFrame | None, ended: Mapping[bytes, datetime]
    ) -> dict[bytes, datetime]:
        """Since when the versions hold that an event of an earlier time ends, by key."""
        if closed is None:
            return {}
        late = closed.where(f.col(VALID_FROM) == f.col(VALID_TO))
        found = late.select(self.places.id_of(late).alias("id"), VALID_FROM).toArrow()
        return {
            who: since
            for who, since in zip(found["id"].to_pylist(), found[VALID_FROM].to_pylist(), strict=True)
            if since > ended[who]
        }

    def _begun(
        self,
        rows: DataFrame,
        found: Records,
        upserts: Numbers,
        spans: Mapping[int, tuple[datetime, datetime | None]],
        columns: list[str],
    ) -> DataFrame:
        """New versions, each with the end that it has already."""
        chosen = pa.table(
            {
                "chosen_partition": pa.array(found.partition[upserts], pa.int32()),
                "chosen_offset": pa.array(found.offset[upserts], pa.int64()),
                "since": pa.array([spans[int(n)][0] for n in upserts], _MOMENT),
                "until": pa.array([spans[int(n)][1] for n in upserts], _MOMENT),
            }
        )
        change = f.col(CHANGE)
        same = (change["partition"] == f.col("chosen_partition")) & (
            change["offset"] == f.col("chosen_offset")
        )
        joined = rows.join(f.broadcast(self._lane.spark.createDataFrame(chosen)), same)
        joined = joined.sortWithinPartitions(*(change[name] for name in ("id", "partition", "offset")))
        own = {VALID_FROM: f.col("since"), VALID_TO: f.col("until")}
        return joined.select(*((own[name] if name in own else written(name)).alias(name) for name in columns))

    def _closed(
        self, verdict: Verdict, ended: Mapping[bytes, datetime], table: Any, columns: list[str]
    ) -> DataFrame:
        """The versions that were present, with their end; none ends before it began."""
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
                    (f.greatest("ended", VALID_FROM) if name == VALID_TO else f.col(f"`{name}`")).alias(name)
                    for name in columns
                )
            )
            # While the files can still be read by their names.
            return closed.localCheckpoint()


def _spans(
    found: Records,
    events: Mapping[bytes, Sequence[int]],
    before: Mapping[bytes, datetime],
    truncated: Callable[[int], datetime | None],
) -> dict[int, tuple[datetime, datetime | None]]:
    """From when to when each record's version holds. `before`: since when the version in the table does.

    Clocks go back, the log does not: a version begins no earlier than the one that it replaces.
    """
    times = found.times
    spans: dict[int, tuple[datetime, datetime | None]] = {}
    for who, numbers in events.items():
        # Since when the version before holds, if there is one.
        since = before.get(who)
        for n, after in zip(numbers, [*numbers[1:], None], strict=True):
            begins = times[n] if since is None else max(times[n], since)
            since = None
            if found.upsert[n]:
                since = begins
                ends = truncated(n) if after is None else times[after]
                spans[n] = (begins, None if ends is None else max(begins, ends))
    return spans


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
