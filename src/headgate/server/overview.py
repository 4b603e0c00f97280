"""What the server says of processes and tables: the API, the metrics and the page show the same."""

import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from headgate.access.topics import TopicRights
from headgate.embedded.runtime import Runtime
from headgate.model import OnError, Start, StartKind, StatementState
from headgate.store import (
    Exports,
    Integrations,
    ProcessRecord,
    RunState,
    StatementRecord,
    Statements,
    Store,
    TableRecord,
)

PROCESSES = ("broker", "server", "engine", "query", "export", "connect", "datagen")
# A process that has said nothing for so long is not taken at its last word.
SILENT_SECONDS = 30.0


@dataclass(frozen=True)
class Overview:
    """Reads the control state and says it in the words of the API."""

    runtime: Runtime
    store: Store
    # Whose view it is; None is that of who may see everything.
    rights: TopicRights | None = None

    def seen_by(self, rights: TopicRights) -> "Overview":
        """What one caller sees of it."""
        return replace(self, rights=rights)

    @property
    def is_whole(self) -> bool:
        return self.rights is None or self.rights.caller.is_admin

    def processes(self) -> list[dict[str, Any]]:
        return [process_seen(one, self.is_whole) for one in known_processes(self.runtime, self.store)]

    def tables(self) -> list[dict[str, Any]]:
        return [table(record) for record in self.store.tables() if self._sees(record.spec.topic)]

    @property
    def records(self) -> Statements:
        return Statements(self.store.engine)

    def statements(self) -> list[dict[str, Any]]:
        return [statement(record) for record in self.records.all() if self._sees_statement(record)]

    def subjects(self, subjects: Iterable[str]) -> list[str]:
        """Of the subjects of events, those that are seen: tables, and statements that are still there."""
        statements = {f"statement {one.name}" for one in self.records.all() if self._sees_statement(one)}
        return [one for one in subjects if one in statements or (" " not in one and self._sees(one))]

    def _sees(self, topic: str) -> bool:
        return self.rights is None or self.rights.sees(topic)

    def _sees_statement(self, record: StatementRecord) -> bool:
        return self.rights is None or self.rights.sees_statement(record.options)

    def catalogs(self) -> list[dict[str, Any]]:
        """Outside catalogs, with how many tables stand how in each; for who sees everything."""
        if self.rights is not None and not self.rights.is_everywhere:
            return []
        integrations = Integrations(self.store.engine)
        tables = integrations.publications()
        return [
            {
                "name": one.name,
                "state": one.state.value,
                "tables": Counter(table.state.value for table in tables if table.integration == one.name),
            }
            for one in integrations.all()
        ]

    def exports(self) -> list[dict[str, Any]]:
        """Scheduled exports, with their runs by state and the figures of the last file; for who sees
        everything."""
        if not self.is_whole:
            return []
        exports = Exports(self.store.engine)
        counts = Counter({(name, state): count for name, state, count in exports.counts()})
        written = {run.export: run for run in exports.newest([RunState.DONE])}
        return [
            {
                "name": one.name,
                "paused": one.desired == "paused",
                "runs": {state.value: counts[one.name, state.value] for state in RunState},
                "last": written.get(one.name),
            }
            for one in exports.all()
        ]


def known_processes(runtime: Runtime, store: Store) -> list[ProcessRecord]:
    """Those that this Headgate has; datagen is there only while a generator is."""
    settings = runtime.settings
    absent = {
        *({"broker"} if settings.kafka.bootstrap is not None else ()),
        *({"connect"} if not settings.connect.enabled else ()),
    }
    records = store.processes(name for name in PROCESSES if name not in absent)
    return [one for one in records if one.name != "datagen" or one.state != "stopped"]


def process_seen(record: ProcessRecord, is_whole: bool) -> dict[str, Any]:
    """Where it listens and which process it is is for who runs it."""
    shown = process(record)
    return shown if is_whole else shown | {"pid": None, "detail": {}}


