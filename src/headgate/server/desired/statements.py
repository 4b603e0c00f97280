"""Statements, as the control state has them. One that is changed gets a successor, which takes over."""

from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from typing import Any

from headgate.apply.kinds import KINDS
from headgate.apply.kinds.statements import StatementScript, base_name, script_of, version_of
from headgate.apply.model import Change, ChangeInPlace, Create, Live, Observed, Plan, Resource, Spec
from headgate.apply.plan import located
from headgate.errors import HeadgateError, NotFound, StatementFailed
from headgate.model import StatementState
from headgate.sql.durations import format_ms
from headgate.statements.declared import DeclaredTables
from headgate.statements.execute import Executor
from headgate.statements.options import StatementOptions
from headgate.statements.session import BAD, FLUSH, IDLE, NAME, SNAPSHOT, TAKE_OVER, TTL, ZONE
from headgate.store import StatementRecord, Statements

_ENDED = (StatementState.STOPPED, StatementState.FAILED, StatementState.COMPLETED)


class StatementPart:
    """The statements of a file, each with those that it took over from as long as they are there."""

    def __init__(self, statements: Statements, tables: DeclaredTables, executor: Executor) -> None:
        self._statements = statements
        self._tables = tables
        self._executor = executor

    def observe(self, names: Collection[str] | None) -> Mapping[str, Live]:
        records = self._statements.all()
        bases = {base_name(record.name) for record in records} if names is None else names
        families = {name: _family(name, records) for name in bases}
        return {name: _live(family) for name, family in families.items() if family}

    def create(self, name: str, spec: Spec) -> Iterator[str]:
        yield from self._await_gone(name)
        script = script_of(name, spec)
        self._executor.run(self._text(script, spec), {**script.settings, NAME: name})
        yield from self._reach(name, spec)

    def change(self, name: str, spec: Spec, changes: Sequence[Change], live: Live) -> Iterator[str]:
        current = str(live.detail["current"])
        if any(change.field == "sql" or change.field.startswith("settings.") for change in changes):
            current = yield from self._succeed(name, spec, current)
        yield from self._reach(current, spec)
        for record in _family(name, self._statements.all())[:-1]:
            yield from self._delete(record.name)

    def remove(self, name: str, delete_data: bool) -> Iterator[str]:
        for record in _family(name, self._statements.all()):
            yield from self._delete(record.name)

    def check(self, plan: Plan, observed: Observed) -> None:
        """Plans the SQL of the steps whose inputs are there; an error names the place in the file."""
        steps = [step for step in plan.steps if isinstance(step, Create | ChangeInPlace)]
        known = set(observed.live)
        texts: list[str] = []
        for step in steps:
            kind = KINDS[step.ref.kind]
            made = set(kind.makes(step.ref.name, step.spec))
            if step.ref.kind != "statements" or not {*kind.reads(step.ref.name, step.spec)} <= known:
                continue
            script = script_of(step.ref.name, step.spec)
            texts.append(_as_text(self._text(script, step.spec), script, f"{step.ref.name}.planned"))
            known |= made
            try:
                self._executor.check("\n".join(texts))
            except HeadgateError as error:
                raise located(error, Resource(step.ref, step.spec, step.at)) from error

    def _text(self, script: StatementScript, spec: Spec) -> str:
        """A table that is there is written, and not created again."""
        there = script.create is not None and self._tables.get(script.create.name) is not None
        return script.insert_text if there else str(spec["sql"])

    def _succeed(self, name: str, spec: Spec, current: str) -> Generator[str, None, str]:
        """One writer at a time: the old one has stopped before the new one is there."""
        before = self._statements.get(current)
        self._statements.want(current, "stopped")
        while self._statements.get(current).state not in _ENDED:
            yield f"statement {current} to stop"
        script = script_of(name, spec)
        family = _family(name, self._statements.all())
        begun = [record.name for record in family if record.detail.get("offsets")]
        successor = f"{name}.v{(version_of(name, before.name) or 1) + 1}"
        session = {**script.settings, NAME: successor}
        if begun and SNAPSHOT not in script.settings and before.state is not StatementState.COMPLETED:
            session[TAKE_OVER] = begun[-1]
        self._executor.run(script.insert_text, session)
        return successor

    def _reach(self, name: str, spec: Spec) -> Iterator[str]:
        if spec.get("state", "running") == "stopped":
            self._statements.want(name, "stopped")
            while self._statements.get(name).state not in _ENDED:
                yield f"statement {name} to stop"
            return
        record = self._statements.get(name)
        if record.desired == "stopped" and record.state is not StatementState.COMPLETED:
            record = self._statements.want(name, "running")
        while record.state not in (StatementState.RUNNING, StatementState.COMPLETED):
            if record.state is StatementState.FAILED:
                raise StatementFailed(
                    f"Statement '{name}' has failed: {record.reason}",
                    f"See `headgate statement show {name}`.",
                )
            why = f", {record.reason}" if record.reason else ""
            yield f"statement {name} to run: it is {record.state.value}{why}"
            record = self._statements.get(name)

    def _delete(self, name: str) -> Iterator[str]:
        try:
            self._statements.want(name, "deleted")
        except NotFound:
            return
        yield from self._await_gone(name)

    def _await_gone(self, name: str) -> Iterator[str]:
        """Of one that is being deleted."""
        while any(r.name == name and r.desired == "deleted" for r in self._statements.all()):
            yield f"statement {name} to be gone"


def _family(name: str, records: Sequence[StatementRecord]) -> list[StatementRecord]:
    """A file's statement in all its versions, the newest last."""
    numbered = [
        (number, record)
        for record in records
        if record.desired != "deleted" and (number := version_of(name, record.name)) is not None
    ]
    return [record for _, record in sorted(numbered, key=lambda pair: pair[0])]


def _live(family: Sequence[StatementRecord]) -> Live:
    current = family[-1]
    spec = {"sql": current.script, "settings": _settings(current), "state": _state(current)}
    return Live(spec, detail={"current": current.name, "predecessors": [r.name for r in family[:-1]]})


def _state(record: StatementRecord) -> str:
    if record.state in (StatementState.FAILED, StatementState.COMPLETED):
        return record.state.value.lower()
    return "running" if record.desired == "running" else "stopped"


def _settings(record: StatementRecord) -> dict[str, str]:
    options = StatementOptions.from_dict(record.options)
    found: dict[str, Any] = {
        TTL: None if options.state_ttl_ms is None else format_ms(options.state_ttl_ms),
        ZONE: options.zone,
        IDLE: None if options.idle_seconds is None else format_ms(round(options.idle_seconds * 1000)),
        FLUSH: None
        if options.idle_flush_seconds is None
        else format_ms(round(options.idle_flush_seconds * 1000)),
        BAD: "skip" if options.on_bad_record == "skip" else None,
        SNAPSHOT: None if options.ends is None else "now",
    }
    return {key: value for key, value in found.items() if value is not None}


def _as_text(sql: str, script: StatementScript, name: str) -> str:
    """The script of one statement after others'."""
    settings = {**script.settings, NAME: name}
    quoted = [f"SET '{key}' = '{value.replace(chr(39), 2 * chr(39))}';" for key, value in settings.items()]
    return "\n".join(["RESET;", *quoted, sql, ";"])
