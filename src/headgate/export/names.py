"""Names of files and of what stands for them on the way."""

import re
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from headgate.export.schedule import Bounds

PLACEHOLDERS = ("export", "from", "to", "last", "run", "part")
# Stands for the number of a part that is not known.
ANY_PART = "\0"
_PLACE = re.compile(r"\{([^{}]*)\}")
_PLAIN = re.compile(r"[A-Za-z0-9._=@+ -]*")
ENDINGS = {"csv": ".csv", "jsonl": ".jsonl", "parquet": ".parquet", "xlsx": ".xlsx"}
PACKED = {"none": "", "gzip": ".gz", "zstd": ".zst"}
CONTENT_TYPES = {
    ".csv": "text/csv",
    ".jsonl": "application/x-ndjson",
    ".parquet": "application/vnd.apache.parquet",
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ".gz": "application/gzip",
    ".zst": "application/zstd",
}
MANIFEST = ".manifest.json"


def check_template(template: str) -> None:
    for placeholder in _PLACE.findall(template):
        if placeholder not in PLACEHOLDERS:
            known = ", ".join(f"{{{name}}}" for name in PLACEHOLDERS)
            raise ValueError(f"file_name: nothing is known of {{{placeholder}}}; there are {known}")
    if not {"from", "to", "last", "run"} & set(_PLACE.findall(template)):
        raise ValueError(
            "file_name: each run needs a name of its own: put {from}, {to}, {last} or {run} into it"
        )
    if not template or template.startswith((".", " ")) or not _PLAIN.fullmatch(_PLACE.sub("", template)):
        raise ValueError(f"file_name: '{template}' is no name: letters, digits, and . _ = @ + - in between")


def file_name(
    template: str,
    ending: str,
    export: str,
    run: str,
    bounds: Bounds,
    zone: ZoneInfo,
    repeat: int,
    part: str | None = None,
) -> str:
    """The name of a run's file, or of all of them where there are parts and none is said. `repeat` counts the
    runs that were about the same time before."""
    said = {
        "export": export,
        "from": _day(bounds.start, zone),
        "to": _day(bounds.end, zone),
        "last": _day(bounds.end - timedelta(microseconds=1), zone, date_only=True),
        "run": run,
        "part": part or "all",
    }
    name = _PLACE.sub(lambda match: said[match[1]], template)
    numbered = f".part-{part}" if part and "{part}" not in template else ""
    return f"{name}{f'.{repeat + 1}' if repeat else ''}{numbered}{ending}"


def _day(at: datetime, zone: ZoneInfo, date_only: bool = False) -> str:
    """The date, with the time of day where that is not the beginning of the day."""
    wall = at.astimezone(zone)
    if date_only or (wall.hour, wall.minute, wall.second) == (0, 0, 0):
        return wall.strftime("%Y-%m-%d")
    return wall.strftime("%Y-%m-%dT%H%M%S")


def ending_of(file_format: str, compression: str) -> str:
    return ENDINGS[file_format] + ("" if file_format == "parquet" else PACKED[compression])


def content_type(name: str) -> str:
    for ending, kind in reversed(CONTENT_TYPES.items()):
        if name.endswith(ending):
            return kind
    raise AssertionError(f"{name} has an ending of ours")
