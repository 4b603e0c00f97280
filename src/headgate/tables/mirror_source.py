"""What Iceberg says of a table, for the log that mirrors it: its schemas, its snapshots, their files."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from headgate.delta.files import Files
from headgate.delta.vectors import Blob, checked
from headgate.errors import MirrorStopped
from headgate.tables.handles import delete_loader

Json = dict[str, Any]
# Between properties, and between their names and values: nobody writes these.
_NEXT, _IS = "\x1e", "\x1f"
_FIELD_ID = b"PARQUET:field_id"
# Iceberg's own columns have ids from here on.
_RESERVED_IDS = 2**31 - 1 - 201


@dataclass(frozen=True)
class DataFile:
    """A data file: Iceberg's JSON of it, the first row's id and the sequence number of its rows."""

    path: str
    json: Json
    rows: tuple[int, int] | None


@dataclass(frozen=True)
class Changes:
    """What a snapshot did to the files, by paths relative to the table's folder. A delete file of None: the
    data file has none any more."""

    added: tuple[DataFile, ...]
    removed: tuple[str, ...]
    vectors: Mapping[str, Any]
    # Deletes of another kind than vectors: which files they are about, only the whole tells.
    is_partial: bool


class MirrorSource:
    """Of one table, in the JVM of the driver."""

    def __init__(self, spark: SparkSession, topic: str) -> None:
        self._gateway: Any = spark.sparkContext._gateway
        self._jvm = cast(Any, spark._jvm)
        self._topic = topic
        # Each step of a Java name is a call: classes are looked up once.
        iceberg = self._jvm.org.apache.iceberg
        common = iceberg.relocated.com.google.common
        self._parse_file = iceberg.ContentFileParser
        self._lists = common.collect.Lists
        self._pairs = common.base.Joiner.on(_NEXT).withKeyValueSeparator(_IS)
        self._spellings: dict[str, str] = {}
        self._schemas: dict[int, Json] = {}
        self._specs: dict[int, Any] = {}
        # Data files as Iceberg spells their locations: position deletes name them so.
        self._locations: dict[str, str] = {}

    def spelling(self, name: str) -> str:
        """A column's name as it is in Parquet files."""
        if name not in self._spellings:
            made = self._jvm.org.apache.iceberg.avro.AvroSchemaUtil.makeCompatibleName(name)
            self._spellings[name] = str(made)
        return self._spellings[name]

    def schemas(self, metadata: Any) -> dict[int, Json]:
        """All that the table ever had, by id, in the order in which they came."""
        listed = metadata.schemas()
        if listed.size() != len(self._schemas):
            for schema in items(listed):
                if schema.schemaId() not in self._schemas:
                    text = self._jvm.org.apache.iceberg.SchemaParser.toJson(schema)
                    self._schemas[schema.schemaId()] = json.loads(text)
            self._schemas = dict(sorted(self._schemas.items()))
        return self._schemas

    def properties(self, metadata: Any) -> dict[str, str]:
        """In one call: each entry of a Java map would be several."""
        said = metadata.properties()
        text = str(self._pairs.join(said))
        found = [pair.split(_IS) for pair in text.split(_NEXT)] if text else []
        if all(len(pair) == 2 for pair in found) and len(found) == said.size():
            return {key: value for key, value in found}  # noqa: C416 - pairs are lists
        return {str(key): str(said.get(key)) for key in said}

    def changes(self, table: Any, snapshot: Any) -> Changes:
        io = table.io()
        root = _root(table)
        added = tuple(self._data_file(table, file, root) for file in items(snapshot.addedDataFiles(io)))
        removed = tuple(
            self._relative(root, str(file.location())) for file in items(snapshot.removedDataFiles(io))
        )
        vectors: dict[str, Any] = {}
        partial = False
        for file in items(self._list(snapshot.removedDeleteFiles(io))):
            if self._is_vector(file):
                vectors.setdefault(self._relative(root, str(file.referencedDataFile())), None)
            else:
                partial = True
        for file in items(self._list(snapshot.addedDeleteFiles(io))):
            if self._is_vector(file):
                vectors[self._relative(root, str(file.referencedDataFile()))] = file
            else:
                partial = True
        return Changes(added, removed, vectors, partial)

    def live(self, table: Any, snapshot: Any | None) -> dict[str, tuple[Any, tuple[Any, ...]]]:
        """All data files of a snapshot, each with its delete files."""
        if snapshot is None:
            return {}
        scan = table.newScan().useSnapshot(snapshot.snapshotId()).includeColumnStats()
        tasks = scan.planFiles()
        try:
            listed = self._list(tasks)
        finally:
            tasks.close()
        root, found = _root(table), {}
        self._locations = {}
        for task in items(listed):
            file, deletes = task.file(), tuple(items(task.deletes()))
            location = str(file.location())
            path = self._relative(root, location)
            found[path] = (file, deletes)
            if deletes:
                self._locations[path] = location
        return found

    def data_file(self, table: Any, file: Any) -> DataFile:
        return self._data_file(table, file, _root(table))

    def deletes_tag(self, deletes: Iterable[Any]) -> str | None:
        """Which delete files these are, in a few letters."""
        found = []
        for file in deletes:
            name = str(file.location()).rpartition("/")[2]
            offset = file.contentOffset()
            found.append(name if offset is None else f"{name}@{offset}")
        return ",".join(sorted(found)) or None

    def blob(self, table: Any, files: Files, path: str, deletes: tuple[Any, ...]) -> Blob:
        """The rows of a data file that its delete files say are gone."""
        for one in deletes:
            if str(one.content().name()) == "EQUALITY_DELETES":
                raise MirrorStopped(
                    f"Table '{self._topic}' has equality deletes, which Delta has no word for.",
                    f"Apply them: `headgate table compact {self._topic}`.",
                )
        if len(deletes) == 1 and self._is_vector(deletes[0]):
            (vector,) = deletes
            with files.open(self._relative(_root(table), str(vector.location()))) as file:
                file.seek(vector.contentOffset())
                data = file.read(vector.contentSizeInBytes())
            try:
                return checked(data, int(vector.recordCount()))
            except ValueError as error:
                raise MirrorStopped(
                    f"The deletion vector of {path} in table '{self._topic}' is damaged.",
                    f"Put the table back to a snapshot that can be read, or delete its rows anew: {error}.",
                ) from error
        loader = delete_loader(self._gateway, table)
        listed = self._jvm.java.util.ArrayList()
        for one in deletes:
            listed.add(one)
        index = loader.loadPositionDeletes(listed, self._locations[path])
        # Which rows are gone is known before: the index gives bytes once.
        count = int(index.cardinality())
        return Blob(bytes(index.serialize().array()), count)

    def _relative(self, root: str, location: str) -> str:
        found = _plain(location)
        if not found.startswith(root):
            raise MirrorStopped(
                f"File {location} of table '{self._topic}' lies outside of the table's folder: readers of "
                "Delta would not find it.",
                "Unset the property write.data.path and compact the table with --all.",
            )
        return found.removeprefix(root)

    def _data_file(self, table: Any, file: Any, root: str) -> DataFile:
        spec_id = int(file.specId())
        if spec_id not in self._specs:
            self._specs[spec_id] = table.specs().get(spec_id)
        said = json.loads(self._parse_file.toJson(file, self._specs[spec_id]))
        if said["file-format"] != "parquet":
            raise MirrorStopped(
                f"Table '{self._topic}' has a file that is not Parquet: {said['file-path']}.",
                f"Write it anew: `headgate table compact {self._topic} --all`.",
            )
        first, sequence = said.get("first-row-id"), file.dataSequenceNumber()
        rows = None if first is None or sequence is None else (int(first), int(sequence))
        return DataFile(self._relative(root, said["file-path"]), said, rows)

    def _list(self, iterable: Any) -> Any:
        return self._lists.newArrayList(iterable)

    def _is_vector(self, file: Any) -> bool:
        return str(file.format().name()) == "PUFFIN"


