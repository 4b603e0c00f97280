"""Rows as a stream of Arrow: whole batches, and a last word, whatever came before it."""

import json
from typing import Any

import pyarrow as pa
import pytest

from headgate.adhoc.arrow import ArrowResults
from headgate.adhoc.results import PIECES, Closed
from headgate.errors import InvalidRequest, LimitReached
from headgate.statements.asking import Caller

SCHEMA = pa.schema([("a", pa.int64()), ("a", pa.string())])


def message(*rows: int) -> bytes:
    columns = [pa.array(rows, pa.int64()), pa.array([str(n) for n in rows])]
    return bytes(pa.RecordBatch.from_arrays(columns, schema=SCHEMA).serialize())


def read(results: ArrowResults) -> tuple[list[list[Any]], dict[str, Any]]:
    stream = pa.ipc.open_stream(b"".join(piece for piece in results.pieces() if piece))
    rows: list[list[Any]] = []
    while True:
        batch, metadata = stream.read_next_batch_with_custom_metadata()
        if metadata is not None and b"headgate" in metadata:
            return rows, json.loads(metadata[b"headgate"])
        rows += [list(row) for row in zip(*(column.to_pylist() for column in batch.columns), strict=True)]


def test_batches_come_in_order_and_the_last_says_the_end() -> None:
    results = ArrowResults()
    results.begin(SCHEMA)
    results.batch(message(1, 2))
    results.batch(message(3))
    results.end("Completed", files=1)
    rows, end = read(results)
    assert rows == [[1, "1"], [2, "2"], [3, "3"]], "two columns of one name are two"
    assert (end["op"], end["state"], end["rows"], end["files"]) == ("end", "Completed", 3, 1)


def test_what_fails_before_there_are_rows_is_a_stream_too() -> None:
    results = ArrowResults()
    results.fail(InvalidRequest("No.", "Ask otherwise."))
    rows, end = read(results)
    assert rows == []
    assert (end["op"], end["error"], end["remedy"]) == ("error", "InvalidRequest", "Ask otherwise.")


def test_nobody_gets_more_than_they_may() -> None:
    results = ArrowResults(caller=Caller("'ada'", "ada", rows=2))
    results.begin(SCHEMA)
    results.batch(message(1, 2))
    with pytest.raises(LimitReached, match="2 rows"):
        results.batch(message(3))


def test_a_query_waits_for_its_reader_and_ends_with_it() -> None:
    results = ArrowResults()
    results.begin(SCHEMA)
    for n in range(PIECES - 1):
        results.batch(message(n))
    results.close()
    with pytest.raises(Closed):
        results.batch(message(0))
