"""Iceberg's own client, in the JVM of the Spark driver: load, create, evolve, commit, drop."""

import json
import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import IllegalArgumentException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

from headgate.catalog.names import path_segment
from headgate.delta.log import FOLDER as DELTA_LOG
from headgate.delta.log import VECTORS as DELTA_VECTORS
from headgate.errors import (
    CatalogUnavailable,
    CommitRefused,
    CommitUnknown,
    ForeignTable,
    NotFound,
    SchemaConflict,
    StaleBatch,
    TableStopped,
)
from headgate.model import (
    BATCH_KEY,
    DEAD_LETTERS_KEY,
    MANAGED_KEY,
    REPLAY_KEY,
    REQUEST_KEY,
    SPEC_KEY,
    TOPIC_KEY,
    Batch,
)
from headgate.partition import PartitionField
from headgate.spark import CATALOG
from headgate.storage import Places
from headgate.tables.handles import array

log = logging.getLogger(__name__)

# What Iceberg does not know of, in the table's own location: no clean-up enters it.
BESIDE_FOLDER = "_headgate"
BESIDE_FOLDERS = (BESIDE_FOLDER, DELTA_LOG, DELTA_VECTORS)
# What a table is created with. Retries are off: Iceberg's client would rebase a batch that is stale.
_PROPERTIES: Mapping[str, str] = {
    "format-version": "3",
    MANAGED_KEY: "true",
    "commit.retry.num-retries": "0",
    "write.distribution-mode": "none",
    # Every commit writes the metadata anew: old versions must not pile up. Snapshots are what is kept.
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "20",
    "write.delete.mode": "merge-on-read",
    "write.update.mode": "merge-on-read",
    "write.merge.mode": "merge-on-read",
}


@dataclass(frozen=True)
class FileChanges:
    """What a commit does beside adding rows: Iceberg's files, none of them in the table yet or any more."""

    files: Sequence[Any] = ()
    deletes: Sequence[Any] = ()
    replaced: Sequence[Any] = ()
    removed: Sequence[Any] = ()

    @property
    def is_append(self) -> bool:
        return not (self.deletes or self.replaced or self.removed)


