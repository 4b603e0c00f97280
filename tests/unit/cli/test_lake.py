"""A query's answer as a command reads it: piece by piece, whatever their sizes."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from headgate.cli.lake import Answer, _Pieces
from headgate.cli.query import print_answer
from headgate.cli.rows import HEAD_ROWS, Output, chosen_output
from headgate.errors import InvalidRequest, ServerUnavailable, TerminalError

TABLE = {
    "table": "local.orders",
    "snapshot_id": "41",
    "files": 3,
    "bytes": 2000,
    "files_skipped": 0,
    "bytes_skipped": 0,
    "reason": "no condition on its columns",
}
END: dict[str, Any] = {
    "op": "end",
    "state": "Completed",
    "rows": 2,
    "seconds": 0.5,
    "files": 3,
    "bytes": 2000,
    "files_skipped": 0,
    "bytes_skipped": 0,
    "tables": [TABLE],
}


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
    return Answer(pa.ipc.open_stream(pa.PythonFile(_Pieces(pieces), mode="r")), "q1")


def numbers(count: int, batches: int = 1) -> Answer:
    """`count` rows of a number and its text, in so many batches."""
    sink = pa.BufferOutputStream()
    size = count // batches
    schema = pa.schema([("n", pa.int64()), ("text", pa.string())])
    with pa.ipc.new_stream(sink, schema) as out:
        for number in range(batches):
            values = range(number * size, (number + 1) * size)
            out.write_batch(pa.record_batch([list(values), [f"t{n}" for n in values]], schema=schema))
        nothing = pa.RecordBatch.from_pylist([], schema=schema)
        out.write_batch(nothing, custom_metadata={"headgate": json.dumps(END | {"rows": count})})
    return answer(sink.getvalue().to_pybytes(), 10_000)


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_rows_are_read_from_pieces_of_any_size(size: int) -> None:
    found = answer(stream(END), size)
    rows = [list(row) for row in found.rows()]
    assert rows == [["1.10", "2026-01-31 00:00:00+00:00", [1, 2]], [None, None, None]]
    assert found.end == END


def test_a_query_that_fails_is_the_error_that_it_was() -> None:
    said = {"op": "error", "error": "InvalidRequest", "message": "No.", "remedy": ""}
    with pytest.raises(InvalidRequest, match="No"):
        list(answer(stream(said)).rows())


def test_rows_of_a_query_that_was_cancelled_are_no_answer(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    with pytest.raises(TerminalError, match="not all there"):
        print_answer(answer(stream(END | {"state": "Stopped"})), Output.CSV, file)
    assert not file.exists()


@pytest.mark.parametrize("content", [stream(None), stream(END)[:-200]])
def test_rows_that_break_off_are_no_answer(content: bytes) -> None:
    with pytest.raises(ServerUnavailable, match="ended before"):
        list(answer(content).rows())


def test_json_is_one_document_however_the_rows_come(capsys: pytest.CaptureFixture[str]) -> None:
    print_answer(answer(stream(END)), Output.JSON)
    said = capsys.readouterr()
    found = json.loads(said.out)
    assert [row["m"] for row in found["rows"]] == [[1, 2], None]
    assert (found["query"], found["seconds"], found["files"], found["bytes"]) == ("q1", 0.5, 3, 2000)
    assert (found["files_skipped"], found["tables"]) == (0, [TABLE])
    assert said.err == (
        "2 rows in 0.50 s, 3 files of 2.0 kB read, 0 files of 0 B skipped (query q1)\n"
        "no file of local.orders was skipped: no condition on its columns\n"
    )


def test_csv_keeps_structure_readable(capsys: pytest.CaptureFixture[str]) -> None:
    print_answer(answer(stream(END)), Output.CSV)
    assert capsys.readouterr().out == 'n,at,m\r\n1.10,2026-01-31 00:00:00+00:00,"[1, 2]"\r\n,,\r\n'


@pytest.mark.parametrize(
    ("output", "said"), [(Output.CSV, "b\r\ntrue\r\nfalse\r\n"), (Output.TABLE, "b\ntrue\nfalse\n")]
)
def test_truth_is_written_as_sql_does(capsys: pytest.CaptureFixture[str], output: Output, said: str) -> None:
    sink = pa.BufferOutputStream()
    schema = pa.schema([("b", pa.bool_())])
    with pa.ipc.new_stream(sink, schema) as out:
        out.write_batch(pa.record_batch([[True, False]], schema=schema))
        nothing = pa.RecordBatch.from_pylist([], schema=schema)
        out.write_batch(nothing, custom_metadata={"headgate": json.dumps(END | {"rows": 2})})
    print_answer(answer(sink.getvalue().to_pybytes()), output)
    assert capsys.readouterr().out == said


def test_lines_of_json_are_rows_alone(capsys: pytest.CaptureFixture[str]) -> None:
    print_answer(answer(stream(END)), Output.JSONL)
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        {"n": "1.10", "at": "2026-01-31 00:00:00+00:00", "m": [1, 2]},
        {"n": None, "at": None, "m": None},
    ]


def test_parquet_keeps_types_and_rows(tmp_path: Path) -> None:
    file = tmp_path / "rows.parquet"
    print_answer(answer(stream(END)), Output.PARQUET, file)
    table = parquet.read_table(file)
    assert table.schema.field("n").type == pa.decimal128(9, 2)
    assert table.to_pylist() == [
        {"n": Decimal("1.10"), "at": datetime(2026, 1, 31, tzinfo=UTC), "m": [1, 2]},
        {"n": None, "at": None, "m": None},
    ]
    many = tmp_path / "many.parquet"
    print_answer(numbers(400_000, 40), Output.PARQUET, many)
    found = parquet.ParquetFile(many)
    assert found.metadata.num_rows == 400_000
    assert 2 <= found.metadata.num_row_groups <= 4, "neither all rows at once nor a group for each batch"
    assert found.read().column("n").to_pylist() == list(range(400_000))


@pytest.mark.parametrize(
    ("output", "file", "chosen"),
    [
        (None, None, Output.TABLE),
        (None, "x.CSV", Output.CSV),
        (None, "x.ndjson", Output.JSONL),
        (None, "x.parquet", Output.PARQUET),
        (None, "x.txt", Output.TABLE),
        (Output.JSON, "x.csv", Output.JSON),
    ],
)
def test_a_file_says_by_its_name_what_it_is(output: Output | None, file: str | None, chosen: Output) -> None:
    assert chosen_output(output, None if file is None else Path(file)) is chosen


def test_parquet_needs_a_file() -> None:
    with pytest.raises(InvalidRequest, match="--to FILE"):
        chosen_output(Output.PARQUET, None)


@pytest.mark.parametrize("output", [Output.CSV, Output.JSONL, Output.PARQUET, Output.TABLE])
def test_a_query_that_fails_leaves_the_file_as_it_was(tmp_path: Path, output: Output) -> None:
    file = tmp_path / "rows"
    file.write_text("before")
    said = {"op": "error", "error": "InvalidRequest", "message": "No.", "remedy": ""}
    for content in (stream(said), stream(None)):
        with pytest.raises((InvalidRequest, ServerUnavailable)):
            print_answer(answer(content), output, file)
    assert file.read_text() == "before"
    assert [one.name for one in tmp_path.iterdir()] == ["rows"]


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="nowhere"):
        print_answer(answer(stream(END)), Output.CSV, tmp_path / "nowhere" / "rows.csv")


@pytest.mark.parametrize("output", [Output.JSON, Output.JSONL, Output.PARQUET])
def test_no_column_is_lost_to_another_of_its_name(tmp_path: Path, output: Output) -> None:
    schema = pa.schema([("a", pa.int64()), ("a", pa.string())])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as out:
        out.write_batch(pa.record_batch([[1], ["x"]], schema=schema))
    with pytest.raises(InvalidRequest, match="called 'a'"):
        print_answer(answer(sink.getvalue().to_pybytes()), output, tmp_path / "rows")


def test_a_long_table_goes_on_at_the_widths_of_its_first_rows(capsys: pytest.CaptureFixture[str]) -> None:
    print_answer(numbers(3 * HEAD_ROWS, 3), Output.TABLE)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["n", "text"]
    assert [line.split() for line in lines[1:]] == [[str(n), f"t{n}"] for n in range(3 * HEAD_ROWS)]


def test_a_written_table_is_a_table_too(tmp_path: Path) -> None:
    print_answer(numbers(3), Output.TABLE, tmp_path / "rows.txt")
    assert (tmp_path / "rows.txt").read_text() == "n     text\n0     t0\n1     t1\n2     t2\n"


class Counted:
    """An answer's stream that knows how many batches were asked for, and how many were dropped since."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self.schema = stream.schema
        self.given = 0

    def read_next_batch_with_custom_metadata(self) -> Any:
        self.given += 1
        return self._stream.read_next_batch_with_custom_metadata()


@pytest.mark.parametrize("output", list(Output))
def test_rows_are_written_while_they_come(tmp_path: Path, output: Output) -> None:
    """What is written keeps up with what was read: all but the first rows of a table, or one row group."""
    content = pa.BufferOutputStream()
    schema = pa.schema([("n", pa.int64())])
    with pa.ipc.new_stream(content, schema) as out:
        for first in range(0, 600_000, 10_000):
            out.write_batch(pa.record_batch([list(range(first, first + 10_000))], schema=schema))
    counted = Counted(pa.ipc.open_stream(content.getvalue()))
    sizes: list[int] = []

    class Watched(Answer):
        def batches(self) -> Any:
            for batch in super().batches():
                parts = list(tmp_path.glob(".*.part"))
                sizes.append(parts[0].stat().st_size if parts else 0)
                yield batch

    with pytest.raises(ServerUnavailable, match="ended before"):
        print_answer(Watched(counted, "q1"), output, tmp_path / "rows")
    assert counted.given == 61
    # What is in memory is no more than fourteen batches of sixty, whatever they are written as.
    assert sizes[14] > 0
    assert sizes[45] > sizes[14]
