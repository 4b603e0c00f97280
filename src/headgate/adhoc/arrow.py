"""Rows of the lake as a stream of Arrow: batches as Spark made them, one partition at a time in memory."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, cast

import pyarrow as pa
from pyspark.core import rdd
from pyspark.serializers import NoOpSerializer
from pyspark.sql import DataFrame

from headgate.adhoc.results import Closed, Results

MEDIA_TYPE = "application/vnd.apache.arrow.stream"
# The last batch is empty, and has the last word under this key of its metadata.
LAST_WORD = b"headgate"


class ArrowResults(Results):
    """Results whose rows are batches of Arrow."""

    media_type = MEDIA_TYPE
    _schema: pa.Schema | None = None

    def begin(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._waiting.append(schema.serialize().to_pybytes())

    def batch(self, message: bytes) -> None:
        """A batch as it is in a stream. Raises Closed when no more is wanted."""
        if not self.is_wanted:
            raise Closed
        self.charge(pa.ipc.read_record_batch(message, self._schema).num_rows, len(message))
        self._waiting.append(message)
        self.flush()

    def _last_piece(self, content: Mapping[str, Any]) -> bytes:
        if self._schema is None:
            self.begin(pa.schema([]))
        nothing = pa.RecordBatch.from_pylist([], schema=self._schema)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, nothing.schema) as stream:
            stream.write_batch(nothing, custom_metadata={LAST_WORD: json.dumps(content).encode()})
        whole, begin = sink.getvalue().to_pybytes(), len(nothing.schema.serialize())
        return b"".join([*self._waiting, whole[begin:]])


def give_batches(rows: DataFrame, results: ArrowResults) -> None:
    """Behind the schema."""
    for message in _batches(rows):
        results.batch(message)


def _batches(rows: DataFrame) -> Iterator[bytes]:
    jvm: Any = rows.sparkSession.sparkContext._jvm
    batches = cast(Any, rows)._jdf.toArrowBatchRdd()
    served = jvm.org.apache.spark.api.python.PythonRDD.toLocalIteratorAndServe(batches, False)
    yield from cast(Any, rdd)._local_iterator_from_socket(served, NoOpSerializer())
