"""Another Iceberg REST catalog: tables are registered there, by the metadata that Headgate's catalog wrote.

That catalog is never asked to commit: it would write metadata of its own beside ours, and remove ours as old.
"""

from typing import Any
from urllib.parse import quote

import httpx

from headgate.errors import NotPublishable, OutsideMoved, OutsideRefused
from headgate.publication.http import Login, OutsideHttp, reason
from headgate.publication.options import RestOptions
from headgate.publication.outside import Entry, Guard, PublishedTable


class RestCatalog:
    """One namespace of a catalog. An entry is registered over, where the catalog can; where it cannot, it is
    dropped without its files and registered again, one right after the other."""

    def __init__(self, options: RestOptions, namespace: str, secret: str | None) -> None:
        self._namespace = namespace
        self._warehouse = options.warehouse
        self._base = f"{options.uri}/v1"
        login = None
        if options.client_id is not None and secret is not None:
            token_url = options.token_url or f"{options.uri}/v1/oauth/tokens"
            login = Login(token_url, options.client_id, secret, options.scope)
        self._http = OutsideHttp(self._base, login, f"The Iceberg catalog at {options.uri}")
        self._prefix: str | None = None

    def prepare(self) -> None:
        path = self._namespaces()
        found = self._http.call("GET", f"{path}/{_quoted(self._namespace)}")
        if found.status_code != 404:
            _check(found, f"namespace '{self._namespace}'")
            return
        made = self._http.call("POST", path, {"namespace": [self._namespace], "properties": {}})
        if made.status_code != 409:
            _check(made, f"namespace '{self._namespace}'")

    def mark(self, table: PublishedTable) -> str:
        return table.metadata_location

    def entry(self, name: str) -> Entry | None:
        found = self._http.call("GET", self._table(name), parameters={"snapshots": "refs"})
        if found.status_code == 404:
            return None
        _check(found, f"table '{name}'")
        said = found.json()
        metadata: dict[str, Any] = said["metadata"]
        pointer = said.get("metadata-location")
        return Entry(
            uuid=metadata.get("table-uuid"),
            mark=pointer,
            metadata_location=pointer,
            sequence=metadata.get("last-sequence-number"),
        )

    def put(self, name: str, table: PublishedTable, before: Entry | None, guard: Guard) -> None:
        if before is None:
            guard()
            answer = self._register(name, table, over=False)
            if answer.status_code == 409:
                raise OutsideMoved(f"{name} cannot be registered: {reason(answer)}")
            _check(answer, f"table '{name}'")
            return
        guard()
        answer = self._register(name, table, over=True)
        if answer.status_code == 409 and _type(answer) == "AlreadyExistsException":
            # It knows of no overwriting. Any other refusal is one: what is there had better stay.
            self.remove(name, before, guard)
            answer = self._register(name, table, over=False)
        _check(answer, f"table '{name}'")

    def remove(self, name: str, before: Entry, guard: Guard) -> None:
        guard()
        gone = self._http.call("DELETE", self._table(name), parameters={"purgeRequested": "false"})
        if gone.status_code != 404:
            _check(gone, f"table '{name}'")

    def close(self) -> None:
        self._http.close()

    def _register(self, name: str, table: PublishedTable, over: bool) -> httpx.Response:
        said: dict[str, Any] = {"name": name, "metadata-location": table.metadata_location}
        if over:
            said["overwrite"] = True
        return self._http.call("POST", f"{self._namespaces()}/{_quoted(self._namespace)}/register", said)

    def _table(self, name: str) -> str:
        return f"{self._namespaces()}/{_quoted(self._namespace)}/tables/{_quoted(name)}"

    def _namespaces(self) -> str:
        """Behind the prefix that the catalog wants, as it says itself."""
        if self._prefix is None:
            parameters = {} if self._warehouse is None else {"warehouse": self._warehouse}
            found = self._http.call("GET", "/config", parameters=parameters)
            if not found.is_success:
                raise OutsideRefused(
                    f"{self._base}/config answers {found.status_code}: {reason(found)}",
                    "Are the URI and the warehouse right?",
                )
            try:
                said = found.json()
                settings = {**(said.get("defaults") or {}), **(said.get("overrides") or {})}
            except (ValueError, AttributeError, TypeError) as error:
                raise OutsideRefused(
                    f"{self._base}/config is not that of an Iceberg catalog.", "Is the URI right?"
                ) from error
            prefix = str(settings.get("prefix") or "")
            self._prefix = f"/{prefix.strip('/')}" if prefix else ""
        return f"{self._prefix}/namespaces"


def _quoted(name: str) -> str:
    return quote(name, safe="")


def _type(answer: httpx.Response) -> str:
    try:
        return str(answer.json()["error"]["type"])
    except (ValueError, KeyError, TypeError):
        return ""


def _check(answer: httpx.Response, what: str) -> None:
    if not answer.is_success:
        raise NotPublishable(
            f"The catalog does not take {what}: {answer.status_code}, {reason(answer)}",
        )
