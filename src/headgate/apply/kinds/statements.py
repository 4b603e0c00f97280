"""Statements: SQL that runs. Another SQL is another statement, which takes over from the one before."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from sqlglot import exp

from headgate.apply.kinds.kind import Kind
from headgate.apply.model import Change, Difference, Live, Owner, Ref, Spec
from headgate.errors import InvalidRequest
from headgate.sql.dialect import tokenize
from headgate.sql.durations import parse_duration_ms
from headgate.sql.script import parse_script
from headgate.sql.statements import CreateTable, InsertInto, Query, SetOption
from headgate.sql.types import quote
from headgate.statements.session import FLUSH, IDLE, NAME, SETTINGS, SNAPSHOT, TAKE_OVER, TTL, set_option
from headgate.store.statements import check_name

TAKES_OVER = (
    "the statement that runs is stopped; the new one takes over where it stands, and its state is rebuilt "
    "from what it has read; what is written stays as it is"
)
STARTS_OVER = "it has ended: the new statement reads its topics from their beginning, and writes again"
_DURATIONS = (TTL, IDLE, FLUSH)
_SUCCESSOR = re.compile(r"(?P<base>.+)\.v(?P<number>[1-9]\d*)")


@dataclass(frozen=True)
class StatementScript:
    """The one job of a statement, the table that it creates first, and what is SET for it."""

    insert: InsertInto
    create: CreateTable | None = None
    settings: dict[str, str] = field(default_factory=dict)

    @property
    def insert_text(self) -> str:
        """The job as an INSERT INTO, as its record keeps it."""
        insert = self.insert
        columns = f" ({', '.join(map(quote, insert.columns))})" if insert.columns else ""
        return f"INSERT INTO {quote(insert.table)}{columns} {insert.query.text}"


def script_of(name: str, spec: Spec) -> StatementScript:
    """What a statement's SQL says; InvalidRequest where it is not one job."""
    settings: dict[str, str] = {}
    create: CreateTable | None = None
    insert: InsertInto | None = None
    for key, value in (spec.get("settings") or {}).items():
        _set(name, SetOption(key, value), settings)
    for one in parse_script(spec["sql"]):
        match one:
            case SetOption() if insert is None:
                _set(name, one, settings)
            case CreateTable() if create is None and insert is None:
                create = one
                if one.query is not None:
                    insert = InsertInto(one.name, one.query)
            case InsertInto() if insert is None and (create is None or create.name == one.table):
                insert = one
            case _:
                raise _not_one_job(name)
    if insert is None:
        raise _not_one_job(name)
    return StatementScript(insert, create, settings)


def _not_one_job(name: str) -> InvalidRequest:
    return InvalidRequest(
        f"The sql of statement '{name}' is not one job.",
        "It is SETs, then CREATE TABLE … AS, or INSERT INTO, with the CREATE TABLE of its target before it "
        "if it has one. Other statements have names of their own; watermarks of topics stand under topics.",
    )


def _set(name: str, one: SetOption, settings: dict[str, str]) -> None:
    if one.key in (NAME, TAKE_OVER):
        raise InvalidRequest(
            f"Statement '{name}' sets '{one.key}'.",
            "Leave it out: the file says the name, and apply the rest.",
        )
    set_option(one, settings)


def canonical_settings(settings: Spec) -> dict[str, Any]:
    """Settings by what they mean: durations in milliseconds, and none that is a default."""
    meant = {key: parse_duration_ms(value) if key in _DURATIONS else value for key, value in settings.items()}
    return {key: value for key, value in meant.items() if (key, value) != ("sql.on-bad-record", "fail")}


def tokens_of(text: str) -> list[tuple[str, str]]:
    """SQL without its blanks and comments."""
    return [(token.token_type.name, token.text) for token in tokenize(text)]


def tables_read(query: Query) -> set[str]:
    """The names in a query that are not its own."""
    own = {cte.alias for cte in query.tree.find_all(exp.CTE)}
    return {table.name for table in query.tree.find_all(exp.Table) if table.name and table.name not in own}


def base_name(name: str) -> str:
    """The name in the file of a statement that took over from another."""
    successor = _SUCCESSOR.fullmatch(name)
    return name if successor is None else successor["base"]


def version_of(base: str, name: str) -> int | None:
    """Which of a file's statements this is: 1 for the first, None for another's."""
    if name == base:
        return 1
    successor = _SUCCESSOR.fullmatch(name)
    return int(successor["number"]) if successor is not None and successor["base"] == base else None


class Statements(Kind):
    name = "statements"
    holds = "its offsets and its state"

    def check(self, name: str, spec: Spec) -> None:
        check_name(name)
        script = script_of(name, spec)
        if script.insert.table in tables_read(script.insert.query):
            raise InvalidRequest(
                f"Statement '{name}' reads '{script.insert.table}', which it writes.", "Write another topic."
            )

    def reads(self, name: str, spec: Spec) -> Iterable[Ref]:
        script = script_of(name, spec)
        for topic in sorted(tables_read(script.insert.query)):
            yield Ref("topics", topic)
        if script.create is None:
            yield Ref("topics", script.insert.table)

    def writes(self, name: str, spec: Spec) -> Iterable[Ref]:
        return (Ref("topics", script_of(name, spec).insert.table),)

    def makes(self, name: str, spec: Spec) -> Iterable[Ref]:
        create = script_of(name, spec).create
        return () if create is None else (Ref("topics", create.name),)

    def difference(self, name: str, spec: Spec, live: Live, owner: Owner | None) -> Difference | None:
        wanted, there = script_of(name, spec), live.spec
        _refuse_other_target(name, wanted, owner)
        changes = []
        if tokens_of(wanted.insert_text) != tokens_of(there["sql"]):
            changes.append(Change("sql", there["sql"], wanted.insert_text))
        before, after = canonical_settings(there.get("settings") or {}), canonical_settings(wanted.settings)
        for key in SETTINGS:
            if before.get(key) != after.get(key):
                changes.append(Change(f"settings.{key}", before.get(key), after.get(key)))
        keeps = ""
        if changes:
            keeps = STARTS_OVER if SNAPSHOT in before or SNAPSHOT in after else TAKES_OVER
        state = spec.get("state", "running")
        if there["state"] not in (state, "completed"):
            changes.append(Change("state", there["state"], state))
        if live.detail.get("predecessors"):
            changes.append(Change("predecessor", ", ".join(live.detail["predecessors"]), None))
        return Difference(tuple(changes), keeps=keeps) if changes else None


def _refuse_other_target(name: str, wanted: StatementScript, owner: Owner | None) -> None:
    """A table with rows in it is not declared again by another CREATE TABLE."""
    if owner is None or not owner.spec.get("sql"):
        return
    before = script_of(name, owner.spec)
    if before.create is None or wanted.create is None:
        return
    old, new = (_without_query(create) for create in (before.create, wanted.create))
    if old != new:
        raise InvalidRequest(
            f"Statement '{name}' creates table '{new.name}' otherwise than before, and the table is there.",
            f'Alter it (headgate sql -e "ALTER TABLE `{new.name}` …") and write INSERT INTO here with its '
            "CREATE TABLE under topics; or write another table.",
        )


def _without_query(create: CreateTable) -> CreateTable:
    return replace(create, query=None, if_not_exists=False)
