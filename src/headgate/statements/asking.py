"""A SELECT that stands alone: what is asked, with all that is needed to run it elsewhere."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Self

from headgate.errors import InvalidRequest
from headgate.sql import statements as sql
from headgate.sql.durations import parse_duration_ms
from headgate.sql.planner import Options, Plan, plan
from headgate.sql.script import parse_statement
from headgate.statements.declared import STARTS, DeclaredTables, Pinned, Pinning
from headgate.statements.session import BAD, FLUSH, IDLE, SNAPSHOT

# `live` goes on for ever, `snapshot` ends where the topics ended when it began, `lake` reads tables, and
# `changes` compares two snapshots of one.
Kind = Literal["live", "snapshot", "lake", "changes"]
# Lines of JSON, or for rows of the lake a stream of Arrow.
Form = Literal["json", "arrow"]


@dataclass(frozen=True)
class Caller:
    """Who asks, as the query driver is told: by which token the catalog knows them, and how much they get.

    0 is no limit; `limits` is the section of the configuration that says so.
    """

    name: str
    id: str
    token: str | None = field(default=None, repr=False)
    rows: int = 0
    bytes: int = 0
    seconds: float = 0
    concurrent: int = 0
    # Bytes of the files that a query reads.
    scanned: int = 0
    limits: str = "limits.admin"


@dataclass(frozen=True)
class Asked:
    """`tables` are those that the query names, as they are now; `changes` what is compared, of `changes`;
    `form` is that of the rows; `hides_rows`: what fails is said without values of rows."""

    kind: Kind
    sql: str
    tables: Mapping[str, Any] = field(default_factory=dict)
    starts: Mapping[str, str] = field(default_factory=dict)
    zone: str = "UTC"
    state_ttl_ms: int | None = None
    idle_seconds: float | None = None
    skip_bad: bool = False
    flush_seconds: float | None = None
    caller: Caller | None = None
    changes: Mapping[str, Any] = field(default_factory=dict)
    form: Form = "json"
    hides_rows: bool = False

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, said: Mapping[str, Any]) -> Self:
        caller = said.get("caller")
        return cls(**{**said, "caller": None if caller is None else Caller(**caller)})

    def plan(self, secret: Callable[[str], str]) -> Plan:
        """The same each time, whatever is altered meanwhile."""
        one = parse_statement(self.sql)
        if not isinstance(one, sql.Select):
            raise AssertionError("what is asked of topics is a SELECT")
        whole = self.kind == "snapshot"
        options = Options(secret=secret, zone=self.zone, state_ttl_ms=self.state_ttl_ms, bounded=whole)
        return plan(one.query, Pinned.from_dict(self.tables), options)


def ask(
    one: sql.Select | sql.LakeQuery, tables: DeclaredTables, options: Options, session: Mapping[str, str]
) -> tuple[Asked, Plan | None]:
    """What one SELECT asks for in a session; its plan, if it reads topics."""
    if isinstance(one, sql.LakeQuery):
        return Asked("lake", one.text, zone=options.zone), None
    pinning = Pinning(tables)
    planned = plan(one.query, pinning, options)
    for name in planned.secrets:
        options.secret(name)
    starts = {
        topic: STARTS[said]
        for topic in planned.tables
        if (said := tables.declared(topic).options.get("scan.startup.mode")) is not None
    }
    idle, flush = session.get(IDLE), session.get(FLUSH)
    found = Asked(
        "snapshot" if SNAPSHOT in session else "live",
        one.query.text,
        pinning.seen.to_dict(),
        starts,
        options.zone,
        options.state_ttl_ms,
        None if idle is None else parse_duration_ms(idle) / 1000,
        session.get(BAD) == "skip",
        None if flush is None else parse_duration_ms(flush) / 1000,
    )
    return found, planned


def ask_lake(text: str, zone: str) -> Asked:
    """What SQL asks for all of whose names are tables of the lake; Spark says whether it is right."""
    return Asked("lake", text, zone=zone)


def the_select(text: str) -> sql.Select | sql.LakeQuery:
    one = parse_statement(text)
    if not isinstance(one, sql.Select | sql.LakeQuery):
        raise InvalidRequest(
            "A query is a SELECT.", "Other statements are carried out by `headgate sql`, and POST …/sql."
        )
    return one


def check_places(script: Sequence[sql.Statement]) -> None:
    """A SELECT may run for ever: nothing but settings and other SELECTs can follow it."""
    asked = False
    for one in script:
        if isinstance(one, sql.Select | sql.LakeQuery):
            asked = True
        elif asked and not isinstance(one, sql.SetOption | sql.Reset):
            raise InvalidRequest(
                "A SELECT comes last in a script: it may run for ever.", "Put what follows it before it."
            )
