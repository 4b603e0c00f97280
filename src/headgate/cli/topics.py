"""Where `headgate topic` finds topics: in Kafka on Headgate's machine, from elsewhere by the control API."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from headgate.cli.access import kafka_access, registry_access
from headgate.cli.client import URL_VARIABLE, Client, connect, data_folder, error_of_line
from headgate.errors import NotFound, ServerUnavailable


class TopicSource(Protocol):
    """Topics as plain values. Each method raises NotFound where there is no such topic."""

    def list(self, internal: bool) -> list[dict[str, Any]]: ...

    def create(
        self, name: str, partitions: int, replication: int | None, config: Mapping[str, str]
    ) -> dict[str, Any]: ...

    def describe(self, name: str) -> dict[str, Any]: ...

    def records(
        self, name: str, start: str, limit: int | None, idle_seconds: float
    ) -> Iterator[dict[str, Any]]:
        """Committed records, decoded, until the limit or as long a silence."""
        ...

    def delete(self, name: str) -> None: ...


@contextmanager
def topic_source(data: Path | None) -> Iterator[TopicSource]:
    with connect(data) as client:
        elsewhere = data_folder(data) is None and os.environ.get(URL_VARIABLE)
        yield ByApi(client) if elsewhere else ByKafka(client, data)


class ByApi:
    """With the rights of the credential."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def list(self, internal: bool) -> list[dict[str, Any]]:
        return [_short(topic) for topic in self._client.get("topics", internal=internal)]

    def create(
        self, name: str, partitions: int, replication: int | None, config: Mapping[str, str]
    ) -> dict[str, Any]:
        wanted = {"name": name, "partitions": partitions, "replication": replication, "config": dict(config)}
        return _short(self._client.post("topics", body=wanted))

    def describe(self, name: str) -> dict[str, Any]:
        topic = self._client.get("topics", name)
        return {
            "name": topic["name"],
            "id": topic["id"],
            "table": _table_state(self._client, name),
            "config": topic["config"],
            "partitions": topic["offsets"],
        }

    def records(
        self, name: str, start: str, limit: int | None, idle_seconds: float
    ) -> Iterator[dict[str, Any]]:
        parameters: dict[str, Any] = {"from": start, "timeout": f"{idle_seconds:g}s"}
        if limit is not None:
            parameters["limit"] = limit
        with self._client.lines("topics", name, "records", **parameters) as lines:
            for line in map(json.loads, filter(str.strip, lines)):
                match line["op"]:
                    case "insert":
                        yield line["row"]
                    case "error":
                        raise error_of_line(line)
                    case _:
                        return
        raise ServerUnavailable("The records have ended before their end.", "Ask again.")

    def delete(self, name: str) -> None:
        self._client.delete("topics", name)


class ByKafka:
    """Whoever has the data folder reaches Kafka as Headgate does."""

    def __init__(self, client: Client, data: Path | None) -> None:
        from headgate.kafka import Topics

        self._client = client
        self._data = data
        self._access = kafka_access(client, data)
        self._topics = Topics(self._access)

    def list(self, internal: bool) -> list[dict[str, Any]]:
        return [
            {"name": topic.name, "id": topic.id, "partitions": len(topic.partitions)}
            for topic in self._topics.list(internal)
        ]

    def create(
        self, name: str, partitions: int, replication: int | None, config: Mapping[str, str]
    ) -> dict[str, Any]:
        from headgate.kafka.topics import BROKER_DEFAULT

        copies = BROKER_DEFAULT if replication is None else replication
        topic = self._topics.create(name, partitions, copies, config)
        return {"name": topic.name, "id": topic.id, "partitions": len(topic.partitions)}

    def describe(self, name: str) -> dict[str, Any]:
        from headgate.kafka import Offsets

        topic = self._topics.describe(name)
        return {
            "name": topic.name,
            "id": topic.id,
            "table": _table_state(self._client, name),
            "config": self._topics.config_overrides(name),
            "partitions": Offsets(self._access).reach(topic),
        }

    def records(
        self, name: str, start: str, limit: int | None, idle_seconds: float
    ) -> Iterator[dict[str, Any]]:
        from headgate.kafka import Offsets
        from headgate.kafka.readable import Reader, WriterSchema
        from headgate.kafka.records import committed_records
        from headgate.model import Start, StartKind
        from headgate.registry.client import SchemaSource

        topic = self._topics.describe(name)
        offsets = Offsets(self._access).start_offsets(Start(StartKind(start)), topic)
        with SchemaSource(registry_access(self._client, self._data)) as schemas:

            def schema_of(schema_id: int) -> WriterSchema:
                found = schemas.schema(schema_id)
                return WriterSchema(found.type.value, found.text)

            reader = Reader(schema_of)
            for message in committed_records(self._access, name, offsets, limit, idle_seconds):
                yield reader.record(message)

    def delete(self, name: str) -> None:
        self._topics.delete(name)


def _short(topic: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": topic["name"], "id": topic["id"], "partitions": len(topic["partitions"])}


def _table_state(client: Client, name: str) -> str | None:
    try:
        return str(client.get("tables", name)["state"])
    except NotFound:
        return None
