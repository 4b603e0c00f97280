"""AWS Glue as moto serves it, with what moto leaves out: only the version that is named is changed.

Glue documents it so: "UpdateTable: VersionId, the version ID at which to update the table contents", and
ConcurrentModificationException when that is not the current one.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import boto3
import pytest
from moto.glue.exceptions import GlueClientError
from moto.glue.responses import GlueResponse
from moto.server import ThreadedMotoServer

REGION = "eu-west-1"
KEYS = {"access_key_id": "AKIAIOSFODNN7TESTS", "secret": "glue"}
SECRET = "the-secret-of-the-access-key"


@dataclass
class Glue:
    """A server, and a client of the test's own."""

    url: str
    client: Any
    # Each change that was asked for, by operation.
    changes: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    # Who asked, for each call in turn: the access key and the session's token.
    callers: list[tuple[str, str | None]] = field(default_factory=list)

    def table(self, database: str, name: str) -> dict[str, Any]:
        return dict(self.client.get_table(DatabaseName=database, Name=name)["Table"])

    def names(self, database: str) -> list[str]:
        return sorted(one["Name"] for one in self.client.get_tables(DatabaseName=database)["TableList"])


@contextmanager
def glue_server() -> Iterator[Glue]:
    patch = pytest.MonkeyPatch()
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        _, port = server.get_host_and_port()
        url = f"http://127.0.0.1:{port}"
        client = boto3.client(
            "glue",
            endpoint_url=url,
            region_name=REGION,
            aws_access_key_id="tests",
            aws_secret_access_key="tests",
        )
        glue = Glue(url, client)
        update = GlueResponse.update_table

        def update_in_its_version(self: Any) -> Any:
            said = self.parameters
            glue.changes.append(("update", dict(said)))
            table = self.glue_backend.get_table(said["DatabaseName"], said["TableInput"]["Name"])
            if said.get("VersionId") is not None and said["VersionId"] != table.as_dict()["VersionId"]:
                raise GlueClientError("ConcurrentModificationException", "Update table failed due to version")
            return update(self)

        patch.setattr(GlueResponse, "update_table", update_in_its_version)
        act = GlueResponse.call_action

        def act_for_somebody(self: Any) -> Any:
            signed = str(self.headers.get("Authorization", ""))
            key = signed.partition("Credential=")[2].partition("/")[0]
            glue.callers.append((key, self.headers.get("X-Amz-Security-Token")))
            return act(self)

        patch.setattr(GlueResponse, "call_action", act_for_somebody)
        yield glue
        client.close()
    finally:
        patch.undo()
        server.stop()
