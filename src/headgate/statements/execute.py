"""A script is carried out: tables, views and settings at once, jobs as statements that the engine runs.

All of it is read and planned before any of it is done: a script with a mistake changes nothing.
"""

import fnmatch
import uuid
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from headgate.access.topics import TopicRights, all_rights
from headgate.errors import AlreadyExists, InvalidRequest, NotFound
from headgate.kafka.topics import Topics, check_topic_name
from headgate.registry.client import SchemaSource
from headgate.sql import statements as sql
from headgate.sql.durations import parse_duration_ms
from headgate.sql.functions import FUNCTIONS
from headgate.sql.insert import plan_create, plan_insert
from headgate.sql.planner import Options, Plan, plan
from headgate.sql.render import create_table_text, create_view_text
from headgate.sql.script import parse_script, parse_statement
from headgate.sql.tables import TableInfo, Tables
from headgate.sql.types import name_of, quote
from headgate.statements.altering import (
    Alter,
    altered,
    declared_after,
    kafka_options,
    mode_warnings,
    output_of,
    topic_changes,
    topic_config,
)
from headgate.statements.asking import Asked, ask, ask_lake, check_places, the_select
from headgate.statements.declared import (
    KEY_FIELDS,
    RECORD_KEYS,
    STARTS,
    Declared,
    DeclaredTables,
    Pinned,
    Pinning,
    check_options,
    declared_by,
)
from headgate.statements.ends import Ends
from headgate.statements.options import StatementOptions
from headgate.statements.permissions import Permissions, no_such, no_table
from headgate.statements.runnable import Job, Output, tables_read
from headgate.statements.session import (
    BAD,
    FLUSH,
    IDLE,
    NAME,
    SNAPSHOT,
    TAKE_OVER,
    TTL,
    ZONE,
    check_job,
    forget_once,
    set_option,
)
from headgate.statements.sink import check_output, register_output, schema_texts
from headgate.store import StatementRecord, Statements


@dataclass(frozen=True)
class Outcome:
    """What came of one statement: a word on it, and rows for what was asked."""

    kind: str
    message: str = ""
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    statement: str | None = None
    warnings: tuple[str, ...] = ()
    #: A SELECT: what to ask for, and under which settings.
    query: Mapping[str, Any] | None = None


@dataclass
class Planning:
    """The tables as they would be if the script were carried out up to here."""

    known: Tables
    tables: dict[str, TableInfo | None] = field(default_factory=dict)
    views_made: dict[str, sql.CreateView | None] = field(default_factory=dict)

    def get(self, name: str) -> TableInfo | None:
        return self.tables[name] if name in self.tables else self.known.get(name)

    def view(self, name: str) -> sql.CreateView | None:
        return self.views_made[name] if name in self.views_made else self.known.view(name)

    def names(self) -> Iterable[str]:
        return {*self.known.names(), *self.tables, *self.views_made}

    def record_key(self, name: str) -> tuple[str, ...]:
        made = None if self.known.get(name) is not None else self.tables.get(name)
        return self.known.record_key(name) if made is None else made.primary_key


