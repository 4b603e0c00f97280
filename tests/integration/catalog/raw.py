"""Commit requests as they go over the wire, for what no client would send."""

import itertools
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headgate.model import Batch, Position
from tests.integration.catalog.serving import Service

SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "fields": [{"id": 1, "name": "id", "required": False, "type": "long"}],
}
_ids = itertools.count(1_000)


def position(offset: int) -> Position:
    return Position("cluster", "topic", {0: offset})


@dataclass(frozen=True)
class RawTable:
    """One table, spoken to by hand."""

    service: Service
    namespace: str
    name: str

    @property
    def path(self) -> str:
        return f"/namespaces/{self.namespace}/tables/{self.name}"

    def create(self, **properties: str) -> dict[str, Any]:
        body = {"name": self.name, "schema": SCHEMA, "properties": properties}
        return self.service.post(f"/namespaces/{self.namespace}/tables", body)

    def load(self) -> dict[str, Any]:
        return self.service.get(self.path)

    def metadata(self) -> dict[str, Any]:
        return dict(self.load()["metadata"])

    def head(self) -> int | None:
        ref = self.metadata().get("refs", {}).get("main")
        return None if ref is None else int(ref["snapshot-id"])

    def history(self) -> list[int]:
        return [int(snapshot["snapshot-id"]) for snapshot in self.metadata().get("snapshots", [])]

    def commit(self, body: Mapping[str, Any], status: int = 200, **headers: str) -> dict[str, Any]:
        return self.service.post(self.path, body, status, **headers)

    def append(self, summary: Mapping[str, str] | None = None, **changes: Any) -> dict[str, Any]:
        """A request that appends one snapshot to the table as it is now."""
        metadata = self.metadata()
        return append_request(metadata, summary or {}, **changes)

    def batch(self, start: int, end: int, batch_id: str) -> dict[str, Any]:
        return self.append(Batch(position(start), position(end), batch_id).summary())

    def identified(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The same request as a part of a transaction."""
        return {"identifier": {"namespace": [self.namespace], "name": self.name}, **body}


def append_request(
    metadata: Mapping[str, Any],
    summary: Mapping[str, str],
    operation: str = "append",
    asserting: bool = True,
    branch: str = "main",
) -> dict[str, Any]:
    head = metadata.get("refs", {}).get("main", {}).get("snapshot-id")
    snapshot_id = next(_ids)
    snapshot = {
        "snapshot-id": snapshot_id,
        "sequence-number": metadata["last-sequence-number"] + 1,
        "timestamp-ms": int(time.time() * 1000),
        "manifest-list": f"{metadata['location']}/metadata/snap-{snapshot_id}.avro",
        "summary": {"operation": operation, **summary},
        "schema-id": 0,
    }
    if head is not None:
        snapshot["parent-snapshot-id"] = head
    requirements: list[dict[str, Any]] = [{"type": "assert-table-uuid", "uuid": metadata["table-uuid"]}]
    if asserting:
        requirements.append({"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": head})
    move = {"action": "set-snapshot-ref", "ref-name": branch, "type": "branch", "snapshot-id": snapshot_id}
    return {
        "requirements": requirements,
        "updates": [{"action": "add-snapshot", "snapshot": snapshot}, move],
    }


def added_id(body: Mapping[str, Any]) -> int:
    return int(body["updates"][0]["snapshot"]["snapshot-id"])


def set_properties(**properties: str) -> dict[str, Any]:
    return {"requirements": [], "updates": [{"action": "set-properties", "updates": properties}]}


def view(name: str) -> dict[str, Any]:
    """A request that creates a view."""
    version = {
        "version-id": 1,
        "schema-id": 0,
        "timestamp-ms": 1,
        "summary": {},
        "representations": [{"type": "sql", "sql": "select 1", "dialect": "spark"}],
        "default-namespace": ["db"],
    }
    return {"name": name, "schema": SCHEMA, "properties": {}, "view-version": version}
