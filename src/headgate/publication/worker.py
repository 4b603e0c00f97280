"""One outside catalog: what should be there, what is, and what to do next."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from headgate.backoff import Backoff
from headgate.errors import (
    ConfigError,
    HeadgateError,
    NotPublishable,
    OutsideMoved,
    OutsideRefused,
    OutsideUnavailable,
    TransientError,
)
from headgate.model import TableFormat
from headgate.publication.options import parse_options, table_name
from headgate.publication.outside import OutsideCatalog, PublishedTable, show, withdraw
from headgate.store import (
    IntegrationRecord,
    Integrations,
    IntegrationState,
    PublicationRecord,
    PublicationState,
    TableRecord,
)

log = logging.getLogger(__name__)

BACKOFF = Backoff(1.0, 60.0)
# How often an entry is looked at although nothing has changed here: somebody may have changed it there.
VERIFY_SECONDS = 300.0
ENDING = ("disabled", "purged")


class Tables(Protocol):
    """Managed tables, as their own catalog has them now."""

    def read(self, topic: str) -> PublishedTable | None:
        """None when there is no such table; a TransientError when nobody can tell."""


@dataclass
class Patience:
    """When something that failed is tried again: each time it waits twice as long."""

    failures: int = 0
    retry_at: float = 0.0

    @property
    def is_over(self) -> bool:
        return time.monotonic() >= self.retry_at

    def failed(self) -> None:
        self.failures += 1
        self.retry_at = time.monotonic() + BACKOFF.after(self.failures)


class Worker:
    """Of one integration, in a thread of its own: a catalog that is slow or down waits for itself alone."""

    def __init__(
        self,
        integrations: Integrations,
        tables: Tables,
        connect: Callable[[IntegrationRecord], OutsideCatalog],
        wanted: Callable[[], Sequence[TableRecord]],
    ) -> None:
        self._integrations = integrations
        self._tables = tables
        self._connect = connect
        self._wanted = wanted
        self._outside: OutsideCatalog | None = None
        self._stamp = ""
        self._whole = Patience()
        self._each: dict[str, Patience] = {}
        self._verified: dict[str, float] = {}
        self._probed_at = float("-inf")

    def round(self, record: IntegrationRecord) -> bool:
        """Bring the catalog up to date, as far as that goes now; False when there is no such integration
        any more."""
        if record.stamp != self._stamp:
            # Somebody has asked for something: nothing waits any longer.
            self._stamp, self._whole, self._each = record.stamp, Patience(), {}
        if not self._whole.is_over:
            return True
        try:
            return self._round(record)
        except (OutsideUnavailable, OutsideRefused, NotPublishable, ConfigError) as error:
            self._whole.failed()
            self.close()
            log.warning("Catalog '%s' tries again: %s", record.name, error)
            self._integrations.report(record.name, IntegrationState.FAILED, f"trying again: {error}")
            return True

    def stumbled(self, record: IntegrationRecord, error: Exception) -> None:
        """On something that nobody thought of."""
        self._whole.failed()
        self.close()
        said = f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}"
        self._integrations.report(record.name, IntegrationState.FAILED, f"trying again: {said}")

    def close(self) -> None:
        if self._outside is not None:
            self._outside.close()
            self._outside = None

    def _round(self, record: IntegrationRecord) -> bool:
        known = {one.topic: one for one in self._integrations.publications(record.name)}
        if record.desired == "removed":
            return self._remove(record, known)
        tables = {one.spec.topic: one for one in self._wanted() if one.desired not in ENDING}
        for topic, publication in known.items():
            if publication.outside_name is None:
                if topic not in tables:
                    self._integrations.release(record.name, topic)
            elif topic not in tables or record.format not in tables[topic].spec.formats:
                self._withdraw(record, publication, publication.outside_name)
        is_there = False
        # The oldest first: it has the name that two would get.
        for table in sorted(tables.values(), key=lambda one: (one.created_at, one.spec.topic)):
            topic = table.spec.topic
            before = known.get(topic)
            if record.format in table.spec.formats:
                is_there |= self._publish(record, table, before)
            elif before is None or before.outside_name is None:
                self._tell(record, topic, before, PublicationState.NOT_APPLICABLE, _not_of(record, table))
        if not is_there and record.format is TableFormat.ICEBERG:
            self._probe(record)
            is_there = True
        if is_there:
            self._whole = Patience()
            self._say(record, IntegrationState.CONNECTED, "")
        else:
            self._say(
                record, IntegrationState.PENDING, f"waiting for the first table with format {record.format}"
            )
        return True

    # -- one table

    def _publish(
        self, record: IntegrationRecord, table: TableRecord, before: PublicationRecord | None
    ) -> bool:
        """Whether the table is there, for the catalog to show."""
        topic = table.spec.topic
        patience = self._each.setdefault(topic, Patience())
        if not patience.is_over:
            return True
        found = None
        try:
            found = self._tables.read(topic)
            if found is None or (record.format == "delta" and found.delta_schema is None):
                said = f": {table.status.reason}" if table.status.reason else ""
                reason = f"waiting for the table, which is {table.status.state.value}{said}"
                self._tell(record, topic, before, PublicationState.PENDING, reason)
                return False
            outside = self._open(record)
            if self._is_shown(before, outside.mark(found)):
                return True
            name = self._claimed(record, topic)
            self._show(record, topic, name, outside)
        except (OutsideUnavailable, ConfigError):
            if before is None or found is None or not _is_same(before, found):
                self._tell(record, topic, before, PublicationState.PENDING, "waiting for the catalog")
            raise
        except (NotPublishable, OutsideRefused) as error:
            if self._outside is None:
                raise  # the catalog as a whole
            patience.failed()
            # The place itself may be gone: it is looked for before the next attempt.
            self.close()
            self._integrations.tell(record.name, topic, PublicationState.FAILED, str(error))
        except OutsideMoved as error:
            patience.failed()
            self.close()
            self._integrations.tell(record.name, topic, PublicationState.PENDING, str(error))
        except TransientError as error:
            # Our own catalog does not answer: there is nothing to say of theirs.
            patience.failed()
            log.info("Table '%s' is not published now: %s", topic, error)
        except HeadgateError as error:
            patience.failed()
            self._integrations.tell(record.name, topic, PublicationState.FAILED, str(error))
        else:
            self._each.pop(topic, None)
        return True

    def _is_shown(self, before: PublicationRecord | None, mark: str) -> bool:
        if before is None or before.state is not PublicationState.SYNCED or before.detail.get("mark") != mark:
            return False
        return time.monotonic() - self._verified.setdefault(before.topic, time.monotonic()) < VERIFY_SECONDS

    def _claimed(self, record: IntegrationRecord, topic: str) -> str:
        name = table_name(record.kind, parse_options(record.kind, record.options), topic)
        holder = self._integrations.claim(record.name, topic, name)
        if holder is not None:
            raise NotPublishable(
                f"It would be called '{name}' there, and so is the table of topic '{holder}'.",
                f"Disable one of them, or add the catalog again with --table-name {topic}=ANOTHER_NAME.",
            )
        return name

    def _show(self, record: IntegrationRecord, topic: str, name: str, outside: OutsideCatalog) -> None:
        known = self._ids(record, topic)

        def intend(table: PublishedTable) -> None:
            if table.uuid not in known:
                known.append(table.uuid)
                detail = {**self._detail(record, topic), "ids": known}
                self._integrations.tell(record.name, topic, PublicationState.PENDING, "on its way", detail)

        shown = show(outside, name, lambda: self._tables.read(topic), known, intend)
        if shown is None:
            return
        self._verified[topic] = time.monotonic()
        detail = {
            "ids": known if shown.uuid in known else [*known, shown.uuid],
            "mark": outside.mark(shown),
            "metadata_location": shown.metadata_location,
            "published_at": time.time(),
        }
        reason = _unread(record.kind, shown)
        self._integrations.tell(record.name, topic, PublicationState.SYNCED, reason, detail)

    def _withdraw(self, record: IntegrationRecord, publication: PublicationRecord, name: str) -> None:
        """Take a table out that is not wanted there any more."""
        topic = publication.topic
        patience = self._each.setdefault(topic, Patience())
        if not patience.is_over:
            return
        try:
            withdraw(self._open(record), name, self._ids(record, topic))
        except (NotPublishable, OutsideRefused, OutsideMoved) as error:
            if self._outside is None:
                raise
            patience.failed()
            self._tell(record, topic, publication, PublicationState.FAILED, f"to be taken out: {error}")
        else:
            self._each.pop(topic, None)
            self._verified.pop(topic, None)
            self._integrations.release(record.name, topic)

    def _remove(self, record: IntegrationRecord, known: Mapping[str, PublicationRecord]) -> bool:
        """All entries, then the integration itself; whether it is still there."""
        for publication in known.values():
            if publication.outside_name is None:
                self._integrations.release(record.name, publication.topic)
            else:
                self._withdraw(record, publication, publication.outside_name)
        left = self._integrations.publications(record.name)
        if not left:
            self._integrations.forget(record.name)
            return False
        reason = f"to be removed, {len(left)} tables are still there: {left[0].reason}"
        self._say(record, IntegrationState.FAILED, reason)
        return True

    # -- the catalog, and what is told

    def _open(self, record: IntegrationRecord) -> OutsideCatalog:
        if self._outside is None:
            outside = self._connect(record)
            try:
                if record.desired != "removed":
                    outside.prepare()
            except BaseException:
                outside.close()
                raise
            self._outside = outside
        return self._outside

    def _probe(self, record: IntegrationRecord) -> None:
        """Whether the catalog takes tables, while there is none for it: the place for them is asked for.

        Not of Unity Catalog, whose schema is of no use before there is a table for it.
        """
        if time.monotonic() - self._probed_at < VERIFY_SECONDS and self._outside is not None:
            return
        self.close()
        self._open(record)
        self._probed_at = time.monotonic()

    def _ids(self, record: IntegrationRecord, topic: str) -> list[str]:
        return list(self._detail(record, topic).get("ids") or ())

    def _detail(self, record: IntegrationRecord, topic: str) -> Mapping[str, Any]:
        found = self._integrations.publications(record.name, topic)
        return found[0].detail if found else {}

    def _say(self, record: IntegrationRecord, state: IntegrationState, reason: str) -> None:
        if (record.state, record.reason) != (state, reason):
            self._integrations.report(record.name, state, reason)

    def _tell(
        self,
        record: IntegrationRecord,
        topic: str,
        before: PublicationRecord | None,
        state: PublicationState,
        reason: str,
    ) -> None:
        if before is None or (before.state, before.reason) != (state, reason):
            self._integrations.tell(record.name, topic, state, reason)


def _is_same(before: PublicationRecord, table: PublishedTable) -> bool:
    """Whether what was published last is what there is now."""
    is_synced = before.state is PublicationState.SYNCED
    return is_synced and before.detail.get("metadata_location") == table.metadata_location


def _unread(kind: str, table: PublishedTable) -> str:
    """Which of a catalog's usual readers do not read the table, and why; nothing where all do."""
    if kind != "glue" or table.format_version < 3:
        return ""
    return f"of format version {table.format_version}, which Athena and Redshift do not read"


def _not_of(record: IntegrationRecord, table: TableRecord) -> str:
    has = ", ".join(table.spec.formats)
    return f"the catalog takes {record.format} tables, this one is {has}"
