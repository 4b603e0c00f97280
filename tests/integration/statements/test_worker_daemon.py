"""Spark's Python workers come from our daemon: what tasks need is imported before they start."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

if TYPE_CHECKING:
    import pyarrow as pa


def test_a_task_finds_its_imports_done_and_the_zip_directories_kept(spark: SparkSession) -> None:
    # Defined here, so that the worker gets it by value and imports nothing to find it.
    def look(batches: Iterable["pa.RecordBatch"]) -> Iterable["pa.RecordBatch"]:
        import importlib
        import sys
        import zipimport

        import pyarrow as pa

        needed = ("headgate.kafka.frames", "headgate.decode.protobuf_batch", "confluent_kafka")
        imported = all(name in sys.modules for name in needed)
        kept = dict(zipimport._zip_directory_cache)  # type: ignore[attr-defined]
        importlib.invalidate_caches()
        # A directory that was read again is another object.
        now = zipimport._zip_directory_cache  # type: ignore[attr-defined]
        read = [path for path, directory in kept.items() if now.get(path) is not directory]
        for _ in batches:
            pass
        yield pa.RecordBatch.from_pydict({"imported": [imported], "kept": [len(kept)], "read": [len(read)]})

    rows = spark.range(1).repartition(1).mapInArrow(look, "imported boolean, kept long, read long").collect()
    (row,) = rows
    assert row["imported"]
    assert row["kept"] > 0, "Spark has no zip files on its workers' path: the daemon need not keep any"
    assert row["read"] == 0
