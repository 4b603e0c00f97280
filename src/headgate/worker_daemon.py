"""`python -m headgate.worker_daemon`: the process that Spark forks its Python workers from.

It has imported what tasks need, and keeps the directories of Spark's zip files. Spark's own daemon does
neither: each task has Python read those directories again, 0.1 s of processor and more, which for a small
batch is more than the batch.
"""

import zipimport

# Tasks in Python: the transactional writer and the Protobuf decoder, and what hands batches to them.
import confluent_kafka
import numpy
import pyarrow.compute
import pyspark.sql.pandas.serializers
import pyspark.worker
from pyspark import daemon

import headgate.decode.protobuf_batch
import headgate.kafka.frames
import headgate.kafka.transactional

IMPORTED = (
    confluent_kafka,
    numpy,
    pyarrow.compute,
    pyspark.sql.pandas.serializers,
    pyspark.worker,
    headgate.decode.protobuf_batch,
    headgate.kafka.frames,
    headgate.kafka.transactional,
)


def keep_zip_directories() -> None:
    """`importlib.invalidate_caches` passes zip files by: those on a worker's path never change."""
    zipimport.zipimporter.invalidate_caches = lambda self: None  # type: ignore[method-assign]


if __name__ == "__main__":
    keep_zip_directories()
    daemon.manager()  # type: ignore[no-untyped-call]
