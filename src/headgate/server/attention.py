"""What needs somebody, each with its reason, what to do, and the request that does it; pure."""

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from headgate.access import Role
from headgate.access.topics import TopicRights, output_in
from headgate.model import OnError, StatementState, TableState
from headgate.server.standings import CatalogStanding, ExportStanding, Standings
from headgate.store import IntegrationState, PublicationState, RunState, StatementRecord, TableRecord

# What each of these is for goes on only while it runs.
NEEDED = frozenset({"broker", "server", "engine"})
BY_REQUEST = "by request"
# A reason that is written for the command line names the way out as an option of it.
_ACCEPT = re.compile(r"--accept (new-topic|new-timeline|lost)")
_TRIED = "It is tried again by itself, later each time; what the reason names has to be mended."


def attention(standings: Standings, rights: TopicRights | None) -> list[dict[str, Any]]:
    """Of what one caller sees: the worst first, then by name. Actions are those that the caller may take."""
    found = [
        *(one for record in standings.tables for one in _table(record, standings, rights)),
        *(one for record in standings.statements for one in _statement(record, standings, rights)),
        *_processes(standings),
        *(one for standing in standings.catalogs for one in _catalog(standing, rights)),
        *(one for standing in standings.exports for one in _export(standing)),
    ]
    return sorted(found, key=lambda one: (_RANKS.get(one["state"], len(_RANKS)), one["kind"], one["name"]))


_RANKS = {
    state: rank
    for rank, state in enumerate(("stopped", "silent", "restarting", "Failed", "Suspended", "Degraded"))
}


def _table(record: TableRecord, standings: Standings, rights: TopicRights | None) -> Iterator[dict[str, Any]]:
    topic, status = record.spec.topic, record.status
    said = {"kind": "table", "name": topic, "since": status.since}
    match status.state:
        case TableState.SUSPENDED:
            yield {**said, "state": status.state.value, **_suspended(record, rights)}
        case TableState.FAILED | TableState.DEGRADED:
            action = _act(rights, topic, Role.WRITER, "Try again now", _path("tables", topic, "sync"))
            again = status.reason.startswith("trying again")
            yield {
                **said,
                "state": status.state.value,
                "reason": status.reason,
                "remedy": _TRIED if again else "It goes on; see the reason.",
                "action": action if again else None,
            }
        case TableState.PENDING if f"table {topic}" in standings.slow:
            yield {
                **said,
                "state": status.state.value,
                "reason": status.reason,
                "remedy": "It begins when what it waits for is there: the engine, the topic, or a schema.",
                "action": None,
            }
    count = status.detail.get("dead_letters_count")
    if record.spec.on_error is OnError.LOG and count:
        replay = _act(rights, topic, Role.WRITER, "Replay", _path("tables", topic, "replay"))
        yield {
            **said,
            "state": "Dead letters",
            "since": None,
            "reason": f"{count:,} {'record has' if count == 1 else 'records have'} not become rows.",
            "remedy": "See why, mend what they name (often a schema), and replay them.",
            "action": None if status.state is TableState.SUSPENDED else replay,
        }


def _suspended(record: TableRecord, rights: TopicRights | None) -> dict[str, Any]:
    topic, reason = record.spec.topic, record.status.reason
    path = _path("tables", topic, "resume")
    resume = _act(rights, topic, Role.WRITER, "Resume", path)
    accepts = _ACCEPT.findall(reason)
    if reason == BY_REQUEST:
        remedy = "It was suspended by request, and takes no rows until it is resumed."
    elif accepts:
        # To resume and accept nothing would suspend it again.
        remedy = "Going on past this is a decision, which no later one takes back: read the reason first."
        accept = {"accept": accepts[0]}
        resume = _act(rights, topic, Role.ADMIN, f"Resume, {accepts[0]} accepted", path, accept, topic)
    else:
        remedy = "Mend what the reason names, then resume it: it goes on where it stopped."
    return {"reason": reason, "remedy": remedy, "action": resume}