class Lake:
    """The tables of one namespace."""

    def __init__(
        self,
        spark: SparkSession,
        properties: Mapping[str, str],
        namespace: str,
        places: Places | None = None,
    ) -> None:
        self._places = places
        self._gateway: Any = spark.sparkContext._gateway
        self._jvm = cast(Any, spark._jvm)
        # The namespace of a topic's table is the cluster's name, whole: dots do not split it.
        self.namespace = namespace
        context: Any = spark.sparkContext
        with catalog_errors("open the catalog"):
            self._catalog = self._jvm.org.apache.iceberg.CatalogUtil.buildIcebergCatalog(
                CATALOG, dict(properties), context._jsc.hadoopConfiguration()
            )

    def load(self, topic: str, dead_letters: bool = False) -> Any | None:
        """Iceberg's Table for a topic, or None when there is none. One that is not ours is refused, and one
        that holds something else than is asked for."""
        with catalog_errors(f"load table '{topic}'"):
            try:
                table = self._catalog.loadTable(self._identifier(topic))
            except Py4JJavaError as error:
                if _java_name(error) in ("NoSuchTableException", "NoSuchNamespaceException"):
                    return None
                raise
        properties = table.properties()
        if properties.get(MANAGED_KEY) != "true" or properties.get(TOPIC_KEY) != topic:
            raise ForeignTable(
                f"There is a table '{self.namespace}.{topic}' that Headgate did not make.",
                "Rename that table, or disable this one without --purge.",
            )
        if (properties.get(DEAD_LETTERS_KEY) == "true") != dead_letters:
            holds = "the rows of a topic" if dead_letters else "dead letters"
            raise ForeignTable(
                f"Table '{self.namespace}.{topic}' holds {holds}.",
                "Choose another name for the dead letters (--dead-letters), or leave this topic alone.",
            )
        return table

    def create(
        self,
        topic: str,
        columns: t.StructType,
        partition: Sequence[PartitionField],
        properties: Mapping[str, str],
        storage: str | None = None,
    ) -> Any:
        """A new, empty, managed table; in the warehouse, or in the storage that is named."""
        schema = self._schema(columns)
        spec = self._partition_spec(topic, schema, partition)
        with catalog_errors(f"create table '{topic}'"):
            self._create_namespace()
            builder = self._catalog.buildTable(self._identifier(topic), schema).withPartitionSpec(spec)
            if storage is not None:
                names = (path_segment(self.namespace), path_segment(topic))
                builder = builder.withLocation(self._locate(storage, *names))
            for key, value in {**_PROPERTIES, TOPIC_KEY: topic, **properties}.items():
                builder = builder.withProperty(key, value)
            return builder.create()

    def _locate(self, storage: str, *names: str) -> str:
        if self._places is None:
            raise AssertionError("a lake without places knows no storage")
        try:
            return self._places.new_location(storage, *names)
        except NotFound as error:
            raise TableStopped(error.message, error.remedy) from error

    def drop(self, topic: str) -> bool:
        """Remove the table with its files; whether there was one.

        What lies beside it goes first: once the table is gone, nobody knows of it any more. A reply that is
        lost says nothing of the table.
        """
        table = self.load(topic)
        if table is None:
            return False
        for folder in BESIDE_FOLDERS:
            beside = f"{str(table.location()).rstrip('/')}/{folder}"
            try:
                table.io().deletePrefix(beside)
            except Py4JError as error:
                log.warning("what lies beside table '%s', %s, could not be removed: %s", topic, beside, error)
        with catalog_errors(f"drop table '{topic}'"):
            return bool(self._catalog.dropTable(self._identifier(topic), True))

    def columns(self, table: Any) -> t.StructType:
        """The table's columns as Spark sees them."""
        found = self._jvm.org.apache.iceberg.spark.SparkSchemaUtil.convert(table.schema())
        return t.StructType.fromJson(json.loads(found.json()))

    def add_columns(self, table: Any, columns: t.StructType) -> t.StructType:
        """Bring in what `columns` has and the table has not, new fields at any depth and wider types; the
        columns that came of it."""
        with catalog_errors(f"evolve table '{table.name()}'"):
            try:
                table.updateSchema().unionByNameWith(self._schema(columns)).commit()
            except IllegalArgumentException as error:
                said = str(error).splitlines()[0]
                raise SchemaConflict(
                    f"A schema of the topic does not fit table '{table.name()}': {said}.",
                    "Register a compatible schema, or disable the table with --purge and enable it again.",
                ) from error
        table.refresh()
        return self.columns(table)

    def rename_column(self, table: Any, path: str, name: str) -> t.StructType:
        """The column keeps its id, and so its values; the columns that came of it."""
        column = path.replace("[]", ".element").replace("{}", ".value")
        with catalog_errors(f"rename column '{path}' of table '{table.name()}'"):
            table.updateSchema().renameColumn(column, name).commit()
        table.refresh()
        return self.columns(table)

    def partition_by(self, table: Any, wanted: Sequence[PartitionField]) -> bool:
        """New rows are laid out so; whether that is a change. Rows that are there stay where they are."""
        schema, now = table.schema(), {}
        for field in table.spec().fields():
            if field.transform().toString() != "void":
                now[(schema.findColumnName(field.sourceId()), field.transform().toString())] = field.name()
        want = {(field.column, field.iceberg_transform): field for field in wanted}
        if now.keys() == want.keys():
            return False
        expressions = self._jvm.org.apache.iceberg.expressions.Expressions
        with catalog_errors(f"partition table '{table.name()}'"), _partition_errors(table.name(), wanted):
            update = table.updateSpec()
            for key in now.keys() - want.keys():
                update = update.removeField(now[key])
            for field in wanted:
                if (field.column, field.iceberg_transform) not in now:
                    make = getattr(expressions, "ref" if field.transform == "identity" else field.transform)
                    sizes = () if field.size is None else (field.size,)
                    update = update.addField(make(field.column, *sizes))
            update.commit()
        table.refresh()
        return True

    def refresh(self, table: Any) -> None:
        with catalog_errors(f"read table '{table.name()}'"):
            table.refresh()

    @staticmethod
    def parent(table: Any, snapshot: Any) -> Any | None:
        """The snapshot before this one, as far as it is reachable."""
        found = snapshot.parentId()
        return table.snapshot(found) if found is not None else None

    def set_format_version(self, table: Any, version: int) -> None:
        """Newer formats are taken up; no table goes back to an older one."""
        now = table.operations().current().formatVersion()
        if now == version:
            return
        if now > version:
            raise TableStopped(
                f"Table '{table.name()}' has format version {now}, and cannot go back to {version}.",
                f"Say `headgate table alter --format-version {now}`, with deletion-vectors or copy-on-write.",
            )
        with catalog_errors(f"take table '{table.name()}' to format version {version}"):
            table.updateProperties().set("format-version", str(version)).commit()
        table.refresh()

    def set_property(self, table: Any, key: str, value: str) -> None:
        with catalog_errors(f"set '{key}' of table '{table.name()}'"):
            table.updateProperties().set(key, value).commit()

    def commit(
        self,
        table: Any,
        topic: str,
        changes: FileChanges,
        batch: Batch,
        head: Any | None,
        extra: Mapping[str, str] | None = None,
    ) -> Any:
        """*The* commit: the batch's files and its position in one snapshot, which is returned.

        Judged twice. This driver refuses when `head`, the snapshot that the position was read from, is no
        longer the newest in the table as refreshed for the commit. The embedded catalog refuses when the
        batch does not start at the position of the snapshot that the request names. Either way nothing
        changes.
        """
        summary = {**batch.summary(), **(extra or {})}
        head = self.change(table, topic, changes, summary, head)
        if head.summary().get(BATCH_KEY) != batch.id:
            raise StaleBatch(f"Table '{topic}' has moved on since batch {batch.id} was committed.")
        return head

    def append(
        self, table: Any, topic: str, files: Iterable[Any], summary: Mapping[str, str], head: Any | None
    ) -> Any:
        return self.change(table, topic, FileChanges(tuple(files)), summary, head)

    def change(
        self, table: Any, topic: str, changes: FileChanges, summary: Mapping[str, str], head: Any | None
    ) -> Any:
        """A snapshot on top of `head`, and of nothing else; the newest snapshot, likely that one.

        StaleBatch and CommitRefused say that there is no such snapshot. After any other error there may be
        one, now or when a request arrives that is still on its way: its files must stay.
        """
        if changes.is_append:
            update = table.newAppend()
            for file in changes.files:
                update.appendFile(file)
        else:
            update = table.newRowDelta()
            if head is not None:
                update.validateFromSnapshot(head.snapshotId())
            for file in changes.files:
                update.addRows(file)
            for file in changes.deletes:
                update.addDeletes(file)
            for file in changes.replaced:
                update.removeDeletes(file)
            for file in changes.removed:
                update.removeRows(file)
        for key, value in {SPEC_KEY: str(table.spec().specId()), **summary}.items():
            update.set(key, value)
        update.validateWith(self._still_at(head))
        with commit_errors(f"commit to table '{topic}'"):
            update.commit()
        # Iceberg has refreshed the table since: the newest snapshot may already be somebody else's.
        return table.currentSnapshot()

    def rows(self, spark: SparkSession, table: Any, topic: str, head: Any) -> DataFrame:
        """The table's rows as of a snapshot, `_file` and `_pos` among the columns that can be asked for."""
        reader = spark.read.format("iceberg").option("versionAsOf", str(head.snapshotId()))
        return reader.load(self.sql_name(topic))

    def sql_name(self, topic: str) -> str:
        """The table as SQL names it."""
        return ".".join(quoted(part) for part in (CATALOG, self.namespace, topic))

    def partition_of(self, table: Any) -> list[Column]:
        """Which bucket a row falls into, for each partition field, as Iceberg's own functions say."""
        schema, found = table.schema(), []
        for field in table.spec().fields():
            name, transform = quoted(schema.findColumnName(field.sourceId())), field.transform().toString()
            match = re.fullmatch(r"bucket\[(\d+)\]", transform)
            if match is None:
                raise AssertionError(f"an upsert table is partitioned by {transform}")
            found.append(f.expr(f"{quoted(CATALOG)}.system.bucket({match[1]}, {name})"))
        return found

    @property
    def gateway(self) -> Any:
        """The way into the driver's JVM."""
        return self._gateway

    def metadata_json(self, table: Any) -> str:
        """The table's metadata as the specification has it."""
        return str(self._jvm.org.apache.iceberg.TableMetadataParser.toJson(table.operations().current()))

    @property
    def integer(self) -> Any:
        return self._jvm.java.lang.Class.forName("java.lang.Integer")

    def find_batch(self, table: Any, batch: Batch, head: Any | None) -> Any | None:
        """The snapshot of a batch among those after `head`, as the catalog knows the table now."""
        self.refresh(table)
        return self._find(table, BATCH_KEY, batch.id, head)

    def find_replay(self, table: Any, replay_id: str) -> Any | None:
        """The snapshot of a replay, anywhere in the history, as the catalog knows the table now."""
        self.refresh(table)
        return self._find(table, REPLAY_KEY, replay_id, None)

    def find_request(self, table: Any, request: str) -> Any | None:
        """The snapshot that a request has made, anywhere in the history, as the catalog has it now."""
        self.refresh(table)
        return self._find(table, REQUEST_KEY, request, None)

    def _find(self, table: Any, key: str, value: str, until: Any | None) -> Any | None:
        snapshot = table.currentSnapshot()
        while snapshot is not None and not snapshot.equals(until):
            if snapshot.summary().get(key) == value:
                return snapshot
            snapshot = self.parent(table, snapshot)
        return None

    def delete_files(self, table: Any, files: Iterable[Any]) -> None:
        """Remove files of a batch that was certainly not committed. One that stays is an orphan, no more."""
        for file in files:
            try:
                table.io().deleteFile(file.location())
            except Py4JError as error:
                log.warning("file %s could not be removed: %s", file.location(), error)

    def _create_namespace(self) -> None:
        namespace = self._namespace()
        if self._catalog.namespaceExists(namespace):
            return
        try:
            self._catalog.createNamespace(namespace)
        except Py4JJavaError as error:
            # Another table's first batch was quicker.
            if _java_name(error) != "AlreadyExistsException":
                raise

    def _schema(self, columns: t.StructType) -> Any:
        spark_type = self._jvm.org.apache.spark.sql.types.DataType.fromJson(columns.json())
        return self._jvm.org.apache.iceberg.spark.SparkSchemaUtil.convert(spark_type)

    def _partition_spec(self, topic: str, schema: Any, wanted: Sequence[PartitionField]) -> Any:
        with _partition_errors(topic, wanted):
            builder = self._jvm.org.apache.iceberg.PartitionSpec.builderFor(schema)
            for field in wanted:
                sizes = () if field.size is None else (field.size,)
                builder = getattr(builder, field.transform)(field.column, *sizes)
            return builder.build()

    def _namespace(self) -> Any:
        levels = array(self._gateway, self._jvm.java.lang.String, self.namespace)
        return self._jvm.org.apache.iceberg.catalog.Namespace.of(levels)

    def _identifier(self, topic: str) -> Any:
        return self._jvm.org.apache.iceberg.catalog.TableIdentifier.of(self._namespace(), topic)

    def _still_at(self, head: Any | None) -> Any:
        """Iceberg calls this between its refresh of the table and the commit: is `head` still the newest?

        A method handle instead of a callback into Python, which would need an open port of this process.
        """
        java = self._jvm.java.lang
        handles = java.invoke.MethodHandles
        types = java.invoke.MethodType
        anything, iterable = java.Class.forName("java.lang.Object"), java.Class.forName("java.lang.Iterable")
        lookup = handles.publicLookup()
        same = lookup.findStatic(
            java.Class.forName("java.util.Objects"),
            "equals",
            types.methodType(java.Boolean.TYPE, anything, array(self._gateway, java.Class, anything)),
        )
        newest = lookup.findStatic(
            java.Class.forName("org.apache.iceberg.relocated.com.google.common.collect.Iterables"),
            "getFirst",
            types.methodType(anything, iterable, array(self._gateway, java.Class, anything)),
        )
        newest_or_none = handles.insertArguments(newest, 1, array(self._gateway, java.Object, None))
        is_head = handles.insertArguments(same, 0, array(self._gateway, java.Object, head))
        return java.invoke.MethodHandleProxies.asInterfaceInstance(
            java.Class.forName("org.apache.iceberg.SnapshotAncestryValidator"),
            handles.filterArguments(
                is_head, 0, array(self._gateway, java.invoke.MethodHandle, newest_or_none)
            ),
        )


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


