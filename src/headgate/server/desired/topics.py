"""Topics and schemas, as Kafka and the registry have them."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from headgate.apply.kinds.schemas import text_of
from headgate.apply.kinds.topics import create_of, declared_of, watermark_of, watermark_spec, with_mode
from headgate.apply.model import Change, Live, Spec
from headgate.errors import InvalidRequest, NotFound
from headgate.kafka.topics import Topics
from headgate.model import Topic
from headgate.registry.client import RegisteredSchema, SchemaSource
from headgate.registry.schemas import SchemaType
from headgate.sql.render import create_table_text
from headgate.sql.statements import Distribution
from headgate.sql.tables import TableInfo
from headgate.sql.types import name_of, quote
from headgate.statements.altering import PARTITIONS
from headgate.statements.declared import MODES, Declared, DeclaredTables
from headgate.statements.execute import Executor


class TopicPart:
    """Kafka's topics, and what SQL declares of them."""

    def __init__(self, topics: Topics, declared: DeclaredTables, executor: Executor) -> None:
        self._topics = topics
        self._declared = declared
        self._executor = executor

    def observe(self, names: Collection[str] | None) -> Mapping[str, Live]:
        found = self._topics.list() if names is None else self._topics.describe_many(names).values()
        return {topic.name: self._live(topic) for topic in found}

    def _live(self, topic: Topic) -> Live:
        declared = self._declared.declared(topic.name)
        spec: dict[str, Any] = {
            "partitions": len(topic.partitions),
            "config": self._topics.config_overrides(topic.name),
        }
        if declared.columns is not None:
            declared = with_mode(declared)
            spec["sql"] = create_text(topic.name, declared)
        else:
            mark = declared.to_dict()["watermark"]
            spec |= {"watermark": watermark_spec(mark), "options": dict(declared.options)}
        return Live(spec, detail={"declared": declared.to_dict()})

    def create(self, name: str, spec: Spec) -> Iterator[str]:
        yield f"Kafka to create topic {name}"
        config = dict(spec.get("config") or {})
        if spec.get("sql") is not None:
            self._executor.run(spec["sql"])
            if config:
                self._topics.configure(name, config)
            return
        self._topics.create(name, spec.get("partitions") or PARTITIONS, config=config)
        options, mark = dict(spec.get("options") or {}), watermark_of(spec)
        if options:
            self._alter(name, _set_text(options))
        if mark is not None:
            self._alter(name, _watermark_text(mark))

    def change(self, name: str, spec: Spec, changes: Sequence[Change], live: Live) -> Iterator[str]:
        yield f"topic {name} to be altered"
        config = _below(changes, "config.")
        if config:
            self._topics.configure(name, config)
        options = _below(changes, "options.")
        said = {key: value for key, value in options.items() if value is not None}
        if said:
            self._alter(name, _set_text(said))
        if gone := [key for key, value in options.items() if value is None]:
            self._alter(name, f"RESET ({', '.join(map(_quoted, gone))})")
        fields = {change.field for change in changes}
        if "columns" in fields:
            self._alter(name, _added_columns(name, spec["sql"], live))
        if "watermark" in fields:
            wanted = (
                declared_of(name, spec["sql"]).to_dict()["watermark"] if "sql" in spec else watermark_of(spec)
            )
            self._alter(name, "DROP WATERMARK" if wanted is None else _watermark_text(wanted))

    def remove(self, name: str, delete_data: bool) -> Iterator[str]:
        if name not in self._topics.describe_many([name]):
            return
        yield f"topic {name} to be gone"
        if self._declared.get(name) is not None:
            self._executor.run(f"DROP TABLE {quote(name)}")
        else:
            self._topics.delete(name)
            self._declared.forget(name)

    def _alter(self, name: str, what: str) -> None:
        try:
            self._executor.run(f"ALTER TABLE {quote(name)} {what}")
        except NotFound as error:
            raise InvalidRequest(
                f"Topic '{name}' has no schema, and so no columns that anything could be said of.",
                f"Name its schema under schemas, as {name}-value; or write to it first.",
            ) from error


def create_text(name: str, declared: Declared) -> str:
    """The CREATE TABLE that would declare the same."""
    assert declared.columns is not None
    mode = MODES[declared.changelog or "append"]
    table = TableInfo(name, declared.columns, declared.primary_key or (), mode, declared.watermark)
    spread = declared.distributed or declared.buckets
    distribution = Distribution(declared.distributed, declared.buckets) if spread else None
    return create_table_text(table, declared.options, distribution)


def _below(changes: Sequence[Change], prefix: str) -> dict[str, str | None]:
    return {c.field.removeprefix(prefix): c.after for c in changes if c.field.startswith(prefix)}


def _set_text(options: Mapping[str, str | None]) -> str:
    return f"SET ({', '.join(f'{_quoted(key)} = {_quoted(str(value))}' for key, value in options.items())})"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _watermark_text(mark: Mapping[str, Any]) -> str:
    column = quote(mark["column"])
    late = f" - INTERVAL '{mark['delay_ms']}' MILLISECOND" if mark["delay_ms"] else ""
    return f"MODIFY WATERMARK FOR {column} AS {column}{late}"


def _added_columns(name: str, text: str, live: Live) -> str:
    there = Declared.from_dict(live.detail["declared"]).columns
    known = set() if there is None else set(there.names)
    added = [column for column in create_of(name, text).columns if column.name not in known]
    return f"ADD ({', '.join(f'{quote(column.name)} {name_of(column.type.spark)}' for column in added)})"


class SchemaPart:
    """Subjects of the registry by their newest version; where names are given, with the earlier ones."""

    def __init__(self, schemas: SchemaSource) -> None:
        self._schemas = schemas

    def observe(self, names: Collection[str] | None) -> Mapping[str, Live]:
        subjects = self._schemas.subjects() if names is None else names
        found = {subject: self._versions(subject, every=names is not None) for subject in subjects}
        return {subject: _live(versions) for subject, versions in found.items() if versions}

    def _versions(self, subject: str, every: bool) -> list[RegisteredSchema]:
        """The oldest first; of most there is one."""
        if every and len(self._schemas.version_numbers(subject)) > 1:
            return self._schemas.versions(subject)
        newest = self._schemas.latest(subject)
        return [] if newest is None else [newest]

    def create(self, name: str, spec: Spec) -> Iterator[str]:
        yield f"the registry to take the schema of {name}"
        self._schemas.register(name, SchemaType(spec["type"].upper()), text_of(spec))

    def change(self, name: str, spec: Spec, changes: Sequence[Change], live: Live) -> Iterator[str]:
        yield from self.create(name, spec)

    def remove(self, name: str, delete_data: bool) -> Iterator[str]:
        if self._schemas.latest(name) is None:
            return
        yield f"the registry to forget {name}"
        self._schemas.forget(name)


def _live(versions: Sequence[RegisteredSchema]) -> Live:
    *earlier, newest = [{"type": one.type.value.lower(), "schema": one.text} for one in versions]
    return Live(newest, detail={"earlier": earlier})