def _statement(
    record: StatementRecord, standings: Standings, rights: TopicRights | None
) -> Iterator[dict[str, Any]]:
    said = {"kind": "statement", "name": record.name, "since": record.since, "reason": record.reason}
    if record.state is StatementState.FAILED:
        again = record.reason.startswith("trying again")
        may = rights is None or _may_change(record, rights)
        start = _action("Start", _path("statements", record.name, "start"))
        yield {
            **said,
            "state": record.state.value,
            "remedy": _TRIED
            if again
            else "Mend what the reason names, then start it: it goes on where it was.",
            "action": start if may and not again else None,
        }
    elif record.state is StatementState.PENDING and f"statement {record.name}" in standings.slow:
        yield {
            **said,
            "state": record.state.value,
            "remedy": "It begins when what it waits for is there: see the engine and its topics.",
            "action": None,
        }


def _may_change(record: StatementRecord, rights: TopicRights) -> bool:
    output = output_in(record.options)
    if output is None:
        return rights.caller.everywhere is not None and rights.caller.everywhere >= Role.WRITER
    return rights.has(output, Role.WRITER)


def _processes(standings: Standings) -> Iterator[dict[str, Any]]:
    for name, state in standings.process_states:
        # Others are stopped while nobody needs them, and start when somebody does.
        if state == "ready" or (name not in NEEDED and state in ("stopped", "starting")):
            continue
        yield {
            "kind": "process",
            "name": name,
            "state": state,
            "since": None,
            "reason": f"The process {name} is {state}.",
            "remedy": f"`headgate up` starts it again; what it said last is in logs/{name}.log.",
            "action": None,
        }


def _catalog(standing: CatalogStanding, rights: TopicRights | None) -> Iterator[dict[str, Any]]:
    record = standing.record
    failed = standing.tables.get(PublicationState.FAILED.value, 0)
    if record.state is not IntegrationState.FAILED and not failed:
        return
    is_admin = rights is None or rights.caller.is_admin
    yield {
        "kind": "catalog",
        "name": record.name,
        "state": IntegrationState.FAILED.value,
        "since": record.since,
        "reason": record.reason
        if record.state is IntegrationState.FAILED
        else f"{failed} {'table is' if failed == 1 else 'tables are'} not published.",
        "remedy": _TRIED,
        "action": _action("Try again now", _path("catalogs", record.name, "retry")) if is_admin else None,
    }


def _export(standing: ExportStanding) -> Iterator[dict[str, Any]]:
    if (untold := standing.untold) is not None:
        yield {
            "kind": "export",
            "name": standing.name,
            "state": untold.state.value,
            "since": untold.started_at,
            "reason": untold.reason,
            "remedy": "Its file is there, and not all know: mend what the reason names. It is tried again.",
            "action": None,
        }
    run = standing.last
    if run is None or run.state is not RunState.FAILED:
        return
    yield {
        "kind": "export",
        "name": standing.name,
        "state": RunState.FAILED.value,
        "since": run.ended_at,
        "reason": run.reason,
        "remedy": "Mend what the reason names, then run it again; its schedule goes on.",
        "action": _action("Run now", _path("exports", standing.name, "run")),
    }


def _act(
    rights: TopicRights | None,
    topic: str,
    needed: Role,
    label: str,
    path: str,
    body: dict[str, Any] | None = None,
    confirm: str | None = None,
) -> dict[str, Any] | None:
    """An action about a topic; none for who may not take it."""
    if rights is not None and not rights.has(topic, needed):
        return None
    return _action(label, path, body, confirm)


def _action(
    label: str, path: str, body: dict[str, Any] | None = None, confirm: str | None = None
) -> dict[str, Any]:
    return {"label": label, "method": "POST", "path": path, "body": body, "confirm": confirm}


def _path(*parts: str) -> str:
    return "/".join(("/api/v1", *(quote(part, safe="") for part in parts)))
