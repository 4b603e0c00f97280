"""Managed tables as their own catalog has them now, through the engine's client."""

import json
from typing import Any

from pyspark.sql import SparkSession

from headgate.delta.schema import delta_schema
from headgate.publication.outside import PublishedTable
from headgate.tables.lake import Lake, catalog_errors
from headgate.tables.mirror import GENERATION_KEY
from headgate.tables.mirror_source import MirrorSource, items


class LakeTables:
    """Any catalog that the engine uses will do, whoever runs it."""

    def __init__(self, spark: SparkSession, lake: Lake) -> None:
        self._spark = spark
        self._lake = lake

    def read(self, topic: str) -> PublishedTable | None:
        """None when there is no such table. `CatalogUnavailable` when nobody can tell."""
        table = self._lake.load(topic)
        if table is None:
            return None
        with catalog_errors(f"read table '{topic}'"):
            return self._published(topic, table)

    def _published(self, topic: str, table: Any) -> PublishedTable:
        metadata = table.operations().current()
        source = MirrorSource(self._spark, topic)
        schemas = source.schemas(metadata)
        current = metadata.currentSchemaId()
        # While the log is made or removed, something else than a number stands there.
        is_delta = str(table.properties().get(GENERATION_KEY)).isdigit()
        earlier = [schema for number, schema in schemas.items() if number <= current]
        made = delta_schema(schemas[current], earlier, source.spelling) if is_delta else None
        return PublishedTable(
            topic=topic,
            uuid=str(metadata.uuid()),
            location=str(metadata.location()),
            metadata_location=str(metadata.metadataFileLocation()),
            former=tuple(str(one.file()) for one in items(metadata.previousFiles())),
            sequence=int(metadata.lastSequenceNumber()),
            schema=schemas[current],
            delta_schema=None if made is None else json.loads(made.text),
            format_version=int(metadata.formatVersion()),
        )