class Executor:
    """Carries out scripts for one user's session after the other."""

    def __init__(
        self,
        tables: DeclaredTables,
        statements: Statements,
        topics: Topics,
        schemas: SchemaSource,
        secret: Callable[[str], str],
        rights: TopicRights | None = None,
    ) -> None:
        """`rights`: on whose behalf scripts are carried out; None is on Headgate's own."""
        self._may = Permissions(rights or all_rights(), statements)
        self._tables = tables
        self._statements = statements
        self._topics = topics
        self._schemas = schemas
        self._secret = secret

    def acting_for(self, rights: TopicRights) -> "Executor":
        """Reads the topics that these rights show, and writes those that they let it write."""
        tables = self._tables.seen_by(rights)
        return Executor(tables, self._statements, self._topics, self._schemas, self._secret, rights)

    def run(self, text: str, session: dict[str, str] | None = None) -> list[Outcome]:
        """What came of each statement; `session` has what was SET, before and after."""
        session = {} if session is None else session
        script = parse_script(text)
        self._check(script, dict(session))
        return [self._carry_out(one, session) for one in script]

    def check(self, text: str) -> None:
        """Raises InvalidRequest where `run` would refuse this script."""
        self._check(parse_script(text), {})

    def ask(self, text: str, session: Mapping[str, str]) -> tuple[Asked, Plan | None]:
        """What one SELECT asks for; its plan, if it reads topics."""
        said: dict[str, str] = {}
        for key, value in session.items():
            set_option(sql.SetOption(key, value), said)
        return ask(the_select(text), self._tables, self._options(said), said)

    def ask_lake(self, text: str, session: Mapping[str, str]) -> Asked:
        """What SQL on tables of the lake asks for, without a word of topics."""
        said: dict[str, str] = {}
        for key, value in session.items():
            set_option(sql.SetOption(key, value), said)
        return ask_lake(text, self._options(said).zone)

    # -- before anything is done

    def _check(self, script: list[sql.Statement], session: dict[str, str]) -> None:
        planning = Planning(self._tables)
        names = {record.name for record in self._statements.all()}
        check_places(script)
        seen = {record.name for record in self._may.seen_statements()}
        hidden = frozenset(names - seen)
        for one in script:
            match one:
                case sql.SetOption() | sql.Reset():
                    set_option(one, session)
                case sql.CreateTable():
                    self._may.check_makes(one.name)
                    if self._check_create(one, planning, session):
                        check_job(session, names, hidden=hidden)
                case sql.CreateView():
                    self._may.check_makes(one.name)
                    if planning.get(one.name) is not None:
                        raise AlreadyExists(f"There is a table '{one.name}'.", "Give the view another name.")
                    self._checked(plan(one.query, planning, self._options(session)))
                    planning.views_made[one.name] = one
                case sql.InsertInto():
                    self._check_insert(one, planning, session)
                    check_job(session, names, hidden=hidden)
                case sql.StatementSet():
                    for insert in one.inserts:
                        self._check_insert(insert, planning, session)
                    ends = [f"-{n}" for n in range(1, len(one.inserts) + 1)]
                    check_job(session, names, ends, hidden)
                case _ if isinstance(one, Alter):
                    before = self._writable(planning, one.table)
                    after = self._altered(before, one)
                    planning.tables[one.table] = after
                    self._tables.check_mode(before, after)
                case sql.Drop():
                    self._check_drop(one, planning, seen)
                case sql.Explain():
                    self._explained(one, planning, session)
                case sql.Select():
                    self._checked(plan(one.query, planning, self._options(session)))
                    forget_once(session)

    def _check_insert(self, insert: sql.InsertInto, planning: Planning, session: dict[str, str]) -> None:
        table = self._writable(planning, insert.table)
        self._checked(plan_insert(insert, table, planning, self._options(session)))

    def _writable(self, tables: Tables, name: str) -> TableInfo:
        """A table that is there, and whose rows may be others."""
        table = _known(tables, name)
        self._may.check_writes(name)
        return table

    def _check_create(self, create: sql.CreateTable, planning: Planning, session: dict[str, str]) -> bool:
        """Whether it is a job too."""
        check_options(create.name, create.options)
        if KEY_FIELDS in create.options:
            raise InvalidRequest(
                f"Option '{KEY_FIELDS}' is for topics that others write; table '{create.name}' is created.",
                "PRIMARY KEY or DISTRIBUTED BY HASH says what its records' keys are.",
            )
        there = planning.get(create.name) is not None or planning.view(create.name) is not None
        if there and (over := self._over_events(create)) is not None:
            planning.tables[create.name] = over
            return False
        if there and not create.if_not_exists:
            raise AlreadyExists(
                f"There is a table '{create.name}' already.", "Say IF NOT EXISTS, or DROP TABLE it first."
            )
        made, planned = plan_create(create, planning, self._options(session))
        output = output_of(made, declared_by(create, made))
        check_topic_name(create.name)
        schema_texts(output)
        if planned is not None:
            check_output(self._checked(planned), output)
        if not there:
            planning.tables[create.name] = made
        return planned is not None

    def _over_events(self, create: sql.CreateTable) -> TableInfo | None:
        """What a table is declared to be whose topic of change events is there."""
        if create.query is not None:
            return None
        made, _ = plan_create(replace(create, options={}), self._tables)
        return self._tables.over_events(made, create.options)

    def _altered(self, before: TableInfo, one: Alter) -> TableInfo:
        after = altered(before, one)
        return self._tables.altered(after, one.options) if isinstance(one, sql.AlterTableSet) else after

    def _check_drop(self, drop: sql.Drop, planning: Planning, names: set[str]) -> None:
        there = {
            "table": lambda: planning.get(drop.name) is not None,
            "view": lambda: planning.view(drop.name) is not None,
            "statement": lambda: drop.name in names,
        }[drop.kind]()
        if not there and not drop.if_exists:
            raise no_such(drop)
        if there:
            self._may.check_drops(drop)
        if drop.kind == "table":
            self._refuse_used(drop.name)
            planning.tables[drop.name] = None
        elif drop.kind == "view":
            planning.views_made[drop.name] = None

    def _refuse_used(self, table: str) -> None:
        for record in self._statements.all():
            pinned = StatementOptions.from_dict(record.options).tables or {}
            if table in pinned.get("tables", {}) and record.desired == "running":
                raise self._may.in_use(table, record)

    def _options(self, session: Mapping[str, str]) -> Options:
        ttl = session.get(TTL)
        found = Options(secret=self._secret, zone=session.get(ZONE, "UTC"), bounded=SNAPSHOT in session)
        return found if ttl is None else replace(found, state_ttl_ms=parse_duration_ms(ttl) or None)

    # -- one after the other

    def _carry_out(self, one: sql.Statement, session: dict[str, str]) -> Outcome:
        match one:
            case sql.SetOption(key=None):
                rows = tuple(sorted(session.items()))
                return Outcome("set", columns=("KEY", "VALUE"), rows=rows)
            case sql.SetOption() | sql.Reset():
                return Outcome("set", set_option(one, session))
            case sql.CreateTable():
                return self._create(one, session)
            case sql.CreateView():
                return self._create_view(one)
            case sql.InsertInto():
                return self._insert(one, session)
            case sql.StatementSet():
                return self._insert_all(one, session)
            case sql.Drop():
                return self._drop(one)
            case sql.Select() | sql.LakeQuery():
                text = one.query.text if isinstance(one, sql.Select) else one.text
                found = Outcome("select", query={"sql": text, "settings": dict(session)})
                forget_once(session)
                return found
            case sql.Show():
                return self._show(one)
            case sql.Describe():
                return self._describe(one)
            case sql.Explain():
                text = self._explained(one, self._tables, session)
                return Outcome(
                    "explain", columns=("PLAN",), rows=tuple((line,) for line in text.splitlines())
                )
            case _ if isinstance(one, Alter):
                return self._alter(one)
        raise AssertionError(f"{type(one).__name__} passed the check")

    def _create(self, create: sql.CreateTable, session: dict[str, str]) -> Outcome:
        there = self._tables.get(create.name)
        if there is not None and (over := self._over_events(create)) is not None:
            return self._declare_over(create, there, over)
        if there is not None and create.query is None:
            return Outcome("create", f"table {create.name} is there already")
        made, planned = plan_create(create, self._tables, self._options(session))
        declared = declared_by(create, made)
        if there is None:
            self._make_topic(made, declared)
        if planned is None or create.query is None:
            return Outcome("create", f"table {create.name} is created")
        text = f"INSERT INTO {quote(create.name)} {create.query.text}"
        return self._start(text, create.name, session)

    def _declare_over(self, create: sql.CreateTable, there: TableInfo, table: TableInfo) -> Outcome:
        self._tables.declare(table.name, declared_by(create, table), there.changelog != table.changelog)
        if changes := kafka_options(create.options):
            self._topics.configure(table.name, dict(changes))
        message = f"table {table.name} is declared: its topic, of change events, is there already"
        return Outcome("create", message, warnings=mode_warnings(there, table))

    def _make_topic(self, table: TableInfo, declared: Declared) -> None:
        """Declared first: a topic that is there without its declaration would be another table."""
        self._tables.declare(table.name, declared, table.changelog == "retract")
        output = output_of(table, declared)
        with suppress(AlreadyExists):
            self._topics.create(table.name, output.partitions, config=topic_config(table, declared.options))
        register_output(output, self._schemas)

    def _create_view(self, create: sql.CreateView) -> Outcome:
        if self._tables.view(create.name) is not None and not create.or_replace:
            if create.if_not_exists:
                return Outcome("create", f"view {create.name} is there already")
            raise AlreadyExists(f"There is a view '{create.name}' already.", "Say CREATE OR REPLACE VIEW.")
        self._tables.declare_view(create.name, create_view_text(create))
        return Outcome("create", f"view {create.name} is created")

    def _insert(self, insert: sql.InsertInto, session: dict[str, str]) -> Outcome:
        return self._start(_insert_text(insert), insert.table, session)

    def _insert_all(self, one: sql.StatementSet, session: dict[str, str]) -> Outcome:
        """Each insert is a statement of its own, and they are named together."""
        name = session.get(NAME)
        started: list[Outcome] = []
        for number, insert in enumerate(one.inserts, 1):
            own = dict(session) if name is None else {**session, NAME: f"{name}-{number}"}
            started.append(self._start(_insert_text(insert), insert.table, own))
        forget_once(session)
        names = [outcome.statement or "" for outcome in started]
        warnings = dict.fromkeys(warning for outcome in started for warning in outcome.warnings)
        message = f"statements {', '.join(names)} are created"
        return Outcome("insert", message, statement=names[0], warnings=tuple(warnings))

    def _start(self, text: str, target: str, session: dict[str, str]) -> Outcome:
        name = session.get(NAME) or f"{_word(target)}-{uuid.uuid4().hex[:8]}"
        insert, pinning = _as_insert(text), Pinning(self._tables)
        table = _known(pinning, insert.table)
        planned = self._checked(plan_insert(insert, table, pinning, self._options(session)))
        starts = {
            topic: STARTS[said]
            for topic in tables_read(planned)
            if (said := self._tables.declared(topic).options.get("scan.startup.mode")) is not None
        }
        ttl, idle, flush = session.get(TTL), session.get(IDLE), session.get(FLUSH)
        options = StatementOptions(
            idle_seconds=None if idle is None else parse_duration_ms(idle) / 1000,
            idle_flush_seconds=None if flush is None else parse_duration_ms(flush) / 1000,
            on_bad_record="skip" if session.get(BAD) == "skip" else "fail",
            initial_offset_from=session.get(TAKE_OVER),
            starts=starts or None,
            state_ttl_ms=None if ttl is None else parse_duration_ms(ttl),
            zone=session.get(ZONE),
            tables={
                **pinning.seen.to_dict(),
                "output": self._output(table, planned).to_dict(),
            },
            ends=self._ends(planned, starts) if SNAPSHOT in session else None,
        )
        self._statements.create(name, "insert", text, options.to_dict())
        forget_once(session)
        until = ", and ends where its topics end now" if options.ends is not None else ""
        message = f"statement {name} is created{until}"
        return Outcome("insert", message, statement=name, warnings=planned.warnings)

    def _ends(self, planned: Plan, starts: Mapping[str, str]) -> dict[str, Any]:
        return Ends.now(self._topics.access, sorted(planned.tables), starts).to_dict()

    def _output(self, table: TableInfo, planned: Plan) -> Output:
        found = output_of(table, self._tables.declared(table.name))
        if found.key or found.changelog != "append" or not planned.in_place:
            return found
        (source,) = planned.tables
        return replace(found, in_place=len(self._topics.describe(source).partitions))

    def _checked(self, planned: Plan) -> Plan:
        """Whether the secrets that it names are there."""
        for name in planned.secrets:
            self._secret(name)
        return planned

    def _alter(self, one: Alter) -> Outcome:
        """The topic first: what is declared of it is so then."""
        table, declared = _known(self._tables, one.table), self._tables.declared(one.table)
        after = self._altered(table, one)
        self._tables.check_mode(table, after)
        declared = declared_after(declared, after, one)
        if isinstance(one, sql.AlterTableAdd):
            register_output(output_of(after, declared), self._schemas)
        if changes := topic_changes(one):
            self._topics.configure(one.table, changes)
        self._tables.declare(one.table, declared, table.changelog != after.changelog)
        message = f"table {one.table} is altered"
        return Outcome("alter", message, warnings=mode_warnings(table, after))

    def _drop(self, drop: sql.Drop) -> Outcome:
        if drop.kind != "statement" and not self._may.sees(drop.name):
            # IF EXISTS: to them there is none.
            return Outcome("drop", f"{drop.kind} {drop.name} is dropped")
        match drop.kind:
            case "statement":
                if drop.name in {record.name for record in self._may.seen_statements()}:
                    self._statements.want(drop.name, "deleted")
            case "view":
                self._tables.forget(drop.name)
            case "table":
                ours = not self._tables.has_events(drop.name)
                if self._tables.get(drop.name) is not None:
                    self._topics.delete(drop.name)
                if ours and self._tables.declared(drop.name).columns is not None:
                    # Its schemas were made for it: a table of the same name may be another one.
                    for part in ("value", "key"):
                        self._schemas.forget(f"{drop.name}-{part}")
                self._tables.forget(drop.name)
        return Outcome("drop", f"{drop.kind} {drop.name} is dropped")

    def _show(self, show: sql.Show) -> Outcome:
        match show.what:
            case "create table":
                table = _known(self._tables, show.name or "")
                text = create_table_text(table, self._tables.declared(table.name).options)
                return Outcome("show", columns=("CREATE TABLE",), rows=((text,),))
            case "create view":
                view = self._tables.view(show.name or "")
                if view is None:
                    raise NotFound(f"There is no view '{show.name}'.")
                return Outcome("show", columns=("CREATE VIEW",), rows=((create_view_text(view),),))
            case "tables":
                names = [name for name in self._tables.names() if self._tables.get(name) is not None]
            case "views":
                names = self._tables.views()
            case "functions":
                names = sorted(FUNCTIONS)
            case _:
                rows = tuple((r.name, r.state.value, r.reason) for r in self._may.seen_statements())
                return Outcome("show", columns=("NAME", "STATE", "REASON"), rows=rows)
        if show.like is not None:
            pattern = show.like.replace("%", "*").replace("_", "?")
            names = [name for name in names if fnmatch.fnmatchcase(name, pattern)]
        return Outcome("show", columns=("NAME",), rows=tuple((name,) for name in names))

    def _describe(self, one: sql.Describe) -> Outcome:
        table = _known(self._tables, one.name)
        rows = [
            (
                column.name,
                name_of(column.dataType),
                "NULL" if column.nullable else "NOT NULL",
                "PRIMARY KEY" if column.name in table.primary_key else _marked(table, column.name),
            )
            for column in table.columns.fields
        ]
        if one.extended:
            options = self._tables.declared(one.name).options
            rows += [(key, value, "", "option") for key, value in sorted(options.items())]
            rows.append(("changelog.mode", table.changelog, "", "table"))
        return Outcome("describe", columns=("COLUMN", "TYPE", "NULLS", ""), rows=tuple(rows))

    def _explained(self, one: sql.Explain, tables: Tables, session: Mapping[str, str]) -> str:
        options = self._options(session)
        match one.inner:
            case sql.Select():
                return plan(one.inner.query, tables, options).explain()
            case sql.InsertInto():
                return plan_insert(one.inner, _known(tables, one.inner.table), tables, options).explain()
            case sql.CreateTable():
                _, planned = plan_create(one.inner, tables, options)
                return "no rows are read" if planned is None else planned.explain()
            case sql.StatementSet():
                found = [
                    plan_insert(insert, _known(tables, insert.table), tables, options).explain()
                    for insert in one.inner.inserts
                ]
                return "\n\n".join(found)
        raise AssertionError(one)


