"""Scheduled exports, and the runs of each: what is wanted, and where it stands."""

import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection, Engine, RowMapping
from sqlalchemy.exc import IntegrityError

from headgate.errors import AlreadyExists, InvalidRequest, NotFound
from headgate.store.database import reading
from headgate.store.export_records import ERASED, NOT_TOLD, OPEN, ExportRecord, RunRecord, RunState, Slot
from headgate.store.store import log_event

_metadata = sa.MetaData()
_exports = sa.Table(
    "exports",
    _metadata,
    sa.Column("name", sa.String, primary_key=True),
    sa.Column("spec", sa.JSON),
    sa.Column("desired", sa.String),
    sa.Column("created_at", sa.Float),
    sa.Column("updated_at", sa.Float),
    sa.Column("scheduled_until", sa.Float),
)
_runs = sa.Table(
    "export_runs",
    _metadata,
    sa.Column("id", sa.String, primary_key=True),
    sa.Column("export", sa.String),
    sa.Column("slot", sa.String),
    sa.Column("period_start", sa.Float),
    sa.Column("period_end", sa.Float),
    sa.Column("repeat", sa.Integer),
    sa.Column("spec", sa.JSON),
    sa.Column("state", sa.String),
    sa.Column("reason", sa.String),
    sa.Column("attempts", sa.Integer),
    sa.Column("retry_at", sa.Float),
    sa.Column("owner", sa.String),
    sa.Column("leased_until", sa.Float),
    sa.Column("detail", sa.JSON),
    sa.Column("created_at", sa.Float),
    sa.Column("started_at", sa.Float),
    sa.Column("ended_at", sa.Float),
)