def process_state(record: ProcessRecord) -> str:
    """What it last said of itself, unless that was long ago."""
    is_silent = record.beat_at and time.time() - record.beat_at > SILENT_SECONDS
    return "silent" if is_silent and record.state != "stopped" else record.state


def process(record: ProcessRecord) -> dict[str, Any]:
    age = time.time() - record.beat_at if record.beat_at else None
    return {
        "name": record.name,
        "state": process_state(record),
        "pid": record.pid or None,
        "beat_age": age,
        "detail": dict(record.detail),
    }


# What the engine counts of a table, as lists and metrics show it.
TABLE_NUMBERS = (
    "rows",
    "files",
    "bytes",
    "records_materialized",
    "files_created",
    "kept_bytes",
    "delta_log_bytes",
    "dead_letters_count",
    "last_compaction_at",
)


def table(record: TableRecord) -> dict[str, Any]:
    """A table in a list: what the engine knows is in `detail`, the most asked-for of it stands out here."""
    detail = record.status.detail
    return {
        "topic": record.spec.topic,
        "state": record.status.state.value,
        "reason": record.status.reason,
        "since": record.status.since,
        "desired": record.desired,
        "position": detail.get("position"),
        "lag": detail.get("lag"),
        "freshness": freshness(detail),
        **{name: detail.get(name) for name in TABLE_NUMBERS},
        "dead_letters": dead_letters(record),
        "updated_at": record.status.updated_at,
    }


def dead_letters(record: TableRecord) -> dict[str, Any] | None:
    """Where a table's dead letters are; none where its policy keeps none."""
    if record.spec.on_error is not OnError.LOG:
        return None
    known = record.status.detail.get("dead_letters")
    return {"name": record.spec.dead_letters_name, "exists": known == record.spec.dead_letters_name}


def freshness(detail: Mapping[str, Any]) -> float | None:
    """For how many seconds a record has been waiting to get into the table; none before the engine knows."""
    if "behind_since" not in detail:
        return None
    since = detail["behind_since"]
    return 0.0 if since is None else max(0.0, time.time() - since)


def table_with_detail(record: TableRecord, events: list[dict[str, Any]]) -> dict[str, Any]:
    now = time.time()
    return table(record) | {
        "spec": record.spec.to_dict(),
        "from": start_text(record.spec.start),
        "created_at": record.created_at,
        "age": now - record.status.since,
        "detail": dict(record.status.detail),
        "events": [event | {"age": now - event["at"]} for event in events],
    }


# What a statement's engine counts and measures, as lists and metrics show it.
STATEMENT_NUMBERS = (
    "rows_in",
    "rows_out",
    "late_rows",
    "bad_rows",
    "events_without_row",
    "ahead_rows",
    "lag",
    "state_rows",
    "state_bytes",
    "batch_seconds",
)


def statement(record: StatementRecord) -> dict[str, Any]:
    return {
        "name": record.name,
        "kind": record.kind,
        "state": record.state.value,
        "reason": record.reason,
        "since": record.since,
        "desired": record.desired,
        **{name: record.detail.get(name) for name in (*STATEMENT_NUMBERS, "watermark")},
        "position": record.detail.get("offsets"),
        "waiting": record.detail.get("waiting") if record.state is StatementState.RUNNING else None,
        "updated_at": record.updated_at,
    }


def statement_with_detail(record: StatementRecord, events: list[dict[str, Any]]) -> dict[str, Any]:
    now = time.time()
    return statement(record) | {
        "id": record.id,
        "script": record.script,
        "options": dict(record.options),
        "created_at": record.created_at,
        "age": now - record.since,
        "detail": dict(record.detail),
        "events": [event | {"age": now - event["at"]} for event in events],
    }


def start_text(start: Start) -> str:
    """A start as it is written on the command line."""
    if start.kind is StartKind.OFFSETS:
        return ",".join(f"{partition}:{offset}" for partition, offset in (start.offsets or {}).items())
    if start.kind is StartKind.TIMESTAMP and start.timestamp_ms is not None:
        seconds, millis = divmod(start.timestamp_ms, 1000)
        return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{millis:03d}Z"
    return start.kind.value
