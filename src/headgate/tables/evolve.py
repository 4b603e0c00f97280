"""The schemas that a table's records are written with, and the columns that hold them all."""

from typing import Any, Protocol

from pyspark.sql import types as t

from headgate.decode.avro import table_type
from headgate.decode.project import case_conflict, fits
from headgate.errors import BadRecords, NotFound, SchemaConflict, UnsupportedSchema
from headgate.tables.lake import Lake
from headgate.tables.lane import BadRecord


class Schema(Protocol):
    """A registered schema, self-contained."""

    @property
    def id(self) -> int: ...
    @property
    def type(self) -> str: ...
    @property
    def text(self) -> str: ...


class Schemas(Protocol):
    """Where schemas come from. Both raise RegistryUnavailable when it does not answer: a pause, no more."""

    def schema(self, schema_id: int) -> Schema: ...
    def latest(self, subject: str) -> Schema | None: ...


class SchemasInPlay:
    """The schema ids met in the records of one topic. One that no record uses changes nothing."""

    def __init__(self, topic: str, schemas: Schemas, lake: Lake) -> None:
        self._topic = topic
        self._schemas = schemas
        self._lake = lake
        self.texts: dict[int, str] = {}

    def newest_columns(self) -> t.StructType | None:
        """What a new table has for columns; None while the topic has no schema."""
        latest = self._schemas.latest(f"{self._topic}-value")
        return None if latest is None else table_type(self._avro(latest))

    def evolve(self, table: Any) -> t.StructType:
        """The table's columns, after they were brought to hold every schema in play."""
        columns = self._lake.columns(table)
        if not self.texts:
            self._guess(columns)
        for schema in self.texts.values():
            found = table_type(schema)
            clash = case_conflict(found, columns)
            if clash is not None:
                raise SchemaConflict(
                    f"Field '{clash}' of topic '{self._topic}' differs only by case from a column.",
                    "Name it as the table does, or disable the table with --purge and enable it again.",
                )
            if not fits(found, columns):
                columns = self._lake.add_columns(table, found)
        return columns

    def learn(self, bad: list[BadRecord]) -> None:
        """New schema ids join those in play; any other bad record stops the table."""
        for record in bad:
            if record.schema_id is None or record.schema_id in self.texts:
                raise _stopped(self._topic, record, record.problem)
            try:
                self.texts[record.schema_id] = self._avro(self._schemas.schema(record.schema_id))
            except NotFound as error:
                problem = f"its schema {record.schema_id} is not registered"
                raise _stopped(self._topic, record, problem) from error

    def _guess(self, columns: t.StructType) -> None:
        """The newest schema is likely the one in use: try it first, if the table holds it as it is.

        Only then: a schema that was registered and never used must not change a table, nor stop it.
        """
        latest = self._schemas.latest(f"{self._topic}-value")
        if latest is None or latest.type != "AVRO":
            return
        try:
            likely = fits(table_type(latest.text), columns)
        except UnsupportedSchema:
            return
        if likely:
            self.texts[latest.id] = latest.text

    def _avro(self, schema: Schema) -> str:
        if schema.type != "AVRO":
            raise SchemaConflict(
                f"Schema {schema.id} of topic '{self._topic}' is {schema.type}, not AVRO.",
                "Only Avro is decoded now: disable the table until its format is.",
            )
        return schema.text


def _stopped(topic: str, record: BadRecord, problem: str) -> BadRecords:
    return BadRecords(
        f"A record of topic '{topic}' cannot be decoded (partition {record.partition}, "
        f"offset {record.offset}): {problem}.",
        "Nothing of its batch was written. Register what is missing, then `headgate table resume`.",
    )
