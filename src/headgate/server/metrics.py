"""`/metrics`: read from the control state at each scrape, so that there is nothing to keep in step."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from headgate import __version__
from headgate.model import StatementState, TableState
from headgate.server.overview import Overview
from headgate.store import IntegrationState, PublicationState


def metrics_registry(found: Overview) -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(ControlState(found))
    return registry


class ControlState(Collector):
    """Tables and processes as the API shows them."""

    def __init__(self, found: Overview) -> None:
        self._found = found

    def describe(self) -> list[Metric]:
        # With nothing described, registering does not collect: the database need not be there yet.
        return []

    def collect(self) -> Iterator[Metric]:
        yield InfoMetricFamily("headgate", "This Headgate.", value={"version": __version__})
        yield from _processes(self._found.processes())
        yield from _tables(self._found.tables())
        yield from _statements(self._found.statements())
        yield from _catalogs(self._found.catalogs())
        yield from _exports(self._found.exports())


def _catalogs(catalogs: list[dict[str, Any]]) -> Iterator[Metric]:
    state = GaugeMetricFamily(
        "headgate_catalog_state", "1 for the state an outside catalog is in.", labels=["catalog", "state"]
    )
    tables = GaugeMetricFamily(
        "headgate_catalog_tables", "Tables of an outside catalog, by state.", labels=["catalog", "state"]
    )
    for catalog in catalogs:
        for name in IntegrationState:
            state.add_metric([catalog["name"], name.value], float(catalog["state"] == name.value))
        for one in PublicationState:
            tables.add_metric([catalog["name"], one.value], float(catalog["tables"][one.value]))
    yield from (state, tables)


_EXPORT_NUMBERS = {
    "rows": ("rows", "Rows of an export's last file."),
    "bytes": ("bytes", "Bytes of an export's last file."),
    "seconds": ("seconds", "How long an export's last file took to be written."),
}


def _exports(exports: list[dict[str, Any]]) -> Iterator[Metric]:
    paused = GaugeMetricFamily("headgate_export_paused", "1 where an export is paused.", labels=["export"])
    runs = GaugeMetricFamily(
        "headgate_export_runs", "Runs of an export, by state.", labels=["export", "state"]
    )
    done = GaugeMetricFamily(
        "headgate_export_last_done_timestamp_seconds", "When a run was done last.", labels=["export"]
    )
    numbers = {
        key: GaugeMetricFamily(f"headgate_export_last_{name}", text, labels=["export"])
        for key, (name, text) in _EXPORT_NUMBERS.items()
    }
    for one in exports:
        paused.add_metric([one["name"]], float(one["paused"]))
        for state, count in one["runs"].items():
            runs.add_metric([one["name"], state], count)
        if (last := one["last"]) is not None:
            done.add_metric([one["name"]], last.ended_at)
            for key, family in numbers.items():
                if key in last.detail:
                    family.add_metric([one["name"]], last.detail[key])
    yield from (paused, runs, done, *numbers.values())


def _processes(processes: list[dict[str, Any]]) -> Iterator[Metric]:
    up = GaugeMetricFamily("headgate_process_up", "Whether a process is ready.", labels=["process"])
    age = GaugeMetricFamily(
        "headgate_process_beat_age_seconds", "Since a process last said that it lives.", labels=["process"]
    )
    for process in processes:
        up.add_metric([process["name"]], float(process["state"] == "ready"))
        if process["beat_age"] is not None:
            age.add_metric([process["name"]], process["beat_age"])
    yield from (up, age)


def _tables(tables: list[dict[str, Any]]) -> Iterator[Metric]:
    state = GaugeMetricFamily(
        "headgate_table_state", "1 for the state a table is in.", labels=["topic", "state"]
    )
    numbers: dict[str, GaugeMetricFamily | CounterMetricFamily] = {
        "lag": GaugeMetricFamily(
            "headgate_table_lag_offsets", "Offsets of the topic not in the table yet.", labels=["topic"]
        ),
        "rows": GaugeMetricFamily("headgate_table_rows", "Rows in the table.", labels=["topic"]),
        "files": GaugeMetricFamily("headgate_table_files", "Data files of the table.", labels=["topic"]),
        "bytes": GaugeMetricFamily("headgate_table_bytes", "Bytes of the table's files.", labels=["topic"]),
        "records_materialized": CounterMetricFamily(
            "headgate_table_records_materialized_total", "Records taken in since enabled.", labels=["topic"]
        ),
        "files_created": CounterMetricFamily(
            "headgate_table_files_created_total", "Data files that batches have written.", labels=["topic"]
        ),
        "kept_bytes": GaugeMetricFamily(
            "headgate_table_kept_bytes",
            "Bytes of the files of all snapshots that are kept.",
            labels=["topic"],
        ),
        "delta_log_bytes": GaugeMetricFamily(
            "headgate_table_delta_log_bytes", "Bytes of the table's Delta log.", labels=["topic"]
        ),
        "dead_letters_count": GaugeMetricFamily(
            "headgate_table_dead_letters", "Dead letters that no replay has taken up.", labels=["topic"]
        ),
        "last_compaction_at": GaugeMetricFamily(
            "headgate_table_last_compaction_seconds", "When its files were packed last.", labels=["topic"]
        ),
        "freshness": GaugeMetricFamily(
            "headgate_table_freshness_seconds", "How far the table is behind its topic.", labels=["topic"]
        ),
    }
    position = GaugeMetricFamily(
        "headgate_table_position", "The next offset a table reads.", labels=["topic", "partition"]
    )
    for table in tables:
        for name in TableState:
            state.add_metric([table["topic"], name.value], float(table["state"] == name.value))
        for key, family in numbers.items():
            if table[key] is not None:
                # Times are milliseconds here, and seconds to Prometheus.
                divisor = 1000 if key.endswith("_at") else 1
                family.add_metric([table["topic"]], table[key] / divisor)
        for partition, offset in ((table["position"] or {}).get("offsets") or {}).items():
            position.add_metric([table["topic"], partition], offset)
    yield from (state, *numbers.values(), position)


_STATEMENT_NUMBERS = {
    "rows_in": ("rows_in_total", "Rows that a statement has read."),
    "rows_out": ("rows_out_total", "Rows that a statement has written."),
    "late_rows": ("late_rows_total", "Rows that came behind the watermark and were left out."),
    "bad_rows": ("bad_rows_total", "Records that could not be decoded and were left out."),
    "events_without_row": ("events_without_row_total", "Change events that have no after-image."),
    "ahead_rows": (
        "ahead_rows_total",
        "Rows more than an hour ahead of the wall clock.",
    ),
    "lag": ("lag_offsets", "Offsets of its topics that a statement has not read yet."),
    "state_rows": ("state_rows", "Rows in a statement's state."),
    "state_bytes": ("state_bytes", "Memory that a statement's state takes."),
    "batch_seconds": ("batch_seconds", "How long a statement's last batch took."),
    "watermark": ("watermark_seconds", "Up to when a statement's event time is complete."),
}


def _statements(statements: list[dict[str, Any]]) -> Iterator[Metric]:
    state = GaugeMetricFamily(
        "headgate_statement_state", "1 for the state a statement is in.", labels=["statement", "state"]
    )
    numbers = {
        key: (CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily)(
            f"headgate_statement_{name}", text, labels=["statement"]
        )
        for key, (name, text) in _STATEMENT_NUMBERS.items()
    }
    for statement in statements:
        for name in StatementState:
            state.add_metric([statement["name"], name.value], float(statement["state"] == name.value))
        for key, family in numbers.items():
            value = statement[key]
            if isinstance(value, str):
                value = datetime.fromisoformat(value).timestamp()
            if value is not None:
                family.add_metric([statement["name"]], value)
    yield from (state, *numbers.values())
