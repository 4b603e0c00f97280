"""Files of this machine are written by Java itself, with the rights that were asked for."""

from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession


def test_no_process_is_started_for_a_file(spark: SparkSession, tmp_path: Path) -> None:
    context: Any = spark.sparkContext
    hadoop = context._jvm.org.apache.hadoop.fs
    file = tmp_path / "folder" / "file"
    path = hadoop.Path(file.as_uri())
    files = path.getFileSystem(context._jsc.hadoopConfiguration())
    # Hadoop's own, under the name of LocalFileSystem, calls chmod.
    assert files.getRaw().getClass().getSimpleName() == "NakedLocalFileSystem"
    files.create(path).close()
    files.setPermission(path, hadoop.permission.FsPermission("640"))
    assert file.stat().st_mode & 0o777 == 0o640
    assert files.getFileStatus(path).getPermission().toString() == "rw-r-----"
    kept = spark.conf.get("spark.sql.streaming.checkpointFileManagerClass")
    assert kept is not None
    assert kept.endswith("FileSystemBasedCheckpointFileManager")
