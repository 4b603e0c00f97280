"""How the rows of a table lie in files: sizes by bucket, and partitions. Small, however many files."""

from bisect import bisect_right
from collections.abc import Mapping
from typing import Any

from headgate.catalog.manifests import Content, file_rows

KIB, MIB = 1024, 1024**2
# Where buckets of sizes begin.
BUCKETS = (0, 64 * KIB, MIB, 4 * MIB, 16 * MIB, 64 * MIB, 128 * MIB, 256 * MIB, 512 * MIB, 1024 * MIB)
# Partitions that are listed, the newest of them; the others are counted.
MOST_PARTITIONS = 1000


def table_layout(metadata: Mapping[str, Any], content: Content) -> dict[str, Any]:
    """Of the current snapshot. Deletes are files of their own, and have no size in the buckets."""
    files = file_rows(metadata, content)
    data = [one for one in files if one["content"] == "DATA"]
    deletes = [one for one in files if one["content"] != "DATA"]
    partitions = _partitions(files)
    return {
        "files": len(data),
        "bytes": sum(one["file_size_in_bytes"] for one in data),
        "rows": sum(one["record_count"] for one in data),
        "delete_files": len(deletes),
        "delete_bytes": sum(one["file_size_in_bytes"] for one in deletes),
        "sizes": _sizes(data),
        "partitions": partitions[:MOST_PARTITIONS],
        "partitions_total": len(partitions),
    }


def _sizes(data: list[dict[str, Any]]) -> list[dict[str, int | None]]:
    counts, sizes = [0] * len(BUCKETS), [0] * len(BUCKETS)
    for one in data:
        size = one["file_size_in_bytes"]
        bucket = bisect_right(BUCKETS, size) - 1
        counts[bucket] += 1
        sizes[bucket] += size
    ends = (*BUCKETS[1:], None)
    return [
        {"from": start, "to": end, "files": files, "bytes": size}
        for start, end, files, size in zip(BUCKETS, ends, counts, sizes, strict=True)
    ]


def _partitions(files: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The newest first, by their values."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for one in files:
        values = one["partition"]
        blank = {"partition": values, "spec_id": one["spec_id"], "rows": 0, "bytes": 0, "files": 0}
        counts = found.setdefault((one["spec_id"], *values.values()), {**blank, "delete_files": 0})
        if one["content"] != "DATA":
            counts["delete_files"] += 1
            continue
        counts["rows"] += one["record_count"]
        counts["bytes"] += one["file_size_in_bytes"]
        counts["files"] += 1
    return sorted(found.values(), key=lambda one: repr([*one["partition"].values()]), reverse=True)
