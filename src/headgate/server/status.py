"""How all stands, in the words of the API: what `GET /api/v1/status` answers and the live stream sends."""

from typing import Any

from headgate import __version__
from headgate.access.topics import TopicRights
from headgate.embedded.runtime import Runtime
from headgate.server import overview
from headgate.server.attention import attention
from headgate.server.standings import CatalogStanding, ExportStanding, Standings, seen_by


def status_of(runtime: Runtime, standings: Standings, rights: TopicRights | None) -> dict[str, Any]:
    """What one caller sees of it; None is who may see everything."""
    seen = seen_by(standings, rights)
    is_whole = rights is None or rights.caller.is_admin
    return {
        "version": __version__,
        "cluster": runtime.settings.cluster.name,
        "warehouse": runtime.warehouse,
        "addresses": runtime.addresses,
        "processes": [overview.process_seen(one, is_whole) for one in seen.processes],
        "tables": [overview.table(record) for record in seen.tables],
        "statements": [overview.statement(record) for record in seen.statements],
        "catalogs": [_catalog(one) for one in seen.catalogs],
        "exports": [_export(one) for one in seen.exports],
        "attention": attention(seen, rights),
    }


def _catalog(standing: CatalogStanding) -> dict[str, Any]:
    record = standing.record
    return {
        "name": record.name,
        "kind": record.kind,
        "state": record.state.value,
        "reason": record.reason,
        "since": record.since,
        "tables": dict(standing.tables),
    }


def _export(standing: ExportStanding) -> dict[str, Any]:
    run = standing.last
    return {
        "name": standing.name,
        "paused": standing.paused,
        "runs": dict(standing.runs),
        "last": None
        if run is None
        else {
            "id": run.id,
            "state": run.state.value,
            "reason": run.reason,
            "ended_at": run.ended_at,
            "rows": run.detail.get("rows"),
            "bytes": run.detail.get("bytes"),
        },
    }
