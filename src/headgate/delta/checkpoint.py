"""A checkpoint: the whole state of a version in one Parquet file, so that readers need not begin at zero."""

import io
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

Json = dict[str, Any]
_TEXTS = pa.map_(pa.string(), pa.string())
_VECTOR = pa.struct(
    [
        ("storageType", pa.string()),
        ("pathOrInlineDv", pa.string()),
        ("offset", pa.int32()),
        ("sizeInBytes", pa.int32()),
        ("cardinality", pa.int64()),
    ]
)
_SCHEMA = pa.schema(
    [
        ("txn", pa.struct([("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())])),
        (
            "add",
            pa.struct(
                [
                    ("path", pa.string()),
                    ("partitionValues", _TEXTS),
                    ("size", pa.int64()),
                    ("modificationTime", pa.int64()),
                    ("dataChange", pa.bool_()),
                    ("stats", pa.string()),
                    ("tags", _TEXTS),
                    ("deletionVector", _VECTOR),
                    ("baseRowId", pa.int64()),
                    ("defaultRowCommitVersion", pa.int64()),
                ]
            ),
        ),
        (
            "remove",
            pa.struct(
                [
                    ("path", pa.string()),
                    ("deletionTimestamp", pa.int64()),
                    ("dataChange", pa.bool_()),
                    ("extendedFileMetadata", pa.bool_()),
                    ("partitionValues", _TEXTS),
                    ("size", pa.int64()),
                    ("deletionVector", _VECTOR),
                    ("baseRowId", pa.int64()),
                    ("defaultRowCommitVersion", pa.int64()),
                ]
            ),
        ),
        (
            "metaData",
            pa.struct(
                [
                    ("id", pa.string()),
                    ("name", pa.string()),
                    ("description", pa.string()),
                    ("format", pa.struct([("provider", pa.string()), ("options", _TEXTS)])),
                    ("schemaString", pa.string()),
                    ("partitionColumns", pa.list_(pa.string())),
                    ("configuration", _TEXTS),
                    ("createdTime", pa.int64()),
                ]
            ),
        ),
        (
            "protocol",
            pa.struct(
                [
                    ("minReaderVersion", pa.int32()),
                    ("minWriterVersion", pa.int32()),
                    ("readerFeatures", pa.list_(pa.string())),
                    ("writerFeatures", pa.list_(pa.string())),
                ]
            ),
        ),
        (
            "domainMetadata",
            pa.struct([("domain", pa.string()), ("configuration", pa.string()), ("removed", pa.bool_())]),
        ),
    ]
)


def to_parquet(actions: Iterable[Json]) -> bytes:
    rows = [{name: action.get(name) for name in _SCHEMA.names} for action in actions]
    data = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, schema=_SCHEMA), data, compression="snappy")
    return data.getvalue()


def from_parquet(data: bytes) -> list[Json]:
    """The actions, as they are in commits: what is not there is left away."""
    table = pq.read_table(io.BytesIO(data))
    return [_present(row, table.schema) for row in table.to_pylist()]


def _present(row: Json, schema: Any) -> Json:
    return {name: _plain(value, schema.field(name).type) for name, value in row.items() if value is not None}


def _plain(value: Any, kind: Any) -> Any:
    if pa.types.is_map(kind):
        return dict(value)
    if pa.types.is_struct(kind):
        return {
            name: _plain(inner, kind.field(name).type) for name, inner in value.items() if inner is not None
        }
    return value
