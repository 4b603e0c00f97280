"""Change events as Debezium writes them in Avro, small: of rows whose columns a test names."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import fastavro

from tests.integration.statements.bench import Bench, framed

SOURCE = {"type": "record", "name": "Source", "fields": [{"name": "connector", "type": "string"}]}


def envelope(columns: Mapping[str, Any]) -> dict[str, Any]:
    fields = [{"name": name, "type": kind} for name, kind in columns.items()]
    row = {"type": "record", "name": "Row", "fields": fields}
    return {
        "type": "record",
        "name": "Envelope",
        "fields": [
            {"name": "before", "type": ["null", row], "default": None},
            {"name": "after", "type": ["null", "Row"], "default": None},
            {"name": "source", "type": SOURCE},
            {"name": "op", "type": "string"},
        ],
    }


class Watched:
    """A table of a database that a connector watches: its topic, to which a test sends what happened."""

    def __init__(
        self, bench: Bench, name: str, columns: Mapping[str, Any], key: Sequence[str], partitions: int = 1
    ) -> None:
        self.topic = bench.topic(name, partitions)
        self._bench = bench
        self.change(columns)
        self._key: Any = None
        if key:
            fields = [{"name": name, "type": columns[name]} for name in key]
            schema = {"type": "record", "name": "Key", "fields": fields}
            self._key_id, self._names = bench.register(self.topic, schema, "key"), list(key)
            self._key = fastavro.parse_schema(schema)

    def change(self, columns: Mapping[str, Any]) -> None:
        """The columns of the table from now on."""
        value = envelope(columns)
        self._value_id = self._bench.register(self.topic, value)
        self._parsed = fastavro.parse_schema(json.loads(json.dumps(value)))

    def send(self, op: str, after: Any = None, before: Any = None, partition: int = 0) -> None:
        event = {"before": before, "after": after, "source": {"connector": "postgresql"}, "op": op}
        row = before if after is None else after
        key = None
        if self._key is not None and row is not None:
            key = framed(self._key_id, self._key, {name: row[name] for name in self._names})
        self._bench.send_raw(self.topic, framed(self._value_id, self._parsed, event), partition, key)
        if op == "d":
            self._bench.send_raw(self.topic, None, partition, key)
