"""What tables are made of and what was done to them: read from their metadata, without Spark."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Any, Protocol, TypeVar

from fastapi import APIRouter, Query

from headgate.access import Role
from headgate.catalog.errors import CatalogError
from headgate.catalog.history import history_rows, ref_rows, snapshot_rows, table_history
from headgate.catalog.layout import table_layout
from headgate.catalog.manifests import file_rows, manifest_rows, partition_rows
from headgate.catalog.schemas import schema_versions
from headgate.errors import CatalogUnavailable, InvalidRequest, NotFound
from headgate.server.access import needs
from headgate.server.answers import answers
from headgate.server.answers.metadata import (
    HistoryAnswer,
    LayoutAnswer,
    MetadataAnswer,
    TableSchemasAnswer,
)
from headgate.store import Store
from headgate.store.snapshots import SnapshotIndex

MOST_SNAPSHOTS = 1000
MOST_LAYOUTS = 64
# A table may be committed to while its index is made.
INDEX_TRIES = 3
_T = TypeVar("_T")


class LakeMetadata(Protocol):
    """The catalog, as far as metadata is asked of it."""

    def metadata(self, namespace: tuple[str, ...], name: str) -> dict[str, Any]:
        """As the REST specification has it; `CatalogError` where there is no such table."""

    def metadata_location(self, namespace: tuple[str, ...], name: str) -> str:
        """Where the metadata is now, which differs after each commit."""

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

    index, layouts = SnapshotIndex(store.engine), Layouts()

    def location(topic: str) -> str:
        return of_lake(topic, lambda it: it.metadata_location((namespace,), topic))

    def read(topic: str) -> tuple[dict[str, Any], Callable[[str], bytes | None]]:
        return of_lake(topic, lambda it: (it.metadata((namespace,), topic), it.content))

    def of_lake(topic: str, ask: Callable[[LakeMetadata], _T]) -> _T:
        store.table(topic)
        if lake is None:
            raise InvalidRequest(
                f"The metadata of table '{topic}' is with your own catalog.",
                f"Ask Spark for it: headgate query 'SELECT * FROM `{topic}$snapshots`'.",
            )
        try:
            return ask(lake)
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
    def history(
        topic: str,
        limit: Annotated[int | None, Query(ge=1, le=MOST_SNAPSHOTS, description="None is all.")] = None,
        before: Annotated[
            int | None, Query(ge=0, le=2**62, description="Only those with a smaller `sequence`.")
        ] = None,
    ) -> dict[str, Any]:
        """Those that are kept, the newest first: from the index, which is made again after each commit."""
        for _ in range(INDEX_TRIES):
            at = location(topic)
            if (page := index.page(topic, at, limit, before)) is not None:
                return {"snapshots": list(page.entries), "next": page.next, **page.summary}
            found = table_history(read(topic)[0])
            if location(topic) == at:
                index.put(topic, at, found.pop("snapshots"), found)
        # It moves on faster than it can be written down.
        return _page_of(table_history(read(topic)[0]), limit, before)

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
        "/{topic}/layout",
        summary="How a table's rows lie in files",
        **needs(Role.READER, "table"),
        **answers(LayoutAnswer),
    )
    def layout(topic: str) -> dict[str, Any]:
        """Of the current snapshot: sizes of files by bucket, and partitions; small, however many files."""
        at = location(topic)
        if (known := layouts.get(topic, at)) is None:
            known = table_layout(*read(topic))
            layouts.put(topic, at, known)
        return known

    @router.get(
        "/{topic}/schemas",
        summary="A table's schemas",
        **needs(Role.READER, "table"),
        **answers(TableSchemasAnswer),
    )
    def schemas(topic: str) -> dict[str, Any]:
        """Those that are kept, the newest first: each field with its id, and what each version changed."""
        return schema_versions(read(topic)[0])

    return router


class Layouts:
    """The last layouts that were looked at: every file of a table's is read for one."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, tuple[str, dict[str, Any]]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, topic: str, metadata_location: str) -> dict[str, Any] | None:
        """None where it is not known, or is of other metadata."""
        with self._lock:
            at, found = self._known.get(topic, ("", None))
        return found if at == metadata_location else None

    def put(self, topic: str, metadata_location: str, found: dict[str, Any]) -> None:
        with self._lock:
            self._known[topic] = (metadata_location, found)
            self._known.move_to_end(topic)
            if len(self._known) > MOST_LAYOUTS:
                self._known.popitem(last=False)


def _page_of(history: dict[str, Any], limit: int | None, before: int | None) -> dict[str, Any]:
    """A page of what is not in the index."""
    wanted = [one for one in history["snapshots"] if before is None or one["sequence"] < before]
    shown = wanted[:limit]
    has_more = len(shown) < len(wanted)
    return {**history, "snapshots": shown, "next": shown[-1]["sequence"] if has_more else None}
