"""Files of this machine are written by Java itself, with the rights that were asked for."""

from pathlib import Path
from typing import Any, cast

from pyspark.sql import SparkSession

from headgate.spark import slim_hadoop_settings


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


def test_defaults_of_services_that_do_not_run_are_not_sent_to_tasks(spark: SparkSession) -> None:
    """Hadoop's settings go out with every stateful operator of every batch."""
    settings = cast(Any, spark.sparkContext)._jsc.hadoopConfiguration()
    names = set(settings.getPropsWithPrefix(""))
    assert not {name for name in names if name.startswith(("yarn.", "mapreduce.job.", "ipc."))}
    assert {"fs.defaultFS", "fs.s3a.impl", "hadoop.security.authentication"} <= names
    assert len(names) < 150


def test_a_setting_of_a_users_own_stays(spark: SparkSession) -> None:
    settings = cast(Any, spark.sparkContext)._jsc.hadoopConfiguration()
    settings.set("ipc.client.connect.timeout", "12345")
    try:
        slim_hadoop_settings(spark)
        assert settings.get("ipc.client.connect.timeout") == "12345"
    finally:
        settings.unset("ipc.client.connect.timeout")
