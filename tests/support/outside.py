"""An outside catalog in memory, and managed tables that a test moves on."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from headgate.errors import OutsideMoved
from headgate.publication.outside import Entry, Guard, PublishedTable

SCHEMA: Mapping[str, Any] = {
    "type": "struct",
    "schema-id": 0,
    "fields": [
        {"id": 1, "name": "id", "required": True, "type": "long"},
        {"id": 2, "name": "name", "required": False, "type": "string"},
    ],
}
DELTA_SCHEMA: Mapping[str, Any] = {
    "type": "struct",
    "fields": [
        {"name": "id", "type": "long", "nullable": False, "metadata": {"delta.columnMapping.id": 1}},
        {"name": "name", "type": "string", "nullable": True, "metadata": {"delta.columnMapping.id": 2}},
    ],
}


def table(topic: str = "orders", number: int = 1, **other: Any) -> PublishedTable:
    """A table after so many commits."""
    root = f"s3://lake/local/{topic}"

    def metadata(one: int) -> str:
        return f"{root}/metadata/{one:05d}-{one}.metadata.json"

    found = PublishedTable(
        topic=topic,
        uuid=f"uuid-of-{topic}",
        location=root,
        metadata_location=metadata(number),
        former=tuple(metadata(one) for one in range(max(0, number - 3), number)),
        sequence=number,
        schema=SCHEMA,
        delta_schema=DELTA_SCHEMA,
    )
    return replace(found, **other)


@dataclass
class MovingTables:
    """What `read` finds; `before_reading` may do something first, or raise."""

    found: dict[str, PublishedTable] = field(default_factory=dict)
    before_reading: Callable[[str], None] = lambda _: None

    def put(self, one: PublishedTable) -> None:
        self.found[one.topic] = one

    def read(self, topic: str) -> PublishedTable | None:
        self.before_reading(topic)
        return self.found.get(topic)


@dataclass
class MemoryCatalog:
    """Swaps by version, as Glue does; `trouble` is raised by every call while there is some."""

    entries: dict[str, Entry] = field(default_factory=dict)
    trouble: Exception | None = None
    # What each table that is put is refused with, by its name.
    refuses: dict[str, Exception] = field(default_factory=dict)
    prepared: int = 0
    puts: int = 0
    looks: int = 0

    def prepare(self) -> None:
        self._check()
        self.prepared += 1

    def mark(self, table: PublishedTable) -> str:
        return table.metadata_location

    def entry(self, name: str) -> Entry | None:
        self._check()
        self.looks += 1
        return self.entries.get(name)

    def put(self, name: str, table: PublishedTable, before: Entry | None, guard: Guard) -> None:
        self._check()
        if name in self.refuses:
            raise self.refuses[name]
        guard()
        now = self.entries.get(name)
        if (now is None) != (before is None) or (now and before and now.version != before.version):
            raise OutsideMoved(f"{name} is another now")
        self.puts += 1
        self.entries[name] = Entry(
            uuid=table.uuid,
            mark=table.metadata_location,
            metadata_location=table.metadata_location,
            sequence=table.sequence,
            version=str(self.puts),
        )

    def remove(self, name: str, before: Entry, guard: Guard) -> None:
        self._check()
        guard()
        self.entries.pop(name, None)

    def close(self) -> None:
        pass

    def _check(self) -> None:
        if self.trouble is not None:
            raise self.trouble
