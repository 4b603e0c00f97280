"""What lies beside a file and says what is in it: the same for the same run, so without a time of its own."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from headgate import __version__
from headgate.export.columns import Column
from headgate.export.definition import ExportOptions
from headgate.export.files import WrittenFile
from headgate.store import RunRecord

VERSION = 1


def moment(at: float, zone: ZoneInfo) -> str:
    return datetime.fromtimestamp(at, UTC).astimezone(zone).isoformat()


def manifest_of(
    run: RunRecord,
    options: ExportOptions,
    files: Sequence[WrittenFile],
    columns: Sequence[Column],
    detail: Mapping[str, Any],
) -> dict[str, Any]:
    zone = ZoneInfo(options.zone)
    is_parted = options.part_bytes is not None
    csv = {"csv": options.csv.model_dump()} if options.format == "csv" else {}
    return {
        "manifest": VERSION,
        "writer": f"headgate {__version__}",
        "export": run.export,
        "run": run.id,
        "period": {
            "from": moment(run.period_start, zone),
            "to": moment(run.period_end, zone),
            "zone": options.zone,
        },
        "file": {
            **({} if is_parted else {"name": files[0].name}),
            "format": options.format,
            "compression": options.compression,
            **csv,
            "rows": sum(file.rows for file in files),
            "bytes": sum(file.figures.bytes for file in files),
            **({} if is_parted else {"sha256": files[0].figures.sha256}),
        },
        **({"parts": [_part(file) for file in files]} if is_parted else {}),
        "columns": [{"name": column.name, "type": str(column.type)} for column in columns],
        "masked": {name: mask.mask for name, mask in sorted(options.masks.items())},
        "keys": detail["keys"],
        "query": options.sql,
        # As text: JSON's readers round numbers of this size.
        "snapshots": {table: str(snapshot) for table, snapshot in sorted(detail["snapshots"].items())},
        **_increment(detail),
        "repeatable": not detail["unrepeatable"],
        "unrepeatable": detail["unrepeatable"],
        "warnings": detail["warnings"],
    }


def _part(file: WrittenFile) -> dict[str, Any]:
    figures = file.figures
    return {"name": file.name, "rows": file.rows, "bytes": figures.bytes, "sha256": figures.sha256}


def _increment(detail: Mapping[str, Any]) -> dict[str, Any]:
    """Of an incremental export, the snapshot of the run before; None where the whole table was read."""
    if (found := detail.get("increment")) is None:
        return {}
    since = found["since"]
    return {"since": None if since is None else str(since), "increment": found["number"]}


def manifest_text(manifest: Mapping[str, Any]) -> str:
    return json.dumps(manifest, ensure_ascii=False, indent=2) + "\n"
