"""Tables of the catalog as exports need them: the snapshot that is current, and a tag that holds it."""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx

from headgate.catalog.client import VIEW_ALL, VIEW_HEADER
from headgate.errors import CatalogUnavailable, InvalidRequest, NotFound, TransientError
from headgate.export.sql import TableName
from headgate.model import DEAD_LETTERS_KEY, MANAGED_KEY

SECONDS = 30.0
SEPARATOR = "\x1f"
# A tag that is set by others in between is looked at again.
TRIES = 5
LOOK_SECONDS = 0.2


@dataclass(frozen=True)
class TableColumn:
    """A column of a snapshot; `type` is Iceberg's, as JSON."""

    id: int
    name: str
    type: str

    @property
    def is_nested(self) -> bool:
        return self.type.startswith("{")

    @property
    def has_fractions(self) -> bool:
        """Whether it is FLOAT or DOUBLE, or may have such a field."""
        return any(name in self.type for name in ("float", "double"))


@dataclass(frozen=True)
class SnapshotState:
    """What a snapshot of a table is: `sequence` counts the table's commits. Headgate materializes a topic in
    it, if `is_materialized`."""

    table_uuid: str
    is_materialized: bool
    format_version: int
    sequence: int
    columns: tuple[TableColumn, ...]


class CatalogTables:
    """Over the Iceberg REST catalog at `uri`; `key` opens it."""

    def __init__(self, uri: str, key: str) -> None:
        self._uri = uri.rstrip("/")
        self._headers = {"Authorization": f"Bearer {key}", VIEW_HEADER: VIEW_ALL}

    def exists(self, table: TableName) -> bool:
        answer = self._answer("HEAD", table)
        if answer.status_code != httpx.codes.NOT_FOUND and not answer.is_success:
            raise CatalogUnavailable(f"The catalog answered {answer.status_code} for table '{table}'.")
        return answer.is_success

    def snapshot(self, table: TableName) -> int:
        """The current snapshot. A table without one has nothing to read yet."""
        current = self._metadata(table).get("current-snapshot-id")
        if current is None or current == -1:
            raise TransientError(f"Table '{table}' has no rows yet.", "The run is tried again.")
        return int(current)

    def state(self, table: TableName, snapshot: int) -> SnapshotState | None:
        """None where the snapshot is gone."""
        metadata = self._metadata(table)
        for one in metadata.get("snapshots") or ():
            if one["snapshot-id"] == snapshot:
                return _state(metadata, one)
        return None

    def hold(self, table: TableName, tag: str, snapshot: int, seconds: float) -> bool:
        """A tag on a snapshot, which keeps its files for so long. False when the snapshot is gone."""
        for _ in range(TRIES):
            metadata = self._metadata(table)
            held = (metadata.get("refs") or {}).get(tag)
            if held is not None:
                return bool(held["snapshot-id"] == snapshot)
            made = [
                one["timestamp-ms"]
                for one in metadata.get("snapshots") or ()
                if one["snapshot-id"] == snapshot
            ]
            if not made:
                return False
            # A tag's age is counted from when its snapshot was made.
            age = time.time() - made[0] / 1000
            self._commit(table, metadata["table-uuid"], _set(tag, snapshot, age + seconds), _absent(tag))
        raise TransientError(f"Table '{table}' does not take the tag {tag}.", "The run is tried again.")

    def release(self, table: TableName, tag: str) -> None:
        """Without its tag; a table that is gone has none."""
        for _ in range(TRIES):
            try:
                metadata = self._metadata(table)
            except NotFound:
                return
            held = (metadata.get("refs") or {}).get(tag)
            if held is None:
                return
            there = {"type": "assert-ref-snapshot-id", "ref": tag, "snapshot-id": held["snapshot-id"]}
            self._commit(
                table, metadata["table-uuid"], {"action": "remove-snapshot-ref", "ref-name": tag}, there
            )
        raise TransientError(f"Table '{table}' does not give up the tag {tag}.")

    def _commit(
        self, table: TableName, uuid: str, update: Mapping[str, Any], required: Mapping[str, Any]
    ) -> None:
        """Whether it took effect is seen at the next look, whatever came as an answer."""
        asserted = {"type": "assert-table-uuid", "uuid": uuid}
        answer = self._answer("POST", table, {"requirements": [asserted, required], "updates": [update]})
        if answer.status_code == httpx.codes.FORBIDDEN:
            raise InvalidRequest(f"Table '{table}' takes no tag: {_message(answer)}")
        if not answer.is_success:
            time.sleep(LOOK_SECONDS)

    def _metadata(self, table: TableName) -> Mapping[str, Any]:
        answer = self._answer("GET", table)
        if answer.status_code == httpx.codes.NOT_FOUND:
            raise NotFound(
                f"There is no table '{table}'.",
                "Exports read tables, not views: see `headgate table list`, or change the query.",
            )
        if not answer.is_success:
            raise CatalogUnavailable(f"The catalog answered {answer.status_code} for table '{table}'.")
        found: Mapping[str, Any] = answer.json()["metadata"]
        return found

    def _answer(self, method: str, table: TableName, body: Any = None) -> httpx.Response:
        namespace = quote(SEPARATOR.join(table.namespace), safe="")
        url = f"{self._uri}/v1/namespaces/{namespace}/tables/{quote(table.name, safe='')}"
        try:
            return httpx.request(
                method, url, json=body, headers=self._headers, timeout=SECONDS, trust_env=False
            )
        except httpx.TransportError as error:
            reason = str(error) or type(error).__name__
            raise CatalogUnavailable(f"The catalog does not answer: {reason}.") from error


def _state(metadata: Mapping[str, Any], snapshot: Mapping[str, Any]) -> SnapshotState:
    schema_id = snapshot.get("schema-id", metadata["current-schema-id"])
    (schema,) = [one for one in metadata["schemas"] if one["schema-id"] == schema_id]
    columns = (
        TableColumn(int(field["id"]), str(field["name"]), _type(field["type"])) for field in schema["fields"]
    )
    properties = metadata.get("properties") or {}
    return SnapshotState(
        str(metadata["table-uuid"]),
        properties.get(MANAGED_KEY) == "true" and properties.get(DEAD_LETTERS_KEY) != "true",
        int(metadata["format-version"]),
        int(snapshot.get("sequence-number") or 0),
        tuple(columns),
    )


def _type(said: Any) -> str:
    return said if isinstance(said, str) else json.dumps(said, sort_keys=True)


def _set(tag: str, snapshot: int, seconds: float) -> Mapping[str, Any]:
    return {
        "action": "set-snapshot-ref",
        "ref-name": tag,
        "type": "tag",
        "snapshot-id": snapshot,
        "max-ref-age-ms": max(1, round(seconds * 1000)),
    }


def _absent(tag: str) -> Mapping[str, Any]:
    return {"type": "assert-ref-snapshot-id", "ref": tag, "snapshot-id": None}


def _message(answer: httpx.Response) -> str:
    try:
        return str(answer.json()["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return f"the catalog answered {answer.status_code}"
