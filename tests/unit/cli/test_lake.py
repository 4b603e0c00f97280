"""A query's answer as a command reads it: piece by piece, whatever their sizes."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from headgate.cli.lake import Answer, _Pieces
from headgate.cli.query import Output, print_answer
from headgate.errors import InvalidRequest, ServerUnavailable

END = {"op": "end", "state": "Completed", "rows": 2, "seconds": 0.5, "files": 1, "bytes": 2000}


def stream(last: Mapping[str, object] | None) -> bytes:
    schema = pa.schema(
        [("n", pa.decimal128(9, 2)), ("at", pa.timestamp("us", "UTC")), ("m", pa.list_(pa.int32()))]
    )
    rows = [
        {"n": Decimal("1.10"), "at": datetime(2026, 1, 31, tzinfo=UTC), "m": [1, 2]},
        {"n": None, "at": None, "m": None},
    ]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as out:
        out.write_batch(pa.RecordBatch.from_pylist(rows, schema=schema))
        if last is not None:
            nothing = pa.RecordBatch.from_pylist([], schema=schema)
            out.write_batch(nothing, custom_metadata={"headgate": json.dumps(last)})
    return bytes(sink.getvalue().to_pybytes())


def answer(content: bytes, size: int = 7) -> Answer:
    pieces = (content[at : at + size] for at in range(0, len(content), size))
    return Answer(pa.ipc.open_stream(pa.PythonFile(_Pieces(pieces), mode="r")))


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_rows_are_read_from_pieces_of_any_size(size: int) -> None:
    found = answer(stream(END), size)
    assert list(found.rows()) == [["1.10", "2026-01-31 00:00:00+00:00", [1, 2]], [None, None, None]]
    assert found.end == END


def test_a_query_that_fails_is_the_error_that_it_was() -> None:
    said = {"op": "error", "error": "InvalidRequest", "message": "No.", "remedy": ""}
    with pytest.raises(InvalidRequest, match="No"):
        list(answer(stream(said)).rows())


@pytest.mark.parametrize("content", [stream(None), stream(END)[:-200]])
def test_rows_that_break_off_are_no_answer(content: bytes) -> None:
    with pytest.raises(ServerUnavailable, match="ended before"):
        list(answer(content).rows())


def test_json_is_one_document_however_the_rows_come(capsys: pytest.CaptureFixture[str]) -> None:
    print_answer(answer(stream(END)), Output.JSON)
    said = capsys.readouterr()
    found = json.loads(said.out)
    assert [row["m"] for row in found["rows"]] == [[1, 2], None]
    assert (found["seconds"], found["files"], found["bytes"]) == (0.5, 1, 2000)
    assert said.err == "2 rows in 0.50 s, 1 files of 2.0 kB read\n"


def test_csv_keeps_structure_readable(capsys: pytest.CaptureFixture[str]) -> None:
    print_answer(answer(stream(END)), Output.CSV)
    assert capsys.readouterr().out == 'n,at,m\r\n1.10,2026-01-31 00:00:00+00:00,"[1, 2]"\r\n,,\r\n'