@contextmanager
def _partition_errors(name: str, wanted: Sequence[PartitionField]) -> Iterator[None]:
    """Iceberg refuses a column that is not there, or that a transform cannot take."""
    try:
        yield
    except (IllegalArgumentException, Py4JJavaError) as error:
        if isinstance(error, Py4JJavaError) and _java_name(error) not in (
            "ValidationException",
            "IllegalArgumentException",
        ):
            raise
        said = str(
            error.java_exception.getMessage() if isinstance(error, Py4JJavaError) else error
        ).splitlines()[0]
        fields = ", ".join(map(str, wanted))
        raise TableStopped(
            f"Table '{name}' cannot be partitioned by {fields}: {said}.",
            "Choose columns that it has: `headgate table alter … --partition`.",
        ) from error


_UNAVAILABLE = {
    "ServiceFailureException",
    "ServiceUnavailableException",
    "RESTException",
    "ConnectException",
    "SocketTimeoutException",
    "RuntimeIOException",
    "UncheckedIOException",
    "NoHttpResponseException",
    "HttpHostConnectException",
}


@contextmanager
def catalog_errors(doing: str) -> Iterator[None]:
    """Java's exceptions as ours: what may pass, what is unknown, what lost to another engine."""
    try:
        yield
    except Py4JJavaError as error:
        name = _java_name(error)
        said = f"Cannot {doing}: {name}: {error.java_exception.getMessage()}."
        match name:
            case "CommitStateUnknownException":
                raise CommitUnknown(said) from error
            case "CommitFailedException" | "ValidationException":
                raise StaleBatch(said, "Another writer was faster; the position is read anew.") from error
            case _ if name in _UNAVAILABLE:
                raise CatalogUnavailable(said) from error
        raise
    except Py4JError as error:
        raise CatalogUnavailable(f"Cannot {doing}: the driver's JVM does not answer: {error}.") from error


# What a catalog answers when it has judged a commit and does not take it.
_REFUSALS = {"BadRequestException", "ForbiddenException", "NotAuthorizedException", "NoSuchTableException"}


@contextmanager
def commit_errors(doing: str) -> Iterator[None]:
    """Those of a commit. A connection that broke says nothing of it: the request may arrive yet."""
    try:
        with catalog_errors(doing):
            yield
    except CatalogUnavailable as error:
        raise CommitUnknown(error.message) from error
    except Py4JJavaError as error:
        if _java_name(error) in _REFUSALS:
            raise CommitRefused(f"Cannot {doing}: {error.java_exception.getMessage()}.") from error
        raise


def _java_name(error: Py4JJavaError) -> str:
    return str(error.java_exception.getClass().getSimpleName())
