"""Windows of time: TUMBLE, HOP, CUMULATE and SESSION, as table functions and in GROUP BY."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from sqlglot import exp

from headgate.errors import InvalidRequest
from headgate.sql import signed
from headgate.sql.dialect import WindowTable
from headgate.sql.durations import format_ms, interval_ms
from headgate.sql.operators import AssignWindows, ProjectRows
from headgate.sql.refusals import refuse, refused
from headgate.sql.relation import BEGAN, ENDED, Relation, SessionTable, alter_for, event_column
from headgate.sql.scope import Attribute, WindowPart, under
from headgate.sql.stateful import SessionGap
from headgate.sql.typed import Typed
from headgate.sql.types import BIGINT, TIMESTAMP, TIMESTAMP_LTZ, is_time, quote, spark_name

if TYPE_CHECKING:
    from headgate.sql.select import Selects

_SPANS = {"TUMBLE": (1, 2), "HOP": (2, 3), "CUMULATE": (2, 3), "SESSION": (1, 1)}
_FORMS = {
    "TUMBLE": "TUMBLE(TABLE t, DESCRIPTOR(c), INTERVAL size)",
    "HOP": "HOP(TABLE t, DESCRIPTOR(c), INTERVAL slide, INTERVAL size)",
    "CUMULATE": "CUMULATE(TABLE t, DESCRIPTOR(c), INTERVAL step, INTERVAL size)",
    "SESSION": "SESSION(TABLE t PARTITION BY k, DESCRIPTOR(c), INTERVAL gap)",
}
# Zones differ from each other, and from themselves in summer, by whole quarters of an hour.
_QUARTER_MS = 900_000


@dataclass(frozen=True)
class WindowSpec:
    """Which windows: `step_ms` is the slide of HOP and the step of CUMULATE, `size_ms` the gap of SESSION."""

    kind: str
    event: str
    delay_ms: int
    size_ms: int
    step_ms: int
    start_ms: int
    time: Attribute


def assign(selects: Selects, tree: WindowTable) -> Relation:
    """`TABLE(TUMBLE(…))` in FROM: the rows of its table, with window_start, window_end and window_time."""
    relation = selects.table(tree.this)
    selects.check_waiting(relation, str(tree.args["name"]))
    if relation.changes and tree.args["name"] != "SESSION":
        # A row may be in several windows: its key alone does not tell it apart any more.
        relation = replace(signed.ready(selects, relation), key=())
    else:
        selects.check_plain(relation, str(tree.args["name"]))
    compiler = selects.compiler(relation.scope)
    attribute = compiler.compile(tree.args["column"]).attribute
    if attribute is None:
        refuse("DESCRIPTOR takes the name of a column.", tree)
    window = spec(selects, relation, tree.args["name"], attribute, tree.args["spans"], tree)
    alias = tree.args.get("alias")
    name = alias.name if alias is not None else ""
    keys = tuple(_key(compiler.compile(key), key) for key in tree.args.get("keys") or ())
    if keys and window.kind != "SESSION":
        refuse("PARTITION BY is for SESSION; others take GROUP BY.", tree)
    relation, ref = place(selects, relation, window)
    if window.kind == "SESSION":
        gap = SessionGap(window.event, window.size_ms)
        relation = replace(relation, session=SessionTable(gap, keys, ref))
    attributes = [attribute for _, attribute in relation.scope.columns]
    parts = window_attributes(selects, window, ref)
    if window.kind != "SESSION":
        added = [(a.ref, part_value(a, ref)) for a in parts]
        kept = [a.ref for a in attributes]
        several: list[tuple[str, Typed]] = []
        if window.kind != "TUMBLE" and relation.coordinates:
            edges = {BEGAN: "start", ENDED: "end"}
            several = [
                (selects.refs.new(name), Typed(f"unix_micros({quote(ref)}.{edge})", BIGINT))
                for name, edge in edges.items()
            ]
        relation = replace(
            relation,
            operator=ProjectRows(relation.operator, kept, [*added, *several]),
            coordinates=(*relation.coordinates, *(edge for edge, _ in several)),
        )
    return replace(relation, scope=under(name, [*attributes, *parts]))


def _key(value: Typed, node: exp.Expr) -> str:
    if value.attribute is None:
        refuse("PARTITION BY of SESSION takes columns.", node)
    return value.attribute.ref


def place(selects: Selects, relation: Relation, window: WindowSpec) -> tuple[Relation, str]:
    """The relation with a column of windows, and that column; a SESSION has it from its GROUP BY on."""
    ref = selects.refs.new("$window")
    if window.kind == "SESSION":
        if relation.sign is not None:
            raise InvalidRequest(
                "SESSION over rows that change is not supported: a row that is taken back may part a "
                "session.",
                "TUMBLE, HOP and CUMULATE are.",
            )
        return relation, ref
    if relation.sign is not None and window.time.type == TIMESTAMP:
        moment = selects.refs.new("$event")
        kept = [attribute.ref for _, attribute in relation.scope.columns]
        made = Typed(f"CAST({quote(window.event)} AS timestamp)", TIMESTAMP_LTZ)
        relation = replace(relation, operator=ProjectRows(relation.operator, kept, [(moment, made)]))
        window = replace(window, event=moment)
    operator = AssignWindows(
        relation.operator,
        window.kind,
        window.event,
        window.size_ms,
        window.step_ms,
        window.start_ms,
        ref,
        window.delay_ms,
    )
    return replace(relation, operator=operator), ref


def window_attributes(selects: Selects, window: WindowSpec, ref: str) -> list[Attribute]:
    """window_start and window_end are TIMESTAMPs, as the session's clock shows them; window_time is of the
    column's own type."""
    return [
        Attribute(
            "window_start", selects.refs.new("window_start"), TIMESTAMP, False, None, WindowPart(ref, "start")
        ),
        Attribute(
            "window_end", selects.refs.new("window_end"), TIMESTAMP, False, None, WindowPart(ref, "end")
        ),
        Attribute(
            "window_time",
            selects.refs.new("window_time"),
            window.time.type,
            False,
            None,
            WindowPart(ref, "time"),
        ),
    ]


