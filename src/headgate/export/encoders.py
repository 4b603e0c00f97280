"""The encoder of each format."""

from headgate.export.excel import ExcelEncoder
from headgate.export.formats import CsvEncoder, JsonEncoder, ParquetEncoder

ENCODERS: dict[str, type[CsvEncoder | JsonEncoder | ParquetEncoder | ExcelEncoder]] = {
    "csv": CsvEncoder,
    "jsonl": JsonEncoder,
    "parquet": ParquetEncoder,
    "xlsx": ExcelEncoder,
}