@dataclass(frozen=True)
class Held:
    """What a Parquet file says of its fields, by their ids: place and name, and the type of those that hold
    nothing else."""

    names: Mapping[int, tuple[int | None, str]]
    types: Mapping[int, Any]

    def narrower(self, types: Mapping[int, str]) -> str | None:
        """How a column is narrower here than the type that it has now; None where none is."""
        for number, wanted in types.items():
            held = self.types.get(number)
            if held is not None and held != _ARROW.get(wanted, _decimal(wanted)):
                return f"holds column '{self.names[number][1]}' as {held}"
        return None


# What a type that was widened is in a file.
_ARROW = {"long": pa.int64(), "double": pa.float64()}


def _decimal(kind: str) -> Any:
    match = re.fullmatch(r"decimal\((\d+), ?(\d+)\)", kind)
    return None if match is None else pa.decimal128(int(match[1]), int(match[2]))


def held_columns(files: Files, path: str) -> Held:
    """Of a Parquet file: its own word, whatever the table's schema was then."""
    found: dict[int, tuple[int | None, str]] = {}
    types: dict[int, Any] = {}

    def take(fields: Iterable[Any], parent: int | None) -> None:
        for one in fields:
            number = (one.metadata or {}).get(_FIELD_ID)
            if number is None or int(number) > _RESERVED_IDS:
                continue
            found[int(number)] = (parent, one.name)
            inside = _inside(one.type)
            take(inside, int(number))
            if not inside:
                types[int(number)] = one.type

    with files.open(path) as file:
        take(pq.ParquetFile(pa.PythonFile(file)).schema_arrow, None)
    return Held(found, types)


def _inside(kind: Any) -> list[Any]:
    if pa.types.is_struct(kind):
        return [kind.field(index) for index in range(kind.num_fields)]
    if pa.types.is_map(kind):
        return [kind.key_field, kind.item_field]
    if pa.types.is_list(kind):
        return [kind.value_field]
    return []


def items(listed: Any) -> list[Any]:
    """Of a Java list. To iterate it costs an exception at its end, which is dear."""
    return [listed.get(index) for index in range(listed.size())]


def _root(table: Any) -> str:
    return _plain(str(table.location())).rstrip("/") + "/"


def _plain(location: str) -> str:
    """One spelling for the several that files of a disk have. Percent signs are their own."""
    return "/" + location.removeprefix("file:").lstrip("/") if location.startswith("file:") else location