def part_value(attribute: Attribute, ref: str) -> Typed:
    assert attribute.window is not None
    part = "start" if attribute.window.part == "start" else "end"
    less = " - INTERVAL '0.001' SECOND" if attribute.window.part == "time" else ""
    return Typed(f"CAST({quote(ref)}.{part}{less} AS {spark_name(attribute.type)})", attribute.type, False)


def spec(
    selects: Selects,
    relation: Relation,
    kind: str,
    attribute: Attribute,
    spans: list[exp.Expr],
    node: exp.Expr,
) -> WindowSpec:
    """The window that was written, if it makes sense."""
    least, most = _SPANS[kind]
    sizes = [_span_ms(span, kind, node) for span in spans]
    if not least <= len(sizes) <= most:
        refuse(f"{kind} is written {_FORMS[kind]}.", node)
    if not is_time(attribute.type):
        refuse(f"{kind} takes a column of time, and '{attribute.name}' is none.", node)
    offset = sizes[most - 1] if len(sizes) == most and most > least else 0
    step, size = (sizes[0], sizes[0]) if kind in ("TUMBLE", "SESSION") else (sizes[0], sizes[1])
    if size <= 0 or step <= 0:
        refuse(f"{kind} takes a length of time that is more than 0.", node)
    if size % step:
        refuse(f"{kind}: {format_ms(size)} is not a multiple of {format_ms(step)}.", node)
    if relation.sign is not None:
        # Windows of rows that change do not end: they need no watermark.
        found: tuple[str, int] | None = (attribute.ref, 0)
    else:
        found = event_column(relation, attribute, selects.default_delay_ms)
    if found is None:
        remedy = (
            f"{alter_for(attribute)} gives it one."
            if attribute.origin is not None
            else ("It must come from a table as it is, with its WATERMARK.")
        )
        refuse(f"{kind} needs a column with a WATERMARK, and '{attribute.name}' has none.", node, remedy)
    event, delay = found
    start = (offset - _zone_offset(selects.session.zone, step, node)) % step if kind != "SESSION" else 0
    if kind == "CUMULATE":
        start = (offset - _zone_offset(selects.session.zone, size, node)) % size
    return WindowSpec(kind, event, delay, size, step, start, attribute)


def _span_ms(span: exp.Expr, kind: str, node: exp.Expr) -> int:
    if not isinstance(span, exp.Interval):
        refuse(f"{kind} takes INTERVALs.", node, f"It is written {_FORMS[kind]}.")
    size = interval_ms(span)
    if size is None:
        refuse(f"{kind} takes a fixed length of time: months and years have none.", node, "Take DAYs.")
    return size


def _zone_offset(zone: str, size_ms: int, node: exp.Expr) -> int:
    """How far the session's clock is ahead of UTC: windows begin at its hours and days."""
    if zone == "UTC" or _QUARTER_MS % size_ms == 0:
        return 0
    try:
        clock = ZoneInfo(zone)
    except (KeyError, ValueError) as error:
        raise InvalidRequest(
            f"There is no zone '{zone}'.", "Zones are like Europe/Amsterdam, or UTC."
        ) from error
    offsets = {
        int(found.total_seconds() * 1000)
        for year in (1990, 2005, 2015, 2025, 2035)
        for month in (1, 7)
        if (found := datetime(year, month, 1, tzinfo=clock).utcoffset()) is not None
    }
    if len(offsets) == 1:
        return offsets.pop()
    if all((3_600_000 % size_ms == 0 and offset % size_ms == 0) for offset in offsets):
        return 0
    raise refused(
        f"windows of {format_ms(size_ms)} in {zone} are not all of one length: it has summer time.",
        node,
        "SET 'sql.local-time-zone' = 'UTC', or take windows that divide an hour.",
    )
