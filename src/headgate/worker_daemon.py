"""`python -m headgate.worker_daemon`: what Spark forks its Python workers from (`spark.python.daemon.module`).

Workers find imported what their tasks need. Spark's own daemon imports nothing of it, and each task has Python
forget what it knows of Spark's zip files, whose directories are then read again: up to 0.1 s of processor for
every task, which for a small batch is more than the batch.
"""

import zipimport

# Tasks in Python: the transactional writer and the Protobuf decoder, with what Spark needs to hand them batches.
import confluent_kafka
import numpy
import pyarrow.compute
import pyspark.sql.pandas.serializers
import pyspark.worker
from pyspark import daemon

import headgate.decode.protobuf_batch
import headgate.kafka.transactional

IMPORTED = (
    confluent_kafka,
    numpy,
    pyarrow.compute,
    pyspark.sql.pandas.serializers,
    pyspark.worker,
    headgate.decode.protobuf_batch,
    headgate.kafka.transactional,
)


def keep_zip_directories() -> None:
    """`importlib.invalidate_caches` passes zip files by: those on a worker's path never change."""
    zipimport.zipimporter.invalidate_caches = lambda self: None  # type: ignore[method-assign]


if __name__ == "__main__":
    keep_zip_directories()
    daemon.manager()
