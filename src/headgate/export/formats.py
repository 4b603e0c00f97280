"""Rows as the bytes of a file. The same rows give the same bytes, however they are cut into batches."""

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Protocol
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from headgate.errors import InvalidRequest
from headgate.export.cells import json_text, texts_of
from headgate.export.definition import ExportOptions

# So many rows are made text at a time.
SLICE_ROWS = 8_192
# Of Parquet: row groups do not follow the batches that come.
GROUP_ROWS = 65_536
_BOM = b"\xef\xbb\xbf"
# What a spreadsheet takes for the beginning of a formula, or leaves out before one.
_FORMULA = r"^[=+\-@\t\r\n＝＋－＠]"
_LINE_ENDS = {"crlf": "\r\n", "lf": "\n"}


class Sink(Protocol):
    """Where bytes go."""

    def write(self, data: bytes, /) -> object: ...


class Encoder(ABC):
    """Writes rows into a sink; `columns` are the names of all of them, in their order."""

    def __init__(self, sink: Sink, columns: Sequence[str], options: ExportOptions) -> None:
        self.sink = sink
        self.columns = columns
        self.options = options
        self.zone = ZoneInfo(options.zone)

    @abstractmethod
    def begin(self, schema: pa.Schema) -> None:
        """Before the first row."""

    def write(self, batch: pa.RecordBatch) -> None:
        for start in range(0, batch.num_rows, SLICE_ROWS):
            self.write_slice(batch.slice(start, SLICE_ROWS))

    @abstractmethod
    def write_slice(self, rows: pa.RecordBatch) -> None: ...

    @abstractmethod
    def end(self) -> None:
        """After the last row."""

    def abandon(self) -> None:  # noqa: B027 - most have nothing to let go of
        """After a failure: what was written is thrown away."""


class CsvEncoder(Encoder):
    """RFC 4180, whole columns at a time."""

    def begin(self, schema: pa.Schema) -> None:
        if self.options.csv.encoding == "utf-8-bom":
            self.sink.write(_BOM)
        if self.options.csv.header:
            names = pa.record_batch([pa.array([name]) for name in self.columns], names=list(self.columns))
            self.write_slice(names)

    def end(self) -> None:
        """Each line has ended already."""

    def write_slice(self, rows: pa.RecordBatch) -> None:
        csv = self.options.csv
        cells = [self._cells(column) for column in rows.columns]
        lines = pc.binary_join_element_wise(*cells, csv.delimiter) if len(cells) > 1 else cells[0]
        end = _LINE_ENDS[csv.line_end]
        whole = pc.binary_join(pa.ListArray.from_arrays([0, len(lines)], lines), end)[0].as_py() + end
        self.sink.write(self._encoded(whole))

    def _cells(self, column: pa.Array) -> pa.Array:
        csv, kind = self.options.csv, column.type
        texts = texts_of(column, self.zone)
        if pa.types.is_string(kind) and csv.formulas == "neutralize":
            formulas = pc.match_substring_regex(texts, _FORMULA)
            if pc.any(formulas).as_py():
                marked = pc.binary_join_element_wise("'", texts, "")
                texts = pc.if_else(formulas, marked, texts)
        needs = self._needs_quotes(texts, pa.types.is_string(kind) or pa.types.is_list(kind))
        if needs is not None:
            doubled = pc.replace_substring(texts, pattern='"', replacement='""')
            texts = pc.if_else(needs, pc.binary_join_element_wise('"', doubled, '"', ""), texts)
        return pc.fill_null(texts, csv.null)

    def _needs_quotes(self, texts: pa.Array, is_free: bool) -> pa.Array | None:
        """Which texts are quoted; None where none is. Those that are not `is_free` never hold a delimiter."""
        csv = self.options.csv
        if csv.quote == "all":
            return pc.is_valid(texts)
        # A text that would be read as NULL is told from it by its quotes.
        needs = pc.equal(texts, csv.null)
        if is_free:
            needs = pc.or_(needs, pc.match_substring_regex(texts, f'["\r\n{_escaped(csv.delimiter)}]|^ | $'))
        return needs if pc.any(needs).as_py() else None

    def _encoded(self, text: str) -> bytes:
        try:
            return text.encode(self.options.codec)
        except UnicodeEncodeError as error:
            letter = text[error.start]
            raise InvalidRequest(
                f"A text has the letter U+{ord(letter):04X}, which {self.options.csv.encoding} lacks.",
                "Use the encoding utf-8, or utf-8-bom for programs that have to be told.",
            ) from error


def _escaped(delimiter: str) -> str:
    return f"\\{delimiter}"


class JsonEncoder(Encoder):
    """A line of JSON for each row; decimals and times are texts, arrays are arrays."""

    def begin(self, schema: pa.Schema) -> None:
        """There is no header."""

    def end(self) -> None:
        """Each line has ended already."""

    def write_slice(self, rows: pa.RecordBatch) -> None:
        names = [json.dumps(name, ensure_ascii=False) for name in self.columns]
        written = [self._values(column) for column in rows.columns]
        lines = [
            "{" + ",".join(f"{name}:{value}" for name, value in zip(names, row, strict=True)) + "}\n"
            for row in zip(*written, strict=True)
        ]
        self.sink.write("".join(lines).encode())

    def _values(self, column: pa.Array) -> list[str]:
        kind = column.type
        if pa.types.is_timestamp(kind) or pa.types.is_decimal(kind) or pa.types.is_binary(kind):
            column = texts_of(column, self.zone)
        if pa.types.is_floating(kind):
            return [_number(value) for value in column.to_pylist()]
        return [json_text(value, self.zone) for value in column.to_pylist()]


def _number(value: float | None) -> str:
    if value is None:
        return "null"
    return repr(value) if value - value == 0 else json.dumps(str(value))


class ParquetEncoder(Encoder):
    """Row groups of a fixed number of rows. Values keep their types."""

    _writer: pq.ParquetWriter

    def begin(self, schema: pa.Schema) -> None:
        codec = "zstd" if self.options.compression == "zstd" else "none"
        self._writer = pq.ParquetWriter(self.sink, schema, compression=codec, store_schema=False)
        self._waiting: list[pa.RecordBatch] = []
        self._rows = 0

    def write(self, batch: pa.RecordBatch) -> None:
        self._waiting.append(batch)
        self._rows += batch.num_rows
        while self._rows >= GROUP_ROWS:
            self._put(GROUP_ROWS)

    def write_slice(self, rows: pa.RecordBatch) -> None:
        raise AssertionError("rows are written by groups")

    def end(self) -> None:
        if self._rows:
            self._put(self._rows)
        self._writer.close()

    def _put(self, rows: int) -> None:
        table = pa.Table.from_batches(self._waiting).combine_chunks()
        self._writer.write_table(table.slice(0, rows), row_group_size=rows)
        self._waiting = table.slice(rows).to_batches()
        self._rows -= rows
