"""Rows of a query on their way out: as a table, CSV, JSON or Parquet, with a batch of them in memory."""

import csv
import json
import os
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from headgate.cli.output import print_table, printable
from headgate.errors import HeadgateError, InvalidRequest

if TYPE_CHECKING:
    from headgate.cli.lake import Answer

# The rows by which the columns of a table are made wide; more follow at the same widths.
HEAD_ROWS = 1000
# A row group of Parquet is held in memory until it is written.
GROUP_ROWS, GROUP_BYTES = 131_072, 32 * 1024**2
NARROWEST = 4
# What ends a document of JSON: known behind the last row.
Tail = Callable[[], Mapping[str, Any]]


class Output(StrEnum):
    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    JSONL = "jsonl"
    PARQUET = "parquet"


_SUFFIXES = {".csv": Output.CSV, ".json": Output.JSON, ".jsonl": Output.JSONL, ".ndjson": Output.JSONL}
_SUFFIXES[".parquet"] = Output.PARQUET


def chosen_output(output: Output | None, file: Path | None) -> Output:
    """What was asked for; else what the file's name says, or a table."""
    if output is None:
        output = Output.TABLE if file is None else _SUFFIXES.get(file.suffix.casefold(), Output.TABLE)
    if output is Output.PARQUET and file is None:
        raise InvalidRequest("Parquet is written to a file.", "Say which one: --to FILE.")
    return output


def write_rows(found: "Answer", output: Output, file: Path | None, tail: Tail) -> None:
    """To standard output, or to a file that has its name when it is whole."""
    if output in (Output.JSON, Output.JSONL, Output.PARQUET):
        _check_names(found.columns, output)
    if output is Output.PARQUET:
        assert file is not None
        with _whole_file(file) as partial:
            _write_parquet(found, partial)
    elif file is None:
        _write_text(found, output, sys.stdout, tail)
    else:
        # Lines end as CSV's do, whatever the system.
        with _whole_file(file) as partial, partial.open("w", encoding="utf-8", newline="") as out:
            _write_text(found, output, out, tail)


def _write_text(found: "Answer", output: Output, out: TextIO, tail: Tail) -> None:
    match output:
        case Output.CSV:
            writer = csv.writer(out)
            writer.writerow(found.columns)
            writer.writerows(_cells(found))
        case Output.JSONL:
            for row in found.rows():
                out.write(_object(found.columns, row) + "\n")
        case Output.JSON:
            _write_json(found, out, tail)
        case _:
            _write_table(found, out)


def _cells(found: "Answer") -> Iterator[Sequence[Any]]:
    from pyarrow import types

    if any(types.is_nested(kind) or types.is_boolean(kind) for kind in found.schema.types):
        return ([cell(value) for value in row] for row in found.rows())
    return found.rows()


def cell(value: Any) -> Any:
    """Where there is no place for structure, JSON keeps it readable; truth is written as SQL does."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list | bool) else value


def _object(columns: Sequence[str], row: Sequence[Any]) -> str:
    return json.dumps(dict(zip(columns, row, strict=True)), ensure_ascii=False)


def _write_json(found: "Answer", out: TextIO, tail: Tail) -> None:
    """One document, written as the rows come."""
    before = "\n    "
    out.write('{\n  "rows": [')
    for row in found.rows():
        out.write(before + _object(found.columns, row))
        before = ",\n    "
    end = "".join(f',\n  "{name}": {json.dumps(value)}' for name, value in tail().items())
    out.write(("" if before.startswith("\n") else "\n  ") + "]" + end + "\n}\n")


def _write_table(found: "Answer", out: TextIO) -> None:
    """The first rows say how wide columns are. What does not fit later stands out, and nothing is cut."""
    rows = _cells(found)
    head = list(islice(rows, HEAD_ROWS))
    if len(head) < HEAD_ROWS and out is sys.stdout:
        print_table("", found.columns, head)
        return
    shown = [[printable(value) for value in row] for row in [found.columns, *head]]
    widths = [max(NARROWEST, *(len(row[at]) for row in shown)) for at in range(len(found.columns))]
    for row in chain(shown, ([printable(value) for value in row] for row in rows)):
        line = "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True))
        out.write(line.rstrip() + "\n")


def _write_parquet(found: "Answer", file: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        with parquet.ParquetWriter(file, found.schema, compression="zstd") as writer:
            for group in _groups(found.batches()):
                writer.write_table(pa.Table.from_batches(group, found.schema))
    except (pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        raise InvalidRequest(
            f"Parquet has no type for what the query gives: {str(error).splitlines()[0]}.",
            "CAST that column to another type, or write CSV or JSON Lines.",
        ) from error


def _groups(batches: Iterator[Any]) -> Iterator[list[Any]]:
    group: list[Any] = []
    rows = size = 0
    for batch in batches:
        group.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= GROUP_ROWS or size >= GROUP_BYTES:
            yield group
            group, rows, size = [], 0, 0
    if group:
        yield group


def _check_names(columns: Sequence[str], output: Output) -> None:
    """Where a name stands for its value, two of one name would be one."""
    for name in columns:
        if columns.count(name) > 1:
            raise InvalidRequest(
                f"Two columns of the query are called '{name}', and {output} can keep one of them.",
                f"Give one another name: SELECT … AS {name}_2.",
            )


@contextmanager
def _whole_file(file: Path) -> Iterator[Path]:
    """Another file beside it, which takes its name when the block has ended well."""
    partial = file.with_name(f".{file.name}.{uuid.uuid4().hex[:8]}.part")
    try:
        partial.touch(exist_ok=False)
        yield partial
        os.replace(partial, file)  # noqa: PTH105
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise InvalidRequest(f"{file} cannot be written: {error.strerror or error}.") from error
    except (HeadgateError, KeyboardInterrupt):
        partial.unlink(missing_ok=True)
        raise
