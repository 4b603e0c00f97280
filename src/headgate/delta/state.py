"""What a Delta log says of its table at one version: the actions of all commits up to it, reconciled."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

Json = dict[str, Any]
# Our own words in the log: the Iceberg metadata that a version mirrors.
DOMAIN = "headgate"
ROW_TRACKING = "delta.rowTracking"


@dataclass(frozen=True)
class Mirrored:
    """Which state of which table a version of the log shows."""

    table: str
    generation: int
    metadata: str
    snapshot: int | None
    # The id of the Iceberg schema whose columns it has.
    schema: int

    def to_json(self) -> str:
        return json.dumps(
            {
                "table": self.table,
                "generation": self.generation,
                "metadata": self.metadata,
                "snapshot": self.snapshot,
                "schema": self.schema,
            },
            separators=(",", ":"),
        )

    @classmethod
    def from_json(cls, text: str) -> Self:
        said = json.loads(text)
        return cls(said["table"], said["generation"], said["metadata"], said["snapshot"], said["schema"])


def vector_id(action: Mapping[str, Any]) -> str | None:
    """What tells apart the logical files of one path."""
    vector = action.get("deletionVector")
    if vector is None:
        return None
    return f"{vector['storageType']}{vector['pathOrInlineDv']}@{vector.get('offset', '')}"


@dataclass
class LogState:
    """Changed by `apply` alone."""

    version: int = -1
    timestamp: int = 0
    protocol: Json = field(default_factory=dict)
    metadata: Json = field(default_factory=dict)
    domains: dict[str, str] = field(default_factory=dict)
    transactions: dict[str, Json] = field(default_factory=dict)
    files: dict[str, Json] = field(default_factory=dict)
    # Removed files that checkpoints still tell of.
    gone: dict[tuple[str, str | None], Json] = field(default_factory=dict)
    # Rows in the files, the deleted ones not counted.
    rows: int = 0

    def apply(self, version: int, actions: Iterable[Json]) -> None:
        """The actions of the next commit."""
        removed, added = [], []
        for action in actions:
            ((kind, said),) = action.items()
            match kind:
                case "protocol":
                    self.protocol = said
                case "metaData":
                    self.metadata = said
                case "domainMetadata":
                    self.domains.pop(said["domain"], None)
                    if not said["removed"]:
                        self.domains[said["domain"]] = said["configuration"]
                case "txn":
                    self.transactions[said["appId"]] = said
                case "remove":
                    removed.append(said)
                case "add":
                    added.append(said)
                case "commitInfo":
                    self.timestamp = said["inCommitTimestamp"]
        for said in removed:
            before = self.files.get(said["path"])
            if before is not None and vector_id(before) == vector_id(said):
                del self.files[said["path"]]
                self.rows -= live_rows(before)
            self.gone[said["path"], vector_id(said)] = said
        for said in added:
            before = self.files.get(said["path"])
            self.rows += live_rows(said) - (0 if before is None else live_rows(before))
            self.files[said["path"]] = said
            self.gone.pop((said["path"], vector_id(said)), None)
        self.version = version

    @property
    def mirrored(self) -> Mirrored | None:
        text = self.domains.get(DOMAIN)
        return None if text is None else Mirrored.from_json(text)

    def actions(self, keep_removed_since: int) -> list[Json]:
        """All of it, as a checkpoint holds it; what was removed before that instant is forgotten."""
        self.gone = {
            key: said for key, said in self.gone.items() if said["deletionTimestamp"] >= keep_removed_since
        }
        return [
            {"protocol": self.protocol},
            {"metaData": self.metadata},
            *({"txn": said} for said in self.transactions.values()),
            *(
                {"domainMetadata": {"domain": name, "configuration": text, "removed": False}}
                for name, text in self.domains.items()
            ),
            *({"remove": {**said, "dataChange": False}} for said in self.gone.values()),
            *({"add": {**said, "dataChange": False}} for said in self.files.values()),
        ]


def live_rows(add: Mapping[str, Any]) -> int:
    vector = add.get("deletionVector")
    return int(json.loads(add["stats"])["numRecords"]) - (0 if vector is None else int(vector["cardinality"]))


def vectors_of(add: Mapping[str, Any]) -> str | None:
    """The part of a vector's path that names its file."""
    vector = add.get("deletionVector")
    return None if vector is None else str(vector["pathOrInlineDv"])
