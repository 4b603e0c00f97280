"""Unity Catalog: an external Delta table. Its readers take rows and versions from the Delta log itself, so an
entry changes only when the columns do."""

import hashlib
import json
from typing import Any
from urllib.parse import quote

import httpx

from headgate.errors import NotPublishable, OutsideMoved, OutsideRefused
from headgate.publication.http import Login, OutsideHttp, reason
from headgate.publication.options import UnityOptions
from headgate.publication.outside import Entry, Guard, PublishedTable
from headgate.publication.types import unity_columns

API = "/api/2.1/unity-catalog"
TOKEN_PATH = "/oidc/v1/token"  # noqa: S105 - where tokens are asked for
UUID_KEY, TOPIC_KEY, MARK_KEY = "headgate.table-uuid", "headgate.topic", "headgate.columns"
METADATA_KEY, SEQUENCE_KEY = "headgate.metadata-location", "headgate.sequence-number"
CLUSTER_KEY = "headgate.cluster"


class UnityCatalog:
    """One schema of a catalog. Its API has no way to change a table: an entry whose columns have changed is
    taken out and made again, one right after the other. The files are not touched by either."""

    def __init__(self, options: UnityOptions, schema: str, cluster: str, secret: str) -> None:
        self._catalog = options.catalog
        self._schema = schema
        self._cluster = cluster
        token_url = options.token_url or options.url + TOKEN_PATH
        login = Login(token_url, options.client_id, secret, options.scope)
        self._http = OutsideHttp(options.url + API, login, f"Unity Catalog at {options.url}")

    def prepare(self) -> None:
        found = self._http.call("GET", f"/catalogs/{_quoted(self._catalog)}")
        if found.status_code == 404:
            raise OutsideRefused(
                f"There is no catalog '{self._catalog}' that the client sees.",
                "Create it there, and let the client use it.",
            )
        _check(found, f"catalog '{self._catalog}'")
        full = f"{self._catalog}.{self._schema}"
        found = self._http.call("GET", f"/schemas/{_quoted(full)}")
        if found.status_code != 404:
            _check(found, f"schema '{full}'")
            return
        said = {
            "name": self._schema,
            "catalog_name": self._catalog,
            "comment": f"Topics of the cluster '{self._cluster}' as tables",
        }
        made = self._http.call("POST", "/schemas", said)
        if made.status_code != 409:
            _check(made, f"schema '{full}'")

    def mark(self, table: PublishedTable) -> str:
        said = json.dumps([table.location, self._columns(table)], sort_keys=True)
        return hashlib.sha256(said.encode()).hexdigest()[:32]

    def entry(self, name: str) -> Entry | None:
        found = self._http.call("GET", f"/tables/{self._path(name)}")
        if found.status_code == 404:
            return None
        _check(found, f"table '{name}'")
        said = found.json()
        properties = said.get("properties") or {}
        sequence = str(properties.get(SEQUENCE_KEY, ""))
        return Entry(
            uuid=properties.get(UUID_KEY),
            mark=properties.get(MARK_KEY),
            metadata_location=properties.get(METADATA_KEY),
            sequence=int(sequence) if sequence.isdigit() else None,
            said=said,
        )

    def put(self, name: str, table: PublishedTable, before: Entry | None, guard: Guard) -> None:
        wanted = {
            "name": name,
            "catalog_name": self._catalog,
            "schema_name": self._schema,
            "table_type": "EXTERNAL",
            "data_source_format": "DELTA",
            "columns": self._columns(table),
            "storage_location": table.location,
            "comment": f"Topic '{table.topic}' of the cluster '{self._cluster}'",
            "properties": {
                CLUSTER_KEY: self._cluster,
                TOPIC_KEY: table.topic,
                UUID_KEY: table.uuid,
                MARK_KEY: self.mark(table),
                METADATA_KEY: table.metadata_location,
                SEQUENCE_KEY: str(table.sequence),
            },
        }
        if before is not None:
            self.remove(name, before, guard)
        guard()
        made = self._http.call("POST", "/tables", wanted)
        if made.status_code == 409:
            raise OutsideMoved(f"Somebody else has just made '{name}' in Unity Catalog.")
        _check(made, f"table '{name}'")

    def remove(self, name: str, before: Entry, guard: Guard) -> None:
        if before.said.get("table_type") != "EXTERNAL":
            raise NotPublishable(
                f"The entry '{name}' is no external table any more: it may own files.", "Remove it by hand."
            )
        guard()
        gone = self._http.call("DELETE", f"/tables/{self._path(name)}")
        if gone.status_code != 404:
            _check(gone, f"table '{name}'")

    def close(self) -> None:
        self._http.close()

    def _path(self, name: str) -> str:
        return _quoted(f"{self._catalog}.{self._schema}.{name}")

    def _columns(self, table: PublishedTable) -> list[dict[str, Any]]:
        if table.delta_schema is None:
            raise NotPublishable(f"Table '{table.topic}' has no Delta log yet.")
        return unity_columns(table.delta_schema)


def _quoted(name: str) -> str:
    return quote(name, safe="")


def _check(answer: httpx.Response, what: str) -> None:
    if not answer.is_success:
        raise NotPublishable(f"Unity Catalog, on {what}: {answer.status_code}, {reason(answer)}")
