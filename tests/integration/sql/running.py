"""Runs plans on rows that tests give: as one batch, and as a stream in as many batches as the test says."""

import json
import os
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StringType, StructField, StructType

from headgate.sql.planner import Plan
from headgate.sql.stages import Stage
from headgate.sql.tables import OP, SYSTEM, Scan, Source, watermarked
from headgate.sql.types import quote
from tests.support.queries import START
from tests.support.services import COMPILED, INTERPRETED

SOAK = os.environ.get("HEADGATE_SOAK") == "1"
Row = dict[str, Any]
# Rows by table, in batches.
Data = Mapping[str, Sequence[Sequence[Row]]]


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat(timespec="microseconds")
    if isinstance(value, Decimal):
        return float(value)
    return value


@dataclass
class Running:
    """One Spark session, and a folder for the files of its streams."""

    spark: SparkSession
    folder: Path
    #: What a query's answer must not depend on: see `session`.
    chance: random.Random
    #: How many rows the operators of the last stream kept, batch by batch: the topmost first.
    kept: list[list[int]] = field(default_factory=list)
    #: How many rows the last stream has left out, as its operators count them.
    late: int = 0

    def batch(self, plan: Plan, data: Data) -> list[tuple[Any, ...]]:
        """The rows of the plan when all of the data is there."""
        session = self.session(plan)
        rows = _checked(
            plan, plan.build(lambda source: self.scan(session, source, data, False), at_once=True)
        )
        return [tuple(row) for row in rows.collect()]

    def stream(self, plan: Plan, data: Data) -> list[tuple[Any, ...]]:
        """The rows in the order in which they came out, one batch of input after the other."""
        session = self.session(plan)
        self.late = 0
        stages: dict[str, Path] = {}

        def scan(source: Source) -> DataFrame:
            if source.table.name in stages:
                return self._staged(session, source, stages[source.table.name])
            return self.scan(session, source, data, True)

        for stage in plan.stages:
            stages[stage.name] = self._stage(stage, scan)
        rows = _checked(plan, plan.build(scan))
        name = f"out_{uuid4().hex}"
        query = (
            rows.writeStream.format("memory")
            .queryName(name)
            .outputMode(plan.output_mode)
            .option("checkpointLocation", str(self.folder / name))
            .trigger(availableNow=True)
            .start()
        )
        try:
            query.awaitTermination()
            self.kept = [[s["numRowsTotal"] for s in p["stateOperators"]] for p in query.recentProgress]
            self._count_late(query)
            return [tuple(row) for row in session.table(name).collect()]
        finally:
            query.stop()
            session.catalog.dropTempView(name)

    def _stage(self, stage: Stage, scan: Scan) -> Path:
        """One query of several, run to its end: a file for each of its batches."""
        folder, name = self.folder / uuid4().hex, f"stage_{uuid4().hex}"
        folder.mkdir()

        def write(rows: DataFrame, number: int) -> None:
            given = {"$rowtime": F.lit(START), "$partition": F.lit(0), "$headers": F.lit(None)}
            whole = rows.withColumn("$offset", F.monotonically_increasing_id() + F.lit(number << 40))
            kinds = {key: value.cast(SYSTEM[key]) for key, value in given.items()}
            made = whole.withColumns(kinds).coalesce(1)
            target = folder / f"{number:05d}"
            made.write.parquet(str(target))
            for file in target.glob("*.parquet"):
                os.utime(file, (1_700_000_000 + number, 1_700_000_000 + number))
                file.rename(folder / f"{number:05d}.parquet")

        query = (
            stage.runnable.build(scan)
            .writeStream.queryName(name)
            .outputMode(stage.runnable.output_mode)
            .option("checkpointLocation", str(self.folder / name))
            .trigger(availableNow=True)
            .foreachBatch(write)
            .start()
        )
        query.awaitTermination()
        self._count_late(query)
        return folder

    def _count_late(self, query: StreamingQuery) -> None:
        self.late += sum(
            operator["numRowsDroppedByWatermark"]
            for progress in query.recentProgress
            for operator in progress["stateOperators"]
        )

    def _staged(self, session: SparkSession, source: Source, folder: Path) -> DataFrame:
        columns = [*source.table.columns.fields, *(StructField(n, k) for n, k in SYSTEM.items())]
        stream = session.readStream.schema(StructType(columns)).option("maxFilesPerTrigger", 1)
        return stream.parquet(f"{folder}/*.parquet")

    def session(self, plan: Plan) -> SparkSession:
        session = self.spark.newSession()
        settings = {
            **plan.settings,
            "spark.sql.shuffle.partitions": str(self.chance.choice((1, 2))),
            "spark.sql.adaptive.enabled": "false",
            # Batches without rows, by which event time passes sooner, are a part of how rows are cut into
            # batches: they come or not, by chance.
            "spark.sql.streaming.noDataMicroBatches.enabled": str(self.chance.random() < 0.3).lower(),
            **(COMPILED if SOAK or self.chance.random() < 0.2 else INTERPRETED),
            "spark.sql.streaming.stateStore.providerClass": "org.apache.spark.sql.execution.streaming.state."
            "RocksDBStateStoreProvider",
            "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        }
        for key, value in settings.items():
            session.conf.set(key, value)
        return session

    def scan(self, session: SparkSession, source: Source, data: Data, streaming: bool) -> DataFrame:
        folder = self.folder / uuid4().hex
        folder.mkdir()
        offset = 0
        for number, rows in enumerate(data[source.table.name]):
            file = folder / f"{number:05d}.json"
            lines = []
            for row in rows:
                # Two partitions, so that coordinates are more than an order of arrival.
                system = {"$rowtime": row.get("$rowtime", START), "$partition": offset % 2, "$offset": offset}
                lines.append(json.dumps({k: _plain(v) for k, v in {**system, **row}.items()}))
                offset += 1
            file.write_text("\n".join(lines))
            # Files are read in the order of their times.
            os.utime(file, (1_700_000_000 + number, 1_700_000_000 + number))
        columns = [*source.table.columns.fields, *(StructField(n, k) for n, k in SYSTEM.items())]
        if source.table.changelog != "append":
            columns.append(StructField(OP, StringType()))
        schema = StructType([StructField(c.name, c.dataType) for c in columns])
        if streaming:
            read: DataFrame = (
                session.readStream.schema(schema).option("maxFilesPerTrigger", 1).json(str(folder))
            )
        else:
            read = session.read.schema(schema).json(str(folder))
        return watermarked(read, source.watermark)


def in_time(
    parts: Mapping[str, Sequence[Sequence[Row]]],
    ends: Mapping[str, Sequence[Sequence[Row]]],
    late: Mapping[str, Sequence[Row]],
) -> dict[str, list[Sequence[Row]]]:
    """Batches of several tables, then the rows of their ends, and then, when event time has passed all of
    them, those that are late. Ends come in the same batch, however many there were before."""
    most = max(len(batches) for batches in parts.values())
    return {
        name: [
            *batches,
            *([] for _ in range(most - len(batches))),
            *ends[name],
            *([late[name]] if any(late.values()) else []),
        ]
        for name, batches in parts.items()
    }


def _checked(plan: Plan, rows: DataFrame) -> DataFrame:
    """What the plan says before it runs is what Spark gives; without what else there is of the records."""
    names = [*plan.columns.names, *([OP] if plan.changelog != "append" else [])]
    made = rows.select(*(quote(name) for name in names))
    given = {field.name: field.dataType.simpleString() for field in made.schema.fields if field.name != OP}
    assert given == {field.name: field.dataType.simpleString() for field in plan.columns.fields}
    return made


def final(plan: Plan, rows: list[tuple[Any, ...]]) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """What rows that change come to: the last of each key, without those that were deleted."""
    places = [plan.columns.names.index(name) for name in plan.key]
    found: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    for *values, op in rows:
        key = tuple(values[place] for place in places)
        if op == "u":
            found[key] = tuple(values)
        else:
            found.pop(key, None)
    return found
