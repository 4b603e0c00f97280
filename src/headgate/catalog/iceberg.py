"""Iceberg's own Java classes behind the catalog: parsing, metadata files, the JdbcCatalog on our database."""

import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from py4j.protocol import Py4JJavaError

from headgate.catalog.database import Database, jdbc_properties
from headgate.catalog.errors import bad_request, commit_failed, from_java, java_class
from headgate.catalog.names import Identifier, stored_levels
from headgate.catalog.schema import CATALOG
from headgate.jvm import LOCAL_FILES, Jvm
from headgate.model import FORMATS_KEY, TableFormat
from headgate.storage import Place, Places

# Java objects have no types here; the names say which class of Iceberg they are.
TableMetadata = Any
UpdateTableRequest = Any

# py4j answers through a buffer of 8 KB over a socket with Nagle's algorithm on: what takes two writes waits
# 40 ms for an acknowledgement. Several small answers are faster, until their number costs as much.
SLICE = 6_000
LONGEST_SLICED = 600_000

FILE_IO = "org.apache.iceberg.io.ResolvingFileIO"


class Iceberg:
    """The gateway's side of things: no state of its own but open handles."""

    def __init__(self, jvm: Jvm, database: Database, warehouse: str, places: Places | None = None) -> None:
        self._jvm = jvm
        self._places = places
        self._lock = threading.Lock()
        self._known: tuple[Place, ...] | None = None
        self._ios: dict[Place, Any] = {}
        java = jvm.java
        self._iceberg = java.org.apache.iceberg
        self._string = java.java.lang.String
        self._string_writer = java.java.io.StringWriter
        self._metadata = self._iceberg.TableMetadata
        self._parser = self._iceberg.TableMetadataParser
        self._catalog_util = self._iceberg.CatalogUtil
        self._load_response = self._iceberg.rest.responses.LoadTableResponse
        self.handlers = self._iceberg.rest.CatalogHandlers
        self._requests = {
            name: java.java.lang.Class.forName(f"org.apache.iceberg.rest.requests.{name}")
            for name in REQUESTS
        }
        self._mapper = _mapper(java)
        configuration = java.org.apache.hadoop.conf.Configuration()
        for key, value in LOCAL_FILES.items():
            configuration.set(key, value)
        self._configuration = configuration
        properties = _jdbc_properties(database, warehouse)
        self._io = self._catalog_util.loadFileIO(FILE_IO, properties, configuration)
        # The catalog's files are those that we read and write too, with the same keys.
        self.catalog = self._iceberg.jdbc.JdbcCatalog(self._always(self._io), None, True)
        self.catalog.setConf(configuration)
        self.catalog.initialize(CATALOG, properties)
        mode = "org.apache.iceberg.rest.RESTCatalogProperties$SnapshotMode"
        modes = java.java.lang.Class.forName(mode)
        self.snapshot_modes = {
            name: java.java.lang.Enum.valueOf(modes, name.upper()) for name in ("all", "refs")
        }

    def close(self) -> None:
        self.catalog.close()
        self._io.close()
        for io in self._ios.values():
            io.close()

    @property
    def io(self) -> Any:
        """For files anywhere. It finds the place of each by the integrations that there are now."""
        self.know_places()
        return self._io

    def know_places(self) -> None:
        """Before Iceberg's own code opens files: integrations come and go."""
        if self._places is None:
            return
        found = self._places.integrations()
        if found == self._known:
            return
        with self._lock:
            make = self._iceberg.io.StorageCredential.create
            said = self._jvm.java.java.util.ArrayList()
            # The longest prefix wins; none takes over what another says.
            known = {"s3://": self._places.default_settings}
            known |= {f"{place.root}/": place.own_settings for place in found}
            for prefix, settings in known.items():
                if settings:
                    said.add(make(prefix, settings))
            self._io.setCredentials(said)
            self._known = found

    def _io_at(self, location: str) -> Any:
        """For one table's files alone. Many at once Iceberg deletes with what it has for the whole bucket, so
        `io` will not do."""
        place = None if self._places is None else self._places.at(location)
        if place is None:
            return self._io
        with self._lock:
            if place not in self._ios:
                self._ios[place] = self._catalog_util.loadFileIO(
                    FILE_IO, place.own_settings, self._configuration
                )
            return self._ios[place]

    def _always(self, value: Any) -> Any:
        """A Java function of whatever it is given."""
        java = self._jvm.java.java.lang
        handles, gateway = java.invoke.MethodHandles, self._jvm.gateway
        kind = gateway.new_array(java.Class, 1)
        kind[0] = java.Class.forName("java.lang.Object")
        constant = handles.dropArguments(handles.constant(kind[0], value), 0, kind)
        return java.invoke.MethodHandleProxies.asInterfaceInstance(
            java.Class.forName("java.util.function.Function"), constant
        )

    def parse(self, request: str, text: str) -> Any:
        """A request of the REST spec from its JSON; anything wrong with it is the sender's."""
        try:
            return self._mapper.readValue(text, self._requests[request])
        except Py4JJavaError as error:
            raise bad_request(f"Malformed {request}: {from_java(error).message}") from error

    def render(self, response: Any) -> str:
        """JSON, all ASCII. Fetched in slices: see SLICE."""
        writer = self._string_writer()
        self._mapper.writeValue(writer, response)
        buffer = writer.getBuffer()
        length: int = buffer.length()
        step = SLICE if length < LONGEST_SLICED else length
        return "".join(buffer.substring(at, min(at + step, length)) for at in range(0, length, step))

    def namespace(self, levels: Sequence[str]) -> Any:
        array = self._jvm.gateway.new_array(self._string, len(levels))
        for index, level in enumerate(stored_levels(levels)):
            array[index] = level
        return self._iceberg.catalog.Namespace.of(array)

    def identifier(self, identifier: Identifier) -> Any:
        return self._iceberg.catalog.TableIdentifier.of(self.namespace(identifier.namespace), identifier.name)

    def table_response(self, metadata: TableMetadata) -> str:
        return self.render(self._load_response.builder().withTableMetadata(metadata).build())

    def read(self, metadata_location: str) -> TableMetadata:
        return self._parser.read(self.io, metadata_location)

    def read_view(self, metadata_location: str) -> Any:
        return self._iceberg.view.ViewMetadataParser.read(self.io.newInputFile(metadata_location))

    def exists(self, location: str) -> bool:
        return bool(self.io.newInputFile(location).exists())

    def write(
        self, metadata: TableMetadata, replaces: str | None, writing: Callable[[str], None]
    ) -> TableMetadata:
        """Write `metadata` to a new file named as Iceberg names them; the same metadata with its file's name.

        `writing` hears of the file before it is begun: whoever cleans up must know of half a file too.
        """
        location = self._new_metadata_location(metadata, replaces)
        writing(location)
        self._parser.overwrite(metadata, self.io.newOutputFile(location))
        builder = self._metadata.buildFrom(metadata).discardChanges().withMetadataLocation(location)
        return builder.build()

    def _new_metadata_location(self, metadata: TableMetadata, replaces: str | None) -> str:
        codec = metadata.property("write.metadata.compression-codec", "none")
        folder = metadata.property("write.metadata.path", None) or f"{metadata.location()}/metadata"
        extension = self._parser.getFileExtension(codec)
        return f"{folder.rstrip('/')}/{_version(replaces) + 1:05d}-{uuid.uuid4()}{extension}"

    def manifests(self, snapshot: Any) -> list[str]:
        """Their locations; none if the list of them is gone."""
        try:
            return [manifest.path() for manifest in snapshot.allManifests(self.io)]
        except Py4JJavaError as error:
            if java_class(error) != "NotFoundException":
                raise
            return []

    def content(self, location: str) -> bytes | None:
        """A file's bytes, None if it is gone."""
        try:
            stream = self.io.newInputFile(location).newStream()
        except Py4JJavaError as error:
            if java_class(error) != "NotFoundException":
                raise
            return None
        try:
            return bytes(stream.readAllBytes())
        finally:
            stream.close()

    def delete(self, location: str) -> None:
        self.io.deleteFile(location)

    def delete_superseded(self, base: TableMetadata, metadata: TableMetadata) -> None:
        """Old metadata files, as far as the table's properties ask for it."""
        self._catalog_util.deleteRemovedMetadataFiles(self._io_at(base.location()), base, metadata)

    def delete_data(self, metadata: TableMetadata) -> None:
        """Every file of a table whose pointer is gone."""
        self._catalog_util.dropTableData(self._io_at(metadata.location()), metadata)

    def new_table(self, request: Any, location: str, properties: Mapping[str, str]) -> TableMetadata:
        spec = request.spec() or self._iceberg.PartitionSpec.unpartitioned()
        order = request.writeOrder() or self._iceberg.SortOrder.unsorted()
        return self._metadata.newTableMetadata(request.schema(), spec, order, location, dict(properties))

    def updated(self, base: TableMetadata | None, request: UpdateTableRequest) -> TableMetadata | None:
        """`base` with the request's updates, once its requirements hold; None if they change nothing."""
        for requirement in request.requirements():
            requirement.validate(base)
        builder = self._builder(base, request)
        try:
            for update in request.updates():
                update.applyTo(builder)
        except Py4JJavaError as error:
            if java_class(error) == "RetryableValidationException":
                # The request holds values that the table has moved past, such as a sequence number: the
                # client can take it up again from the table as it is now.
                raise commit_failed(f"{from_java(error).message}; refresh and retry") from error
            raise
        metadata = builder.build()
        return None if metadata.changes().isEmpty() else metadata

    def _builder(self, base: TableMetadata | None, request: UpdateTableRequest) -> Any:
        if base is not None:
            return self._metadata.buildFrom(base)
        versions = [u.formatVersion() for u in request.updates() if is_a(u, "UpgradeFormatVersion")]
        return self._metadata.buildFromEmpty(versions[0]) if versions else self._metadata.buildFromEmpty()


