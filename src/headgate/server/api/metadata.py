"""What tables are made of and what was done to them: read from their metadata, without Spark."""

from collections.abc import Callable
from enum import StrEnum
from typing import Any, Protocol

from fastapi import APIRouter

from headgate.access import Role
from headgate.catalog.errors import CatalogError
from headgate.catalog.history import history_rows, ref_rows, snapshot_rows, table_history
from headgate.catalog.manifests import file_rows, manifest_rows, partition_rows
from headgate.catalog.schemas import schema_versions
from headgate.errors import CatalogUnavailable, InvalidRequest, NotFound
from headgate.server.access import needs
from headgate.server.answers import answers
from headgate.server.answers.metadata import HistoryAnswer, MetadataAnswer, SchemasAnswer
from headgate.store import Store


class LakeMetadata(Protocol):
    """The catalog, as far as metadata is asked of it."""

    def metadata(self, namespace: tuple[str, ...], name: str) -> dict[str, Any]:
        """As the REST specification has it; `CatalogError` where there is no such table."""

    def content(self, location: str) -> bytes | None:
        """A file's bytes, None if it is gone."""


class MetadataKind(StrEnum):
    SNAPSHOTS = "snapshots"
    HISTORY = "history"
    REFS = "refs"
    PARTITIONS = "partitions"
    FILES = "files"
    MANIFESTS = "manifests"


def metadata_router(store: Store, lake: LakeMetadata | None, namespace: str) -> APIRouter:
    """`lake` is None where the catalog is the user's own."""
    router = APIRouter(prefix="/tables", tags=["tables"])

    def read(topic: str) -> tuple[dict[str, Any], Callable[[str], bytes | None]]:
        store.table(topic)
        if lake is None:
            raise InvalidRequest(
                f"The metadata of table '{topic}' is with your own catalog.",
                f"Ask Spark for it: headgate query 'SELECT * FROM `{topic}$snapshots`'.",
            )
        try:
            return lake.metadata((namespace,), topic), lake.content
        except CatalogError as error:
            if error.status == 404:
                raise NotFound(
                    f"Table '{topic}' has not been made yet.", "It is with its first records."
                ) from error
            raise CatalogUnavailable(f"The metadata of table '{topic}' cannot be read: {error}") from error

    @router.get(
        "/{topic}/history",
        summary="What each snapshot did",
        **needs(Role.READER, "table"),
        **answers(HistoryAnswer),
    )
    def history(topic: str) -> dict[str, Any]:
        """Those that are kept, the newest first."""
        return table_history(read(topic)[0])

    @router.get(
        "/{topic}/metadata/{kind}",
        summary="A table's metadata",
        **needs(Role.READER, "table"),
        **answers(MetadataAnswer),
    )
    def metadata(topic: str, kind: MetadataKind) -> list[dict[str, Any]]:
        """Rows as those of the metadata table `t$kind`. Times are in milliseconds, ids are text."""
        found, content = read(topic)
        match kind:
            case MetadataKind.SNAPSHOTS:
                return snapshot_rows(found)
            case MetadataKind.HISTORY:
                return history_rows(found)
            case MetadataKind.REFS:
                return ref_rows(found)
            case MetadataKind.PARTITIONS:
                return partition_rows(found, content)
            case MetadataKind.FILES:
                return file_rows(found, content)
            case MetadataKind.MANIFESTS:
                return manifest_rows(found, content)

    @router.get(
        "/{topic}/schemas",
        summary="A table's schemas",
        **needs(Role.READER, "table"),
        **answers(SchemasAnswer),
    )
    def schemas(topic: str) -> dict[str, Any]:
        """Those that are kept, the newest first: each field with its id, and what each version changed."""
        return schema_versions(read(topic)[0])

    return router
