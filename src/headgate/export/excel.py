"""Rows as a workbook of one sheet (Office Open XML), written straight through: none of it is kept.

It is written by hand, so that its bytes depend on the rows alone: no time, no name of a program, no temporary
file, and numbers with all their digits. What a spreadsheet's numbers cannot hold exactly is text.
"""

import re
import zipfile
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any
from xml.sax.saxutils import escape

import pyarrow as pa
import pyarrow.compute as pc

from headgate.errors import InvalidRequest
from headgate.export.cells import texts_of
from headgate.export.definition import ExportOptions
from headgate.export.formats import Encoder, Sink
from headgate.export.packing import EvenPieces

MOST_ROWS = 1_048_576
MOST_COLUMNS = 16_384
# Of a text, in UTF-16.
MOST_LETTERS = 32_767
# Of a sheet before it is packed: what a ZIP file without extensions holds.
MOST_BYTES = 2**31 - 1
# Digits that a spreadsheet's numbers keep.
MOST_DIGITS = 15
_MOST_WHOLE = 10**MOST_DIGITS - 1
# Spreadsheets count days from here, and have a day in 1900 that never was before the first that is right.
_EPOCH_DAYS, _FIRST_DAY, _LAST_DAY = 25_569, 61, 2_958_465
_DATE_STYLE = 1
_FIRST_OWN_FORMAT = 164
_LEVEL = 6
_TIME = (1980, 1, 1, 0, 0, 0)
_XML = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_CONTENT = "application/vnd.openxmlformats-officedocument.spreadsheetml"
_PARTS = {
    "[Content_Types].xml": (
        f'<Types xmlns="{_PACKAGE}/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        '<Default Extension="xml" ContentType="application/xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{_CONTENT}.sheet.main+xml"/>'
        f'<Override PartName="/xl/worksheets/sheet1.xml" ContentType="{_CONTENT}.worksheet+xml"/>'
        f'<Override PartName="/xl/styles.xml" ContentType="{_CONTENT}.styles+xml"/></Types>'
    ),
    "_rels/.rels": (
        f'<Relationships xmlns="{_PACKAGE}/relationships">'
        f'<Relationship Id="rId1" Type="{_OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>'
    ),
    "xl/workbook.xml": (
        f'<workbook xmlns="{_MAIN}" xmlns:r="{_OFFICE}"><sheets>'
        '<sheet name="rows" sheetId="1" r:id="rId1"/></sheets></workbook>'
    ),
    "xl/_rels/workbook.xml.rels": (
        f'<Relationships xmlns="{_PACKAGE}/relationships">'
        f'<Relationship Id="rId1" Type="{_OFFICE}/worksheet" Target="worksheets/sheet1.xml"/>'
        f'<Relationship Id="rId2" Type="{_OFFICE}/styles" Target="styles.xml"/></Relationships>'
    ),
}
_SHEET = "xl/worksheets/sheet1.xml"
# What XML has no way to say, and what would be read as one of these ways.
_UNSAYABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]|_(?=x[0-9A-Fa-f]{4}_)")
_UNPLAIN = "[\x00-\x1f&<>_\ufffe\uffff]"