REQUESTS = (
    "CommitTransactionRequest",
    "CreateNamespaceRequest",
    "CreateTableRequest",
    "CreateViewRequest",
    "RegisterTableRequest",
    "RegisterViewRequest",
    "ReportMetricsRequest",
    "UpdateNamespacePropertiesRequest",
    "UpdateTableRequest",
)


def is_a(java_object: Any, simple_name: str) -> bool:
    return bool(java_object.getClass().getSimpleName() == simple_name)


def is_internal(metadata: TableMetadata) -> bool:
    """Whether readers are shown nothing of it: the table is Delta's alone."""
    return bool(metadata.properties().get(FORMATS_KEY) == TableFormat.DELTA.value)


def properties_of(java_map: Any) -> dict[str, str]:
    return {entry.getKey(): entry.getValue() for entry in java_map.entrySet()}


def _version(metadata_location: str | None) -> int:
    """The number that a metadata file's name begins with; -1 before the first, or for a foreign name."""
    if metadata_location is None:
        return -1
    head, dash, _ = metadata_location.rpartition("/")[2].partition("-")
    return int(head) if dash and head.isdecimal() else -1


def _jdbc_properties(database: Database, warehouse: str) -> dict[str, str]:
    return {
        **jdbc_properties(database),
        "warehouse": warehouse,
        "io-impl": FILE_IO,
        "clients": "4",
        "jdbc.schema-version": "V1",
        "jdbc.strict-mode": "true",
    }


def _mapper(java: Any) -> Any:
    """As Iceberg's clients set up theirs, which is not public."""
    jackson = java.org.apache.iceberg.shaded.com.fasterxml.jackson
    mapper = jackson.databind.ObjectMapper()
    mapper.setPropertyNamingStrategy(jackson.databind.PropertyNamingStrategies.KEBAB_CASE)
    mapper.configure(jackson.databind.DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES, False)
    mapper.setVisibility(
        jackson.annotation.PropertyAccessor.FIELD, jackson.annotation.JsonAutoDetect.Visibility.ANY
    )
    mapper.getFactory().enable(jackson.core.JsonGenerator.Feature.ESCAPE_NON_ASCII)
    java.org.apache.iceberg.rest.RESTSerializers.registerAll(mapper)
    return mapper