class Exports:
    """Behind the same database as the store. Every method is one transaction."""

    def __init__(self, engine: Engine, clock: Callable[[], float] = time.time) -> None:
        self._engine = engine
        self._clock = clock

    # -- for those who want something

    def create(self, name: str, spec: Mapping[str, Any]) -> ExportRecord:
        now = self._clock()
        record = ExportRecord(name, dict(spec), "active", now, now, now)
        try:
            with self._engine.begin() as connection:
                connection.execute(_exports.insert().values(**vars(record)))
                log_event(connection, subject(name), "created", "by request")
        except IntegrityError as error:
            raise AlreadyExists(
                f"There is an export '{name}' already.",
                f"See `headgate export show {name}`; change it, or choose another name.",
            ) from error
        return record

    def change(self, name: str, spec: Mapping[str, Any], begins: bool = False) -> ExportRecord:
        """Another wish for an export that is there; runs that are made already stay as they are. `begins`:
        its schedule is another one, which has missed nothing."""
        with self._engine.begin() as connection:
            self._update(connection, name, spec=dict(spec))
            if begins:
                self._update(connection, name, scheduled_until=self._clock())
            log_event(connection, subject(name), "changed", "by request")
        return self.get(name)

    def set_desired(self, name: str, desired: str) -> ExportRecord:
        """`active` or `paused`. What its schedule named while it was paused is not made up for."""
        with self._engine.begin() as connection:
            before = self._update(connection, name, desired=desired)
            if desired == "active" and before["desired"] != "active":
                self._update(connection, name, scheduled_until=self._clock())
            if before["desired"] != desired:
                log_event(connection, subject(name), desired, "by request")
        return self.get(name)

    def remove(self, name: str) -> None:
        """With its history. A run that is under way ends at its next step."""
        with self._engine.begin() as connection:
            if not connection.execute(_exports.delete().where(_exports.c.name == name)).rowcount:
                raise no_export(name)
            connection.execute(_runs.delete().where(_runs.c.export == name))
            log_event(connection, subject(name), "removed", "by request")

    def get(self, name: str) -> ExportRecord:
        with reading(self._engine) as connection:
            row = connection.execute(sa.select(_exports).where(_exports.c.name == name)).mappings().first()
        if row is None:
            raise no_export(name)
        return ExportRecord(**row)

    def all(self) -> list[ExportRecord]:
        with reading(self._engine) as connection:
            rows = connection.execute(sa.select(_exports).order_by(_exports.c.name)).mappings()
            return [ExportRecord(**row) for row in rows]

    def are_any(self) -> bool:
        with reading(self._engine) as connection:
            return connection.execute(sa.select(_exports.c.name).limit(1)).first() is not None

    def runs(self, export: str | None = None, limit: int = 50) -> list[RunRecord]:
        """The newest first."""
        query = sa.select(_runs).order_by(_runs.c.created_at.desc(), _runs.c.period_end.desc(), _runs.c.id)
        if export is not None:
            query = query.where(_runs.c.export == export)
        with reading(self._engine) as connection:
            return [_run(row) for row in connection.execute(query.limit(limit)).mappings()]

    def run(self, run_id: str) -> RunRecord:
        with reading(self._engine) as connection:
            row = connection.execute(sa.select(_runs).where(_runs.c.id == run_id)).mappings().first()
        if row is None:
            raise NotFound(
                f"There is no run {run_id}.", "`headgate export history NAME` shows those that are."
            )
        return _run(row)

    def request(self, name: str, start: float, end: float, whole: bool = False) -> RunRecord:
        """A run about a time, by request: also of an export that is paused. `whole`: an incremental export
        begins again with the whole table."""
        with self._engine.begin() as connection:
            row = connection.execute(sa.select(_exports).where(_exports.c.name == name)).mappings().first()
            if row is None:
                raise no_export(name)
            run_id = self._make(connection, row, Slot(f"request {uuid.uuid4().hex}", start, end), whole)
            log_event(connection, subject(name), "run asked for", run_id)
        return self.run(run_id)

    def last_increment(self, name: str) -> Mapping[str, Any] | None:
        """What the last run of an incremental export was about whose file is there."""
        number = _runs.c.detail[("increment", "number")].as_integer()
        is_done = _runs.c.detail[("increment", "done")].as_boolean().is_(True)
        query = sa.select(_runs.c.detail).where(_runs.c.export == name, is_done).order_by(number.desc())
        with reading(self._engine) as connection:
            detail = connection.scalar(query.limit(1))
        return None if detail is None else dict(detail["increment"])

    def counts(self) -> list[tuple[str, str, int]]:
        """By export and state, how many runs there are."""
        query = sa.select(_runs.c.export, _runs.c.state, sa.func.count()).group_by(
            _runs.c.export, _runs.c.state
        )
        with reading(self._engine) as connection:
            return [(row[0], row[1], int(row[2])) for row in connection.execute(query)]

    def newest(self, states: Iterable[RunState]) -> list[RunRecord]:
        """Of each export, the run in one of these states that was made last."""
        wanted = _runs.c.state.in_([state.value for state in states])
        newest = (
            sa.select(_runs.c.export, sa.func.max(_runs.c.ended_at).label("at"))
            .where(wanted)
            .group_by(_runs.c.export)
            .subquery()
        )
        query = sa.select(_runs).join(
            newest, sa.and_(_runs.c.export == newest.c.export, _runs.c.ended_at == newest.c.at)
        )
        with reading(self._engine) as connection:
            return [_run(row) for row in connection.execute(query.where(wanted)).mappings()]

    def untold(self, attempts: int) -> list[RunRecord]:
        """The runs whose files are there, and of which not all could be told in so many attempts."""
        query = sa.select(_runs).where(
            _runs.c.state == RunState.WRITTEN.value, _runs.c.attempts >= attempts, _runs.c.reason != ""
        )
        with reading(self._engine) as connection:
            return [_run(row) for row in connection.execute(query.order_by(_runs.c.created_at)).mappings()]

    # -- for what schedules and runs them

    def schedule(self, name: str, seen: float, until: float, slots: Iterable[Slot], left_out: int) -> bool:
        """Make the runs of the times up to `until`. False, and nothing is made, when another server has seen
        to some of them: they were to begin at `seen`."""
        with self._engine.begin() as connection:
            row = (
                connection.execute(
                    sa.select(_exports).where(_exports.c.name == name, _exports.c.scheduled_until == seen)
                )
                .mappings()
                .first()
            )
            if row is None or row["desired"] != "active":
                return False
            for slot in slots:
                self._make(connection, row, slot)
            self._update(connection, name, scheduled_until=until)
            if left_out:
                log_event(connection, subject(name), "left out", f"{left_out} missed times of its schedule")
        return True

    def take(self, owner: str, seconds: float) -> RunRecord | None:
        """The oldest run that waits, its lease taken; of an export one runs at a time. Also one that has
        failed, while not all know of it."""
        now = self._clock()
        others = _runs.alias("others")
        busy = (
            sa.select(others.c.id)
            .where(
                others.c.export == _runs.c.export,
                others.c.id != _runs.c.id,
                others.c.owner.is_not(None),
                others.c.leased_until > now,
            )
            .exists()
        )
        query = (
            sa.select(_runs)
            .where(sa.or_(_runs.c.state.in_([state.value for state in OPEN]), _is_untold()))
            .where(_runs.c.retry_at <= now, ~busy)
            .where(~_is_behind_another())
            .where(sa.or_(_runs.c.owner.is_(None), _runs.c.leased_until <= now))
            .order_by(_runs.c.period_end, _runs.c.created_at)
            .limit(1)
        )
        with self._engine.begin() as connection:
            row = connection.execute(query).mappings().first()
            if row is None:
                return None
            values = {"owner": owner, "leased_until": now + seconds}
            if row["started_at"] is None:
                values["started_at"] = now
            connection.execute(_runs.update().where(_runs.c.id == row["id"]).values(**values))
            return _run({**row, **values})

    def keep(self, run_id: str, owner: str, seconds: float) -> bool:
        """The lease for longer; False when it is another's, or the run is gone."""
        return self._put(run_id, owner, leased_until=self._clock() + seconds)

    def note(
        self, run_id: str, owner: str, state: RunState, detail: Mapping[str, Any], reason: str = ""
    ) -> bool:
        """How far a run has come; False when the lease is lost."""
        return self._put(run_id, owner, state=state.value, reason=reason, detail=dict(detail))

    def leave(self, run_id: str, owner: str, detail: Mapping[str, Any], wait: float) -> bool:
        """The lease of a run that has ended goes; those who do not know of its failure are told in so many
        seconds."""
        return self._put(run_id, owner, detail=dict(detail), retry_at=self._clock() + wait, owner=None)

    def retry(self, run_id: str, owner: str, reason: str, wait: float) -> bool:
        """It has failed, and is tried again in so many seconds: the lease ends."""
        mine = sa.and_(_runs.c.id == run_id, _runs.c.owner == owner)
        with self._engine.begin() as connection:
            at = self._clock() + wait
            values = {"attempts": _runs.c.attempts + 1, "reason": reason, "retry_at": at, "owner": None}
            if not connection.execute(_runs.update().where(mine).values(**values)).rowcount:
                return False
            export = connection.scalar(sa.select(_runs.c.export).where(_runs.c.id == run_id))
            log_event(connection, subject(export), "tried again", f"run {run_id}: {reason}")
        return True

    def end(
        self,
        run_id: str,
        owner: str,
        state: RunState,
        reason: str,
        detail: Mapping[str, Any],
        wait: float = 0.0,
    ) -> bool:
        """The last word on a run. `wait`: seconds after which those are told who do not know."""
        values: dict[str, Any] = {"state": state.value, "reason": reason, "owner": None}
        mine = sa.and_(_runs.c.id == run_id, _runs.c.owner == owner)
        with self._engine.begin() as connection:
            now = self._clock()
            values["detail"] = self._still_erased(connection, run_id, detail)
            update = _runs.update().where(mine).values(**values, ended_at=now, retry_at=now + wait)
            if not connection.execute(update).rowcount:
                return False
            export = connection.scalar(sa.select(_runs.c.export).where(_runs.c.id == run_id))
            log_event(connection, subject(export), state.value, f"run {run_id}: {reason}".rstrip(": "))
        return True

    def release(self, run_id: str, owner: str) -> None:
        """Its process ends: another may go on at once."""
        self._put(run_id, owner, leased_until=0.0)

    def release_all(self, home: str) -> None:
        """The leases of a process that is known to have ended: its owners' names begin so."""
        theirs = _runs.c.owner.startswith(home, autoescape=True)
        with self._engine.begin() as connection:
            connection.execute(_runs.update().where(theirs).values(leased_until=0.0))

    def note_erasure(self, run_ids: Iterable[str]) -> None:
        """Rows that these runs have read are being erased: they cannot be repeated."""
        with self._engine.begin() as connection:
            for run_id in run_ids:
                detail = self._detail(connection, run_id)
                if ERASED not in (reasons := detail.get("unrepeatable", [])):
                    self._change_detail(connection, run_id, unrepeatable=[*reasons, ERASED])

    def note_pruned(self, run_id: str, outcome: str) -> None:
        """What became of the file of a run that is done."""
        with self._engine.begin() as connection:
            self._change_detail(connection, run_id, pruned=outcome)

    def link_used(self, run_id: str, address: str) -> None:
        self._log_of_run(run_id, "link opened", f"run {run_id}, from {address}")

    def file_downloaded(self, run_id: str, who: str) -> None:
        self._log_of_run(run_id, "file downloaded", f"run {run_id}, by {who}")

    def _log_of_run(self, run_id: str, kind: str, message: str) -> None:
        with self._engine.begin() as connection:
            export = connection.scalar(sa.select(_runs.c.export).where(_runs.c.id == run_id))
            if export is not None:
                log_event(connection, subject(export), kind, message)

    # -- within a transaction

    def _detail(self, connection: Connection, run_id: str) -> Mapping[str, Any]:
        return connection.scalar(sa.select(_runs.c.detail).where(_runs.c.id == run_id)) or {}

    def _still_erased(
        self, connection: Connection, run_id: str, detail: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """What its process knows of a run, which may not know of an erasure meanwhile."""
        reasons = detail.get("unrepeatable", [])
        if ERASED in reasons or ERASED not in self._detail(connection, run_id).get("unrepeatable", []):
            return detail
        return {**detail, "unrepeatable": [*reasons, ERASED]}

    def _change_detail(self, connection: Connection, run_id: str, **fields: Any) -> None:
        detail = {**self._detail(connection, run_id), **fields}
        connection.execute(_runs.update().where(_runs.c.id == run_id).values(detail=detail))

    def _put(self, run_id: str, by: str, /, **values: Any) -> bool:
        mine = sa.and_(_runs.c.id == run_id, _runs.c.owner == by)
        with self._engine.begin() as connection:
            if "detail" in values:
                values["detail"] = self._still_erased(connection, run_id, values["detail"])
            return bool(connection.execute(_runs.update().where(mine).values(**values)).rowcount)

    def _update(self, connection: Connection, name: str, **values: Any) -> RowMapping:
        mine = _exports.c.name == name
        before = connection.execute(sa.select(_exports).where(mine)).mappings().first()
        if before is None:
            raise no_export(name)
        connection.execute(_exports.update().where(mine).values(**values, updated_at=self._clock()))
        return before

    def _make(self, connection: Connection, export: RowMapping, slot: Slot, whole: bool = False) -> str:
        same = sa.and_(
            _runs.c.export == export["name"],
            _runs.c.period_start == slot.start,
            _runs.c.period_end == slot.end,
        )
        repeat = connection.scalar(sa.select(sa.func.count()).select_from(_runs).where(same))
        if slot.start >= slot.end:
            raise InvalidRequest("The time of a run ends before it begins.", "Say an earlier beginning.")
        run_id = uuid.uuid4().hex[:16]
        connection.execute(
            _runs.insert().values(
                id=run_id,
                export=export["name"],
                slot=slot.name,
                period_start=slot.start,
                period_end=slot.end,
                repeat=repeat,
                spec=export["spec"],
                state=RunState.WAITING.value,
                reason="",
                attempts=0,
                retry_at=0.0,
                leased_until=0.0,
                detail={"whole": True} if whole else {},
                created_at=self._clock(),
            )
        )
        return run_id


def _is_untold() -> sa.ColumnElement[bool]:
    """Whether a run has failed, and not all know of it."""
    not_told = _runs.c.detail[NOT_TOLD].as_string().is_not(None)
    return sa.and_(_runs.c.state == RunState.FAILED.value, not_told)


def _is_behind_another() -> sa.ColumnElement[bool]:
    """Whether a run of an incremental export waits for one that has begun: behind its file it begins."""
    begun = _runs.alias("begun")
    has_begun = (
        sa.select(begun.c.id)
        .where(
            begun.c.export == _runs.c.export,
            begun.c.id != _runs.c.id,
            begun.c.started_at.is_not(None),
            begun.c.state.in_([RunState.WAITING.value, RunState.RUNNING.value]),
        )
        .exists()
    )
    is_incremental = _runs.c.spec["incremental"].as_string().is_not(None)
    return sa.and_(is_incremental, _runs.c.started_at.is_(None), has_begun)


def _run(row: Mapping[Any, Any]) -> RunRecord:
    return RunRecord(**{**row, "state": RunState(row["state"])})


def subject(name: str | None) -> str:
    """What an export's events are about; a topic may have the same name."""
    return f"export {name}"


def no_export(name: str) -> NotFound:
    return NotFound(f"There is no export '{name}'.", "`headgate export list` shows those that are.")
