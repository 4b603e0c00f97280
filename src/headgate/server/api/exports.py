"""Scheduled exports. What takes data out of the lake is an admin's to say."""

import time
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from fastapi import APIRouter, Request, status
from fastapi.responses import FileResponse, RedirectResponse, Response
from pydantic import BaseModel, ConfigDict, Field

from headgate.access import Role
from headgate.embedded.runtime import Runtime
from headgate.errors import InvalidRequest, NotFound
from headgate.export.definition import ADDRESS, ExportOptions, check_name, parse_options
from headgate.export.files import PARTS, files_of
from headgate.export.links import PATH, Links
from headgate.export.mail import check_refused
from headgate.export.main import destinations_of, links_of, notifier_of
from headgate.export.manifest import moment
from headgate.export.names import content_type
from headgate.export.notify import Notifier
from headgate.export.personal import by_name
from headgate.export.places import Destinations
from headgate.export.schedule import bounds, next_time
from headgate.export.service import Scheduler
from headgate.server.access import Asking, needs
from headgate.server.answers import answers
from headgate.server.answers.exports import (
    ExportAnswer,
    ListedExportAnswer,
    MailTestAnswer,
    RunAnswer,
    ShownExportAnswer,
)
from headgate.storage import Storages
from headgate.store import ExportRecord, Exports, RunRecord, RunState, Store

ADMINS = needs(Role.ADMIN, "everything")
MOST_RUNS = 1000


class ExportRequest(ExportOptions):
    """An export by its name."""

    name: str


