"""The data files of a table's newest snapshot, each with the deletes that apply to it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession

from headgate.tables.handles import array, table_cache


@dataclass(frozen=True)
class LiveFile:
    """A data file, and the files that say which of its rows are gone."""

    file: Any
    deletes: tuple[Any, ...] = ()

    @cached_property
    def spec_id(self) -> int:
        return int(self.file.specId())

    @cached_property
    def partition(self) -> Any:
        return self.file.partition()


class LiveFiles:
    """Kept up with by the writer itself: reading the manifests anew would cost what the table is."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._jvm = cast(Any, spark._jvm)
        self._gateway: Any = spark.sparkContext._gateway
        self._files: dict[str, LiveFile] = {}

    def load(self, table: Any) -> None:
        """As the table's metadata says now."""
        self._files = {}
        if table.currentSnapshot() is None:
            return
        tasks = table.newScan().planFiles()
        try:
            listed = self._jvm.org.apache.iceberg.relocated.com.google.common.collect.Lists.newArrayList(
                tasks
            )
        finally:
            tasks.close()
        for task in listed:
            file = task.file()
            self._files[str(file.location())] = LiveFile(file, tuple(task.deletes()))

    def __contains__(self, path: str) -> bool:
        return path in self._files

    def __len__(self) -> int:
        return len(self._files)

    def __getitem__(self, path: str) -> LiveFile:
        return self._files[path]

    def items(self) -> Iterable[tuple[str, LiveFile]]:
        return self._files.items()

    def since(self, sequence_number: int) -> list[LiveFile]:
        """Files that came to the table after that snapshot."""
        return [found for found in self._files.values() if found.file.fileSequenceNumber() > sequence_number]

    def change(
        self, added: Iterable[Any], removed: Iterable[str], deletes: Mapping[str, Sequence[Any]]
    ) -> None:
        """What a commit has made of them: `deletes` are those that apply now, by data file."""
        for path in removed:
            del self._files[path]
        for file in added:
            self._files[str(file.location())] = LiveFile(file)
        for path, files in deletes.items():
            self._files[path] = replace(self._files[path], deletes=tuple(files))

    @contextmanager
    def rows(self, table: Any, files: Sequence[LiveFile]) -> Iterator[DataFrame]:
        """The live rows of these files, `_file` and `_pos` among the columns that can be asked for.

        Iceberg's own way for rewrites: tasks are staged under a name, and the name is read.
        """
        iceberg = self._jvm.org.apache.iceberg
        session = self._jvm.org.apache.spark.sql.classic.SparkSession
        session.setActiveSession(cast(Any, self._spark)._jsparkSession)
        schema = iceberg.SchemaParser.toJson(table.schema())
        residuals = iceberg.expressions.ResidualEvaluator.unpartitioned(
            iceberg.expressions.Expressions.alwaysTrue()
        )
        tasks = self._jvm.java.util.ArrayList()
        for one in files:
            deletes = array(self._gateway, iceberg.DeleteFile, *one.deletes)
            spec = iceberg.PartitionSpecParser.toJson(table.specs().get(one.spec_id))
            tasks.add(iceberg.BaseFileScanTask(one.file, deletes, schema, spec, residuals))
        group = str(uuid4())
        cache = table_cache(self._gateway)
        manager = iceberg.spark.ScanTaskSetManager.get()
        cache.add(group, table)
        manager.stageTasks(table, group, tasks)
        try:
            yield self._spark.read.format("iceberg").load(group)
        finally:
            manager.removeTasks(table, group)
            cache.remove(group)