class ExcelEncoder(Encoder):
    """Whole columns at a time, as the other formats."""

    def __init__(self, sink: Sink, columns: Sequence[str], options: ExportOptions) -> None:
        super().__init__(sink, columns, options)
        self._rows = 0
        self._bytes = 0
        self._open = ExitStack()

    def begin(self, schema: pa.Schema) -> None:
        if len(schema) > MOST_COLUMNS:
            raise InvalidRequest(
                f"The query gives {len(schema)} columns, and a sheet has {MOST_COLUMNS}.",
                "Use csv or parquet, or take columns out.",
            )
        places: Any = self.sink
        book = zipfile.ZipFile(places, "w", zipfile.ZIP_DEFLATED, compresslevel=_LEVEL)
        self._open.enter_context(book)
        scales = sorted({field.type.scale for field in schema if pa.types.is_decimal(field.type)})
        self._styles = {scale: number for number, scale in enumerate(scales, _DATE_STYLE + 1)}
        for name, text in {**_PARTS, "xl/styles.xml": _styles(scales)}.items():
            book.writestr(_entry(name), _XML + text)
        self._even = EvenPieces(self._open.enter_context(book.open(_entry(_SHEET), "w")))
        self._put(f'{_XML}<worksheet xmlns="{_MAIN}"><sheetData>')
        self.write_slice(
            pa.record_batch([pa.array([name]) for name in self.columns], names=list(self.columns))
        )

    def write_slice(self, rows: pa.RecordBatch) -> None:
        first, self._rows = self._rows + 1, self._rows + rows.num_rows
        if self._rows > MOST_ROWS:
            raise InvalidRequest(
                f"The query gives more than the {MOST_ROWS - 1:,} rows that a sheet has below its header.",
                "Use csv or parquet, or ask for less.",
            )
        if not rows.num_rows:
            return
        numbers = pa.array(range(first, first + rows.num_rows), pa.int32()).cast(pa.string())
        cells = [self._cells(place, column, numbers) for place, column in enumerate(rows.columns)]
        lines = pc.binary_join_element_wise('<row r="', numbers, '">', *cells, "</row>", "")
        self._put("".join(lines.to_pylist()))

    def end(self) -> None:
        self._put("</sheetData></worksheet>")
        self._even.finish()
        self._open.close()

    def abandon(self) -> None:
        self._open.close()

    def _put(self, text: str) -> None:
        data = text.encode()
        self._bytes += len(data)
        if self._bytes > MOST_BYTES:
            raise InvalidRequest("The rows are too large for a workbook.", "Use csv or parquet.")
        self._even.write(data)

    def _cells(self, place: int, column: pa.Array, numbers: pa.Array) -> pa.Array:
        """`<c>` of each row; nothing for NULL."""
        kind = column.type
        at = pc.binary_join_element_wise(f'<c r="{_letters(place)}', numbers, '"', "")
        name = self.columns[place]
        if pa.types.is_boolean(kind):
            found = pc.binary_join_element_wise(
                at, ' t="b"><v>', column.cast(pa.int8()).cast(pa.string()), "</v></c>", ""
            )
        elif pa.types.is_date(kind):
            days = pc.add(column.cast(pa.date32()).cast(pa.int32()), _EPOCH_DAYS)
            fits = pc.and_(pc.greater_equal(days, _FIRST_DAY), pc.less_equal(days, _LAST_DAY))
            found = self._either(name, fits, at, _DATE_STYLE, days.cast(pa.string()), column)
        elif pa.types.is_integer(kind):
            fits = _true_of(column)
            if kind.bit_width == 64:
                wide = column.cast(pa.decimal128(20, 0))
                fits = pc.and_(pc.less_equal(wide, _MOST_WHOLE), pc.greater_equal(wide, -_MOST_WHOLE))
            found = self._either(name, fits, at, 0, column.cast(pa.string()), column)
        elif pa.types.is_decimal(kind):
            texts = texts_of(column, self.zone)
            digits = pc.replace_substring_regex(texts, r"^-?0*\.?0*|\.", "")
            fits = pc.less_equal(pc.utf8_length(digits), MOST_DIGITS)
            found = self._either(name, fits, at, self._styles[kind.scale], texts, column)
        elif pa.types.is_floating(kind):
            found = self._either(name, pc.is_finite(column), at, 0, texts_of(column, self.zone), column)
        else:
            found = self._text_cells(name, at, column)
        return pc.fill_null(found, "")

    def _either(
        self, name: str, fits: pa.Array, at: pa.Array, style: int, numbers: pa.Array, column: pa.Array
    ) -> pa.Array:
        """Numbers where they fit, texts where a spreadsheet would round."""
        styled = f' s="{style}"><v>' if style else "><v>"
        cells = pc.binary_join_element_wise(at, styled, numbers, "</v></c>", "")
        if pc.all(fits, min_count=0).as_py():
            return cells
        return pc.if_else(fits, cells, self._text_cells(name, at, column))

    def _text_cells(self, name: str, at: pa.Array, column: pa.Array) -> pa.Array:
        texts = texts_of(column, self.zone)
        _check_length(name, texts)
        inner = _xml_texts(texts)
        return pc.binary_join_element_wise(
            at, ' t="inlineStr"><is><t xml:space="preserve">', inner, "</t></is></c>", ""
        )


def _true_of(column: pa.Array) -> pa.Array:
    return pa.repeat(pa.scalar(True), len(column))


def _check_length(name: str, texts: pa.Array) -> None:
    longest = pc.max(pc.utf8_length(texts)).as_py() or 0
    # A letter is one unit of UTF-16 or two.
    if longest * 2 > MOST_LETTERS:
        longest = max(len(text.encode("utf-16-le")) // 2 for text in texts.to_pylist() if text is not None)
    if longest > MOST_LETTERS:
        raise InvalidRequest(
            f"Column '{name}' has a text of {longest:,} letters, and a cell holds {MOST_LETTERS:,}.",
            "Use csv or parquet, or cut the text in the query.",
        )


def _xml_texts(texts: pa.Array) -> pa.Array:
    if not pc.any(pc.match_substring_regex(texts, _UNPLAIN)).as_py():
        return texts
    return pa.array([None if text is None else xml_text(text) for text in texts.to_pylist()], pa.string())


def xml_text(text: str) -> str:
    """A text as a cell has it: what XML cannot say as `_x0001_`, and an underscore that would begin such."""
    said = _UNSAYABLE.sub(lambda match: f"_x{ord(match[0]):04X}_", text)
    return escape(said, {"\r": "&#13;"})


def _letters(place: int) -> str:
    """The name of a column: A to Z, then AA."""
    name, place = "", place + 1
    while place:
        place, rest = divmod(place - 1, 26)
        name = chr(ord("A") + rest) + name
    return name


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, _TIME)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.create_system = 0
    return entry


def _styles(scales: Sequence[int]) -> str:
    """Style 0 is plain, 1 a date; then one for each number of digits behind the point."""
    formats = "".join(
        f'<numFmt numFmtId="{_FIRST_OWN_FORMAT + number}" formatCode="{code}"/>'
        for number, code in enumerate(["yyyy-mm-dd", *map(_format, scales)])
    )
    count = 1 + len(scales)
    used = "".join(
        f'<xf numFmtId="{_FIRST_OWN_FORMAT + number}" fontId="0" fillId="0" borderId="0" xfId="0"'
        ' applyNumberFormat="1"/>'
        for number in range(count)
    )
    plain = '<xf numFmtId="0" fontId="0" fillId="0" borderId="0"'
    return (
        f'<styleSheet xmlns="{_MAIN}"><numFmts count="{count}">{formats}</numFmts>'
        '<fonts count="1"><font><sz val="11"/><name val="Calibri"/></font></fonts>'
        '<fills count="2"><fill><patternFill patternType="none"/></fill>'
        '<fill><patternFill patternType="gray125"/></fill></fills>'
        '<borders count="1"><border><left/><right/><top/><bottom/><diagonal/></border></borders>'
        f'<cellStyleXfs count="1">{plain}/></cellStyleXfs>'
        f'<cellXfs count="{count + 1}">{plain} xfId="0"/>{used}</cellXfs>'
        '<cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles></styleSheet>'
    )


def _format(scale: int) -> str:
    return f"0.{'0' * min(scale, MOST_DIGITS)}" if scale > 0 else "0"