class RunRequest(BaseModel):
    """What a run is about; the last whole period where nothing is said."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    start: datetime | None = Field(None, alias="from", description="A time; without offset, in the zone.")
    end: datetime | None = Field(None, alias="to", description="The end, not in it.")
    whole: bool = Field(False, description="An incremental export begins again with the whole table.")


class MailTest(BaseModel):
    """Whom a test is sent to; those of the export where nobody is said."""

    model_config = ConfigDict(extra="forbid")

    to: list[str] | None = Field(None, min_length=1, max_length=50)


class ExportDesk:
    """Takes exports up, changes and removes them: for the API and for desired state."""

    def __init__(self, runtime: Runtime, store: Store) -> None:
        self.exports = Exports(store.engine)
        self._settings = runtime.settings
        self._storages = Storages(store.engine)
        self.notifier = notifier_of(runtime, store)
        self.destinations = destinations_of(runtime, store)

    def check(self, name: str, options: ExportOptions) -> None:
        """Raises for what this Headgate cannot carry out."""
        check_name(name)
        if self._settings.catalog.uri is not None:
            raise InvalidRequest(
                "Exports read tables of the embedded catalog, and this Headgate has another (catalog.uri).",
                "Export with the tools of that catalog.",
            )
        if options.storage is not None:
            self._storages.get(options.storage)
        for secret in sorted(options.secrets):
            self._settings.secret(secret)
        if options.mail is not None and self._settings.export.smtp.host is None:
            raise InvalidRequest(
                "The export sends mail, and no mail server is configured.",
                "Name it in the configuration: `export: {smtp: {host: …, sender: …}}`.",
            )

    def create(self, name: str, options: ExportOptions) -> ExportRecord:
        self.check(name, options)
        return self.exports.create(name, options.to_dict())

    def change(self, name: str, options: ExportOptions) -> ExportRecord:
        self.check(name, options)
        before = parse_options(self.exports.get(name).spec)
        if (before.cron, before.zone) == (options.cron, options.zone):
            return self.exports.change(name, options.to_dict())
        # What the schedule has named until now is made up for as it was; the other one begins now.
        Scheduler(self.exports).look_at(name)
        return self.exports.change(name, options.to_dict(), begins=True)


def exports_router(desk: ExportDesk) -> APIRouter:
    router = APIRouter(prefix="/exports", tags=["exports"])
    exports = desk.exports
    add_definition_routes(router, desk)

    @router.post(
        "/{name}/run",
        summary="Run an export now",
        status_code=status.HTTP_202_ACCEPTED,
        **ADMINS,
        **answers(RunAnswer, 202),
    )
    def run(name: str, wanted: RunRequest | None = None) -> dict[str, Any]:
        """It is carried out beside its schedule, also while it is paused."""
        options = parse_options(exports.get(name).spec)
        asked = wanted or RunRequest()
        if asked.whole and options.incremental is None:
            raise InvalidRequest("The export is not incremental: each run is about all that its query gives.")
        start, end = period_of(options, asked)
        return run_shown(exports.request(name, start.timestamp(), end.timestamp(), asked.whole))

    @router.get(
        "/{name}/runs",
        summary="The runs of an export, the newest first",
        **ADMINS,
        **answers(list[RunAnswer]),
    )
    def runs(name: str, limit: int = 50) -> list[dict[str, Any]]:
        exports.get(name)
        return [run_shown(one) for one in exports.runs(name, max(1, min(limit, MOST_RUNS)))]

    @router.get("/{name}/runs/{run}/file", summary="The file of a run", **ADMINS, response_class=FileResponse)
    def file(name: str, run: str, access: Asking, part: int = 1) -> Response:
        """As it was made; for a file in a store, a redirect to a link of the store. `part` is the number of
        one of several."""
        found = exports.run(run)
        if found.export != name:
            raise _no_file("Ask for a run of this export (`headgate export history`).")
        answer = _file_of(found, desk.destinations, part)
        access.note_records()
        exports.file_downloaded(run, access.caller.name)
        return answer

    @router.post("/{name}/pause", summary="Make no more runs", **ADMINS, **answers(ExportAnswer))
    def pause(name: str) -> dict[str, Any]:
        return shown(exports.set_desired(name, "paused"))

    @router.post("/{name}/resume", summary="Go on with its schedule", **ADMINS, **answers(ExportAnswer))
    def resume(name: str) -> dict[str, Any]:
        """What the schedule named meanwhile is not made up for: run it by hand if it is wanted."""
        return shown(exports.set_desired(name, "active"))

    @router.post("/{name}/test", summary="Send a test mail", **ADMINS, **answers(MailTestAnswer))
    def test(name: str, wanted: MailTest | None = None) -> dict[str, Any]:
        """No file is made. The answer says what the mail server said."""
        return send_test(desk.notifier, exports.get(name), wanted or MailTest())

    return router


def add_definition_routes(router: APIRouter, desk: ExportDesk) -> None:
    exports = desk.exports

    @router.post(
        "",
        summary="Create an export",
        status_code=status.HTTP_201_CREATED,
        **ADMINS,
        **answers(ExportAnswer, 201),
    )
    def create(wanted: ExportRequest, access: Asking) -> dict[str, Any]:
        access.note(f"export {wanted.name}")
        options = parse_options(wanted.model_dump(exclude={"name"}, exclude_defaults=True))
        return shown(desk.create(wanted.name, options))

    @router.get("", summary="List the exports", **ADMINS, **answers(list[ListedExportAnswer]))
    def list_all() -> list[dict[str, Any]]:
        newest = {run.export: run for run in exports.newest(RunState)}
        return [
            shown(record) | {"last_run": None if (run := newest.get(record.name)) is None else run_shown(run)}
            for record in exports.all()
        ]

    @router.get("/{name}", summary="Show an export", **ADMINS, **answers(ShownExportAnswer))
    def show(name: str) -> dict[str, Any]:
        record = exports.get(name)
        return shown(record) | {"runs": [run_shown(run) for run in exports.runs(name, 5)]}

    @router.put("/{name}", summary="Change an export", **ADMINS, **answers(ExportAnswer))
    def change(name: str, wanted: ExportOptions) -> dict[str, Any]:
        """What is not said is the default. Runs that were made already stay as they are."""
        return shown(desk.change(name, wanted))

    @router.delete("/{name}", summary="Remove an export", status_code=status.HTTP_204_NO_CONTENT, **ADMINS)
    def remove(name: str) -> None:
        """With its history. Files that it has made stay."""
        exports.remove(name)


def files_router(runtime: Runtime, store: Store) -> APIRouter:
    """Links of mails: who has one needs no other credential."""
    router = APIRouter(include_in_schema=False)
    exports = Exports(store.engine)
    links: Links = links_of(runtime)

    destinations = destinations_of(runtime, store)

    @router.get(PATH + "{token}")
    def file(token: str, request: Request) -> Response:
        run_id, part = links.file_of(token)
        run = exports.run(run_id)
        answer = _file_of(run, destinations, part)
        exports.link_used(run.id, request.client.host if request.client else "an unknown address")
        return answer

    return router


def _file_of(run: RunRecord, destinations: Destinations, part: int) -> Response:
    """A file that a run has made, or where its store has it."""
    files = files_of(run.detail)
    address = str(files[part - 1]["file"] or "") if 0 < part <= len(files) else ""
    if run.state not in (RunState.WRITTEN, RunState.DONE, RunState.FAILED) or not address:
        raise _no_file()
    headers = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
    options, path = parse_options(run.spec), Path(address)
    if options.storage is not None:
        return RedirectResponse(destinations.link(options, address), headers=headers)
    if not path.is_file():
        raise _no_file()
    return FileResponse(path, media_type=content_type(path.name), filename=path.name, headers=headers)


def _no_file(remedy: str = "Ask for another run.") -> NotFound:
    return NotFound("The file of this run is not there any more.", remedy)


def period_of(options: ExportOptions, wanted: RunRequest) -> tuple[datetime, datetime]:
    zone = ZoneInfo(options.zone)
    if (wanted.start is None) != (wanted.end is None):
        raise InvalidRequest(
            "A run has a beginning and an end.", "Say both, or neither: the last period then."
        )
    if wanted.start is None or wanted.end is None:
        last = bounds(options.period, options.cron, zone, datetime.now(UTC))
        return last.start, last.end
    start, end = (at if at.tzinfo else at.replace(tzinfo=zone) for at in (wanted.start, wanted.end))
    if start >= end:
        raise InvalidRequest("The time of a run ends before it begins.", "Say an earlier `from`.")
    return start, end


def send_test(notifier: Notifier, record: ExportRecord, wanted: MailTest) -> dict[str, Any]:
    mail = parse_options(record.spec).mail
    to = wanted.to if wanted.to is not None else list(mail.to if mail is not None else ())
    if not to:
        raise InvalidRequest("The export sends no mail.", "Say whom the test is for: `--to ADDRESS`.")
    for address in to:
        if ADDRESS.fullmatch(address) is None or not address.isprintable() or not address.isascii():
            raise InvalidRequest(f"'{address}' is no mail address.", "Write it as name@example.org.")
    refused = notifier.test(record.name, to, uuid.uuid4().hex[:16])
    check_refused(refused, to)
    return {"to": [address for address in to if address not in refused], "refused": dict(refused)}


def shown(record: ExportRecord) -> dict[str, Any]:
    options = parse_options(record.spec)
    zone = ZoneInfo(options.zone)
    is_active = record.desired == "active"
    coming = next_time(options.cron, zone, datetime.now(UTC)) if is_active else None
    return {
        "name": record.name,
        "state": record.desired,
        "spec": dict(record.spec),
        "schedule": options.cron,
        "zone": options.zone,
        "next": None if coming is None else coming.astimezone(zone).isoformat(),
        "warnings": name_warnings(options),
        "created_at": record.created_at,
    }


def name_warnings(options: ExportOptions) -> list[str]:
    """Of columns that it names. Those of the query are looked at when it runs."""
    named = dict.fromkeys([*(options.columns or ()), *options.order_by])
    looks = {name: by_name(name) for name in named if name not in options.masks}
    return [f"column '{name}' looks like {what}, by its name" for name, what in looks.items() if what]


def run_shown(run: RunRecord) -> dict[str, Any]:
    zone = ZoneInfo(parse_options(run.spec).zone)
    detail: Mapping[str, Any] = run.detail
    figures = ("file", "rows", "bytes", "sha256", "seconds", "progress", "snapshots", "message_id", "pruned")
    told = {**detail.get("told_failure", {}), **detail.get("told", {})}
    return {
        "id": run.id,
        "export": run.export,
        "state": run.state.value,
        "reason": run.reason,
        "from": moment(run.period_start, zone),
        "to": moment(run.period_end, zone),
        "made_by": run.slot.partition(" ")[0],
        "attempts": run.attempts,
        "retry_at": run.retry_at if run.retry_at > time.time() else None,
        **{name: detail.get(name) for name in figures},
        PARTS: detail.get(PARTS, []),
        "since": (detail.get("increment") or {}).get("since"),
        "unrepeatable": detail.get("unrepeatable", []),
        "warnings": detail.get("warnings", []),
        "told": told,
        "created_at": run.created_at,
        "started_at": run.started_at,
        "ended_at": run.ended_at,
    }
