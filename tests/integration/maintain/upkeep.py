"""A table that was written in several batches, and what looks at its files."""

import time
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from headgate.maintain.actions import Actions
from headgate.maintain.compact import Compacted, Compaction, compact
from headgate.maintain.expire import Expired, expire
from headgate.model import OPERATION_KEY, POSITION_TAG
from headgate.tables.materialize import Materializer
from tests.integration.tables.drive import Drive, record

SCHEMA = record(("n", "int"), ("name", "string"))
TARGET = 64 * 1024**2


class Upkeep:
    """Maintains the table of a drive."""

    def __init__(self, drive: Drive, actions: Actions) -> None:
        self.drive = drive
        self.actions = actions
        self.sent: list[dict[str, Any]] = []
        self._schema_id = 0

    def begin(self) -> Materializer:
        self.drive.create(partitions=2)
        self._schema_id = self.drive.register(SCHEMA)
        return self.drive.materializer()

    def batch(self, materializer: Materializer, count: int = 5, name: str = "") -> None:
        """One batch of records, each with a name of its own unless they share one."""
        first = len(self.sent)
        rows = [{"n": n, "name": name or f"name-{n:05}"} for n in range(first, first + count)]
        self.drive.produce(self._schema_id, SCHEMA, rows, partition=first % 2)
        self.sent += rows
        assert len(self.drive.run_all(materializer)) == 1

    def batches(self, count: int) -> Materializer:
        materializer = self.begin()
        for _ in range(count):
            self.batch(materializer)
        return materializer

    @property
    def table(self) -> Any:
        found = self.drive.lake.load(self.drive.topic)
        assert found is not None
        return found

    @property
    def sql(self) -> str:
        return self.actions.sql_name(self.drive.topic)

    @property
    def folder(self) -> Path:
        return Path(unquote(urlsplit(self.table.location()).path))

    def parquet(self) -> set[Path]:
        return set(self.folder.rglob("*.parquet"))

    def compact(self, **how: Any) -> Compacted:
        return compact(self.actions, self.table, Compaction(TARGET, **how))

    def expire(self, keep_last: int = 1) -> Expired:
        now = int(time.time() * 1000) + 1
        return expire(self.actions, self.table, self.drive.topic, now, keep_last)

    def delete(self, where: str) -> None:
        """Rows go as upserts let them go: by vectors, and a commit of Headgate's own."""
        session = self.actions.spark.newSession()
        session.conf.set(f"spark.sql.iceberg.snapshot-property.{OPERATION_KEY}", "test")
        session.sql(f"delete from {self.sql} where ({where}) and length(_file) > 0")
        # An append table that has fewer rows than its topic has records is damaged.
        self.drive.ends_whole = False
        self.sent = [row for row in self.sent if row not in self._matching(where)]

    def _matching(self, where: str) -> list[dict[str, Any]]:
        frame = self.actions.spark.createDataFrame(self.sent, "n int, name string")
        return [row.asDict() for row in frame.where(where).collect()]

    def tagged(self) -> int | None:
        tag = self.table.refs().get(POSITION_TAG)
        return None if tag is None else int(tag.snapshotId())

    def check(self) -> None:
        """The table is what was sent, in Spark and in two readers that are not ours."""
        expected = sorted((row["n"], row["name"]) for row in self.sent)
        assert sorted((row["n"], row["name"]) for row in self.drive.rows()) == expected
        found = self.actions.spark.table(self.sql).collect()
        assert sorted((row["n"], row["name"]) for row in found) == expected

    def check_restart(self) -> None:
        """A new engine finds the position, reads nothing again, and goes on."""
        again = self.drive.materializer()
        assert self.drive.run_all(again) == []
        self.batch(again)
        self.check()
