"""The only place that builds a SparkSession."""

import logging
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self, cast

from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from headgate.config import Settings
from headgate.driver_jvm import start_driver_jvm
from headgate.jvm import LOCAL_FILES, archive_options, jars_in

# The catalog's name in SQL: lake.<cluster>.<topic>.
CATALOG = "lake"
LOOPBACK = "127.0.0.1"
# A length in an Avro message is taken at its word before there are bytes for it: seven bytes that claim a
# string of two gigabytes would end the JVM. Avro has limits for that.
AVRO_LIMITS = (
    "-Dorg.apache.avro.limits.bytes.maxLength=67108864",
    "-Dorg.apache.avro.limits.string.maxLength=67108864",
    "-Dorg.apache.avro.limits.collectionItems.maxLength=10000000",
)
_ICEBERG_EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
# What a session needs to read Delta tables too, as extra settings: the tests' own does.
READS_DELTA: Mapping[str, str] = {
    "spark.sql.extensions": f"{_ICEBERG_EXTENSIONS},io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # Logs are short here: fifty tasks to read one are for tables of millions of files.
    "spark.databricks.delta.snapshotPartitions": "2",
}
# By Hadoop's older interface, for which there is a way to files of this machine without a process for each.
LOCAL_CHECKPOINTS = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    )
}
# A statement has some ten generated classes and needs them in every batch. Spark keeps a hundred: an engine
# of a dozen statements would compile each of them again for each batch.
GENERATED_CLASSES = 4000
# What RocksDB keeps in memory of the state of all statements. Without a bound for all each store has its own,
# 8 MB of blocks and 64 MB of what is not on disk yet: a dozen statements with joins have a hundred stores.
STATE_MEMORY_MB = 512
# What Python workers are forked from, with what their tasks need imported already.
WORKER_DAEMON = "headgate.worker_daemon"
# Hadoop's files of defaults, and which of those a driver on one machine may ask for: how files are opened and
# written, who the user is. The others are of YARN's, MapReduce's and Hadoop's own services.
FOREIGN_DEFAULTS = ("yarn-default.xml", "mapred-default.xml", "core-default.xml")
OWN_SETTINGS = (
    r"^(?:fs\.(?!(?:s3a|azure|adl|ftp|viewfs)\.(?!impl))|(?:io|file|seq|tfile)\.|"
    r"mapreduce\.(?:input|output|outputcommitter|fileoutputcommitter)\.|"
    r"hadoop\.(?:common|kerberos|service|tmp|tokens?|user|util)\.|"
    r"hadoop\.security\.(?!crypto|dns|group\.mapping\.ldap|kms))"
)
# By these PySpark takes a new session for one of Spark Connect; a user's own work may have set them.
_OF_CONNECT = ("SPARK_REMOTE", "SPARK_LOCAL_REMOTE", "SPARK_CONNECT_MODE_ENABLED")
# PySpark logs each failure of a query by itself, with the value that it failed at. We say it, without.
_LOUD = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
_LOGGING = Path(__file__).parent / "spark-log4j2.properties"