def job_of(record: StatementRecord, secret: Callable[[str], str]) -> Job:
    """What the engine runs for a statement: the same each time, whatever was altered since it was made."""
    said = StatementOptions.from_dict(record.options)
    if said.tables is None:
        raise AssertionError(f"statement '{record.name}' was made without its tables")
    options = Options(
        secret=secret,
        zone=said.zone or "UTC",
        state_ttl_ms=said.state_ttl_ms or None,
        first_at_once=RECORD_KEYS in said.tables,
        bounded=said.ends is not None,
    )
    insert, tables = _as_insert(record.script), Pinned.from_dict(said.tables)
    planned = plan_insert(insert, _known(tables, insert.table), tables, options)
    return Job(planned, Output.from_dict(said.tables["output"]))


def _as_insert(text: str) -> sql.InsertInto:
    found = parse_statement(text)
    if not isinstance(found, sql.InsertInto):
        raise AssertionError("a statement's script is an INSERT")
    return found


def _insert_text(insert: sql.InsertInto) -> str:
    columns = f" ({', '.join(map(quote, insert.columns))})" if insert.columns else ""
    return f"INSERT INTO {quote(insert.table)}{columns} {insert.query.text}"


def _known(tables: Tables, name: str) -> TableInfo:
    found = tables.get(name)
    if found is None:
        raise no_table(name)
    return found


def _marked(table: TableInfo, name: str) -> str:
    return "WATERMARK" if table.watermark is not None and table.watermark.column == name else ""


def _word(name: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "._-" else "-" for letter in name)[:80] or "job"
