"""The actions of a commit, made of what Iceberg says of its snapshots and files."""

import json
import uuid
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

from headgate.delta.log import CHECKPOINT_EVERY, ENGINE
from headgate.delta.schema import WIDENING, DeltaSchema
from headgate.delta.state import DOMAIN, ROW_TRACKING, Mirrored

Json = dict[str, Any]
# Which of Iceberg's delete files a logical file has: a tag, in the log only.
DELETES_TAG = "headgate.deletes"
# No other writer knows this feature, so that none writes here, nor cleans up: Delta's VACUUM would take
# Iceberg's metadata for garbage.
OWN_FEATURE = "headgate"
# Not every engine asks for features before it cleans up; but all ask how old a file must be for that.
FOR_EVER = "interval 36500 days"
COLUMN_MAPPING, VECTORS, ROWS = "columnMapping", "deletionVectors", "rowTracking"
_WRITER_FEATURES = ("domainMetadata", "inCommitTimestamp", OWN_FEATURE)
# Iceberg's names for the columns that say which row a row is.
_ROW_ID, _ROW_VERSION = "_row_id", "_last_updated_sequence_number"
OPERATIONS: Mapping[str, str] = {
    "append": "WRITE",
    "overwrite": "MERGE",
    "delete": "DELETE",
    "replace": "OPTIMIZE",
}


def log_path(relative: str) -> str:
    """A file's path as the log says it: a URI, in which a name's own percent signs are escaped."""
    return quote(relative, safe="/=+,@!$&'()*;~")


def protocol_action(features: Iterable[str], rows: bool) -> Json:
    reader = sorted({COLUMN_MAPPING, *features})
    writer = sorted({*reader, *_WRITER_FEATURES, *((ROWS,) if rows else ())})
    said = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": reader, "writerFeatures": writer}
    return {"protocol": said}


def metadata_action(
    log_id: uuid.UUID,
    name: str,
    schema: DeltaSchema,
    properties: Mapping[str, str],
    features: Iterable[str],
    rows: bool,
    created: int,
) -> Json:
    """Properties of the Iceberg table are the table's; those that begin with `delta.` are ours to say."""
    configuration = {key: value for key, value in sorted(properties.items()) if not key.startswith("delta.")}
    configuration |= {
        "delta.columnMapping.mode": "id",
        "delta.columnMapping.maxColumnId": str(schema.last_id),
        "delta.enableInCommitTimestamps": "true",
        "delta.checkpointInterval": str(CHECKPOINT_EVERY),
        "delta.deletedFileRetentionDuration": FOR_EVER,
    }
    if VECTORS in features:
        configuration["delta.enableDeletionVectors"] = "true"
    if WIDENING in features:
        configuration["delta.enableTypeWidening"] = "true"
    if rows:
        configuration["delta.enableRowTracking"] = "true"
        configuration["delta.rowTracking.materializedRowIdColumnName"] = _ROW_ID
        configuration["delta.rowTracking.materializedRowCommitVersionColumnName"] = _ROW_VERSION
    said: Json = {
        "id": str(log_id),
        "name": name,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": schema.text,
        "partitionColumns": [],
        "configuration": configuration,
        "createdTime": created,
    }
    if properties.get("comment"):
        said["description"] = properties["comment"]
    return {"metaData": said}


def commit_info(operation: str, timestamp: int, mirrored: Mirrored, version: str) -> Json:
    return {
        "commitInfo": {
            "inCommitTimestamp": timestamp,
            "timestamp": timestamp,
            "operation": operation,
            "operationParameters": {},
            "isBlindAppend": operation == "WRITE",
            "engineInfo": f"{ENGINE}/{version}",
            "txnId": str(uuid.uuid5(uuid.UUID(mirrored.table), f"{mirrored.metadata} {mirrored.snapshot}")),
            "icebergSnapshotId": mirrored.snapshot,
            "icebergMetadataLocation": mirrored.metadata,
        }
    }


def mark_actions(mirrored: Mirrored, timestamp: int) -> list[Json]:
    """What the log itself remembers of Iceberg."""
    marks: list[Json] = [domain_action(DOMAIN, mirrored.to_json())]
    if mirrored.snapshot is not None:
        said = {
            "appId": f"{ENGINE}-{mirrored.table}",
            "version": mirrored.snapshot,
            "lastUpdated": timestamp,
        }
        marks.append({"txn": said})
    return marks


def high_water_action(next_row_id: int) -> Json:
    return domain_action(
        ROW_TRACKING, json.dumps({"rowIdHighWaterMark": next_row_id - 1}, separators=(",", ":"))
    )


def domain_action(name: str, configuration: str) -> Json:
    return {"domainMetadata": {"domain": name, "configuration": configuration, "removed": False}}


def add_action(
    path: str,
    file: Mapping[str, Any],
    stats: str,
    timestamp: int,
    data_change: bool,
    rows: tuple[int, int] | None,
    vector: Json | None = None,
    deletes: str | None = None,
) -> Json:
    """`rows`: the id of the file's first row and the sequence number that its rows have."""
    said: Json = {
        "path": path,
        "partitionValues": {},
        "size": file["file-size-in-bytes"],
        "modificationTime": timestamp,
        "dataChange": data_change,
        "stats": stats,
    }
    if deletes is not None:
        said["tags"] = {DELETES_TAG: deletes}
    if vector is not None:
        said["deletionVector"] = vector
    if rows is not None:
        said["baseRowId"], said["defaultRowCommitVersion"] = rows
    return {"add": said}


def with_vector(add: Json, vector: Json | None, deletes: str | None, data_change: bool) -> Json:
    """The same file with other deleted rows. What its bounds say is then wider than its rows."""
    said = {key: value for key, value in add.items() if key not in ("deletionVector", "tags")}
    said["dataChange"] = data_change
    stats = json.loads(said["stats"])
    if vector is not None and stats.get("tightBounds"):
        said["stats"] = said["stats"].replace('"tightBounds":true', '"tightBounds":false')
    if deletes is not None:
        said["tags"] = {DELETES_TAG: deletes}
    if vector is not None:
        said["deletionVector"] = vector
    return {"add": said}


def remove_action(add: Mapping[str, Any], timestamp: int, data_change: bool) -> Json:
    said = {
        "path": add["path"],
        "deletionTimestamp": timestamp,
        "dataChange": data_change,
        "extendedFileMetadata": True,
        "partitionValues": {},
        "size": add["size"],
    }
    for key in ("deletionVector", "baseRowId", "defaultRowCommitVersion"):
        if key in add:
            said[key] = add[key]
    return {"remove": said}


def deletes_of(add: Mapping[str, Any]) -> str | None:
    return (add.get("tags") or {}).get(DELETES_TAG)