def build_session(
    settings: Settings,
    name: str,
    memory: str,
    catalog: Mapping[str, str],
    extra: Mapping[str, str] | None = None,
) -> SparkSession:
    """A driver named `name`, with the Iceberg catalog `lake` made of the properties `catalog`."""
    scratch = settings.data / "scratch" / name
    scratch.mkdir(parents=True, exist_ok=True)
    local = settings.spark.master.startswith("local")
    for variable in _OF_CONNECT:
        os.environ.pop(variable, None)
    for logger in _LOUD:
        PySparkLogger.getLogger(logger).setLevel(logging.CRITICAL)
    if local:
        # Spark serves nothing to other machines when it runs on this one.
        os.environ.setdefault("SPARK_LOCAL_IP", LOOPBACK)
        # Tasks in Python (Protobuf) need the packages that the driver has.
        os.environ["PYSPARK_PYTHON"] = sys.executable
    jars = jars_in(settings.jars_folder / "spark")
    config = {
        "spark.app.name": f"headgate-{name}",
        "spark.driver.memory": memory,
        "spark.driver.extraJavaOptions": " ".join(
            (
                f'"-Dlog4j2.configurationFile={_LOGGING}"',
                # Libraries unpack native code there and leave it behind.
                f'"-Djava.io.tmpdir={scratch}"',
                "-XX:+ExitOnOutOfMemoryError",
                # Classes take twice that: the JVM would stop twice, to see whether some can go.
                "-XX:MetaspaceSize=256m",
                *AVRO_LIMITS,
                # Elsewhere the class path is another.
                *(
                    f'"{option}"'
                    for option in (archive_options(settings.jars_folder, name, "engine") if local else ())
                ),
            )
        ),
        "spark.executor.extraJavaOptions": " ".join(AVRO_LIMITS),
        **{f"spark.hadoop.{key}": value for key, value in LOCAL_FILES.items()},
        **(LOCAL_CHECKPOINTS if settings.checkpoints.startswith("file:") else {}),
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.ui.enabled": "false",
        **_authentication(settings.spark.master),
        "spark.ui.showConsoleProgress": "false",
        # The plan of each query and batch is written down for the page that is not there: in few words.
        "spark.sql.ui.explainMode": "simple",
        "spark.scheduler.mode": "FAIR",
        # For each call on a column or a frame the driver would otherwise ask the JVM several times, so that
        # errors could name a line of ours.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        "spark.python.daemon.module": WORKER_DAEMON,
        "spark.sql.codegen.cache.maxEntries": str(GENERATED_CLASSES),
        "spark.sql.streaming.stateStore.rocksdb.boundedMemoryUsage": "true",
        "spark.sql.streaming.stateStore.rocksdb.maxMemoryUsageMB": str(STATE_MEMORY_MB),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.extensions": _ICEBERG_EXTENSIONS,
        **({"spark.driver.host": LOOPBACK, "spark.driver.bindAddress": LOOPBACK} if local else {}),
        # In local mode the class path needs no copies; executors elsewhere fetch the jars.
        **(
            {"spark.driver.extraClassPath": os.pathsep.join(map(str, jars))}
            if local
            else {"spark.jars": ",".join(map(str, jars))}
        ),
        **{f"spark.sql.catalog.{CATALOG}.{key}": value for key, value in catalog.items() if key != "type"},
        f"spark.sql.catalog.{CATALOG}": "org.apache.iceberg.spark.SparkCatalog",
        f"spark.sql.catalog.{CATALOG}.type": "rest",
        # Another process commits: a cached table would be an old one.
        f"spark.sql.catalog.{CATALOG}.cache-enabled": "false",
        **(extra or {}),
        **settings.spark.properties,
    }
    start_driver_jvm({"spark.master": settings.spark.master, **config}, scratch)
    builder = SparkSession.Builder().master(settings.spark.master)
    for key, value in config.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    if local:
        slim_hadoop_settings(session)
    return session


def _authentication(master: str) -> dict[str, str]:
    """Whoever speaks to a port of this driver must know a secret that Spark makes for each run.

    A standalone cluster has a secret of its own, which is yours to set in `spark.properties`.
    """
    return {} if master.startswith("spark:") else {"spark.authenticate": "true"}


def slim_hadoop_settings(session: SparkSession) -> None:
    """Makes Hadoop's settings cheap to send: Spark does so with every stateful operator of every batch.

    Most are defaults of services that nothing here runs or asks. Of the others Hadoop sends where each comes
    from too, every word compressed by itself: three quarters of the work, for a name in an error message.
    """
    context: Any = session.sparkContext
    jvm = context._jvm
    # What loads the defaults of YARN, MapReduce and Hive; later they would bring all of them back.
    jvm.org.apache.hadoop.mapred.JobConf()
    cast(Any, session)._jsparkSession.sharedState()
    settings = context._jsc.hadoopConfiguration()
    kind = jvm.java.lang.Class.forName("org.apache.hadoop.conf.Configuration")
    properties = kind.getDeclaredMethod("getProps", None)
    properties.setAccessible(True)
    foreign = jvm.org.apache.hadoop.conf.Configuration(False)
    for name in FOREIGN_DEFAULTS:
        foreign.addResource(name)
    defaults = properties.invoke(foreign, None)
    defaults.keySet().removeIf(jvm.java.util.regex.Pattern.compile(OWN_SETTINGS).asPredicate())
    # By name and value: what a user has set stays.
    properties.invoke(settings, None).entrySet().removeAll(defaults.entrySet())
    origins = kind.getDeclaredField("updatingResource")
    origins.setAccessible(True)
    origins.get(settings).clear()


class Driver:
    """A session for the life of a process, and the JVM under it."""

    def __init__(self, session: SparkSession) -> None:
        self.session = session
        gateway: Any = session.sparkContext._gateway
        self._jvm = gateway.proc

    @property
    def ended(self) -> int | None:
        """The JVM's exit code, or None while it runs."""
        code: int | None = self._jvm.poll()
        return code

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.ended is None:
            self.session.stop()
            # The JVM ends when its input does.
            self._jvm.stdin.close()
