"""Where rows go: INSERT INTO and CREATE TABLE … AS, with columns matched, types checked and NULLs caught."""

import re
from dataclasses import replace

from pyspark.sql.types import NullType, StructField, StructType

from headgate.errors import InvalidRequest
from headgate.sql.changes import one_of_each, rekeyed, written_out
from headgate.sql.planner import Options, Plan, Planned, check_names, finish, planned
from headgate.sql.relation import Relation
from headgate.sql.statements import CreateTable, InsertInto, Query
from headgate.sql.tables import Changelog, TableInfo, Tables, Watermark
from headgate.sql.typed import Typed, null
from headgate.sql.types import assignable, is_time, name_of, quote, spark_name, text

# The clock and the dice, as Spark writes them.
_CHANCE = re.compile(
    r"\b(current_timestamp|localtimestamp|current_date|unix_timestamp|now|rand|randn|random|uuid|shuffle)\("
    r"(?=\)|\d*\))"
)
# A text of Spark's SQL: what stands in it is not called.
_TEXT = re.compile(r"'(?:[^'\\]|\\.)*'")
MODES: tuple[Changelog, ...] = ("append", "upsert", "retract")


def plan_insert(
    insert: InsertInto, target: TableInfo, tables: Tables, options: Options | None = None
) -> Plan:
    """The plan of INSERT INTO: its columns are the table's, in the table's order."""
    options = options or Options()
    if _replaces(target):
        made = _with_replacement(insert.query, tables, options, target, insert.columns)
        if made is not None:
            return made
    found = planned(insert.query, tables, options, target.by_key)
    return _into(found, target, insert.columns, options)


def _replaces(target: TableInfo) -> bool:
    return target.changelog == "upsert" and bool(target.primary_key)


def _with_replacement(
    query: Query, tables: Tables, options: Options, target: TableInfo, listed: tuple[str, ...]
) -> Plan | None:
    """The plan in which a first row of a key is replaced when a lesser one comes, if the query has such and
    its keys are those of the table."""
    try:
        found = planned(query, tables, options, True, replaceable=True)
        if not found.selects.replaced or found.relation.changelog != "upsert":
            return None
        names = _names(_match(found, target, listed), target)
        key = {names.get(ref) for ref in found.relation.key}
        return _into(found, target, listed, options) if key == set(target.primary_key) else None
    except InvalidRequest:
        # As rows that do not change it may do; else that plan says what is wrong.
        return None


def plan_create(
    create: CreateTable, tables: Tables, options: Options | None = None
) -> tuple[TableInfo, Plan | None]:
    """The table that CREATE TABLE makes, and the plan that fills it if there is AS."""
    options = options or Options()
    if create.query is None:
        return _table(create, StructType([_field(create, c.name) for c in create.columns])), None
    by_key = bool(create.primary_key) and changelog_of(create) != "append"
    found = planned(create.query, tables, options, by_key)
    if create.columns:
        columns = StructType([_field(create, c.name) for c in create.columns])
    else:
        check_names([name for name, _ in found.columns])
        columns = StructType([_typed_field(create, name, value) for name, value in found.columns])
    target = _table(create, columns)
    if _replaces(target):
        made = _with_replacement(create.query, tables, options, target, ())
        if made is not None:
            return target, made
    return target, _into(found, target, (), options)


def _field(create: CreateTable, name: str) -> StructField:
    column = next(c for c in create.columns if c.name == name)
    return StructField(name, column.type.spark, column.nullable and name not in create.primary_key)


def _typed_field(create: CreateTable, name: str, value: Typed) -> StructField:
    if isinstance(value.type, NullType):
        raise InvalidRequest(f"Column '{name}' is NULL and has no type.", "Write CAST(NULL AS STRING).")
    return StructField(name, value.type, value.nullable and name not in create.primary_key)


def _table(create: CreateTable, columns: StructType) -> TableInfo:
    def known(name: str, what: str) -> None:
        if name not in columns.names:
            raise InvalidRequest(
                f"{what} of table '{create.name}' names '{name}', which is no column.",
                f"There are {', '.join(columns.names)}.",
            )

    for name in create.primary_key:
        known(name, "PRIMARY KEY")
    for name in create.distribution.columns if create.distribution is not None else ():
        known(name, "DISTRIBUTED BY")
    watermark = None
    if create.watermark is not None:
        if create.watermark.column != "$rowtime":
            known(create.watermark.column, "WATERMARK")
            kind = columns[create.watermark.column].dataType
            if not is_time(kind):
                raise InvalidRequest(
                    f"WATERMARK is on '{create.watermark.column}', which is {name_of(kind)}.",
                    "It must be TIMESTAMP or TIMESTAMP_LTZ.",
                )
        watermark = Watermark(create.watermark.column, create.watermark.delay_ms)
    return TableInfo(create.name, columns, create.primary_key, changelog_of(create), watermark)


def changelog_of(create: CreateTable) -> Changelog:
    """As `changelog.mode` says; else by whether there is a key."""
    said = create.options.get("changelog.mode")
    if said is None:
        return "upsert" if create.primary_key else "append"
    if said not in MODES:
        raise InvalidRequest(
            f"Option 'changelog.mode' is '{said}'.", "It is 'append', 'upsert' or 'retract'."
        )
    if said == "upsert" and not create.primary_key:
        raise InvalidRequest(
            f"Table '{create.name}' is to be an upsert table and has no key.",
            "Add PRIMARY KEY (…) NOT ENFORCED.",
        )
    return next(mode for mode in MODES if mode == said)


def _into(found: Planned, target: TableInfo, listed: tuple[str, ...], options: Options) -> Plan:
    if found.limit is not None:
        raise InvalidRequest("LIMIT has no place in a statement that runs for ever.", "Leave it out.")
    matched = _match(found, target, listed)
    relation = _fitting(found, matched, target)
    columns: list[tuple[str, Typed]] = []
    for field in target.columns.fields:
        value = matched.get(field.name) or null(field.dataType)
        if not assignable(value.type, field.dataType):
            raise InvalidRequest(
                f"Column '{field.name}' of table '{target.name}' is {name_of(field.dataType)}, the "
                f"query gives "
                f"{name_of(value.type)}.",
                f"Write CAST(… AS {name_of(field.dataType)}).",
            )
        attribute = value.attribute
        stored = value.cast(field.dataType)
        must = not field.nullable or field.name in target.primary_key
        if must and stored.nullable:
            stored = _checked(stored, field.name, target, relation)
        columns.append((field.name, replace(stored, attribute=attribute)))
    made = finish(relation, columns, options, found.warnings)
    if options.bounded:
        _refuse_chance(made)
    return made


def _refuse_chance(plan: Plan) -> None:
    """What ends may have to be computed again after a crash, and is the same then."""
    found = next(
        (said for value in plan.values if (said := _CHANCE.search(_TEXT.sub("''", value.sql)))), None
    )
    if found is not None:
        raise InvalidRequest(
            f"{found[1].upper()} gives something else each time, and a statement that ends has one result: "
            "that of its topics.",
            "Take a column of time, such as `$rowtime`; or let the statement run: RESET 'sql.snapshot.mode'.",
        )


def _match(found: Planned, target: TableInfo, listed: tuple[str, ...]) -> dict[str, Typed]:
    """Values by the table's columns: as listed; else by name when the names are the table's, else by
    position."""
    columns, names = found.columns, target.columns.names
    if listed:
        unknown = [name for name in listed if name not in names]
        if unknown:
            raise InvalidRequest(
                f"Table '{target.name}' has no column '{unknown[0]}'.", f"There are {', '.join(names)}."
            )
        check_names(list(listed))
        wanted: list[str] = list(listed)
    elif sorted(name for name, _ in columns) == sorted(names):
        given = [name for name, _ in columns]
        if given != names:
            found.selects.warn(
                f"The columns of the query ({', '.join(given)}) have the names of the columns of table "
                f"'{target.name}' ({', '.join(names)}), in another order: they go by name, not by position. "
                "Columns after the table's name say which goes where: INSERT INTO t (a, b) SELECT …."
            )
        return dict(columns)
    else:
        wanted = names
    if len(wanted) != len(columns):
        raise InvalidRequest(
            f"The query has {len(columns)} columns ({', '.join(name for name, _ in columns)}), and "
            f"{len(wanted)} are to be "
            f"filled in table '{target.name}' ({', '.join(wanted)}).",
            "Name the columns after the table's name, or give the query's columns the same names.",
        )
    return {name: value for name, (_, value) in zip(wanted, columns, strict=True)}


def _checked(value: Typed, name: str, target: TableInfo, relation: Relation) -> Typed:
    """The value, or an error that says which record had none."""
    message = text(f"column '{name}' of table '{target.name}' is NOT NULL, and a row has NULL")
    if len(relation.coordinates) in (2, 3):
        partition, offset = (quote(ref) for ref in relation.coordinates[:2])
        message = f"concat({message}, ': partition ', {partition}, ', offset ', {offset})"
    # A delete has nothing but its key; a row that is taken back was there whole.
    deletes = relation.op is not None and relation.sign is None
    only = f" AND {quote(relation.op or '')} = 'u'" if deletes and name not in target.primary_key else ""
    kind = spark_name(value.type)
    sql = (
        f"CASE WHEN {value.sql} IS NULL{only} THEN CAST(raise_error({message}) AS {kind}) ELSE "
        f"{value.sql} END"
    )
    return replace(value, sql=sql, nullable=bool(only))


def _fitting(found: Planned, matched: dict[str, Typed], target: TableInfo) -> Relation:
    """The rows of the query as the table takes them."""
    relation = found.relation
    if relation.changelog == "append":
        return relation
    if target.changelog == "append":
        raise InvalidRequest(
            f"The rows of this query change, and table '{target.name}' is append-only.",
            "Declare PRIMARY KEY (…) NOT ENFORCED with 'changelog.mode' = 'upsert', say "
            "'changelog.mode' = 'retract', or group by a window. After-images of Debezium's events are rows "
            "that do not change: ALTER TABLE … SET ('changelog.mode' = 'append').",
        )
    if relation.changelog == "retract":
        if target.primary_key:
            raise InvalidRequest(
                f"The rows of this query have no key, and those of table '{target.name}' are told by "
                f"({', '.join(target.primary_key)}).",
                "Declare the key of the table that is read; or write a retract table without one.",
            )
        return relation
    if target.primary_key:
        relation = _by_key(found, matched, target)
    return written_out(found.selects, relation) if target.changelog == "retract" else relation


def _names(matched: dict[str, Typed], target: TableInfo) -> dict[str, str]:
    """The table's columns by those of the query that go there as they are."""
    # A column may go to several; the one of the key counts.
    own = sorted(matched.items(), key=lambda one: one[0] in target.primary_key)
    return {value.attribute.ref: name for name, value in own if value.attribute is not None}


def _by_key(found: Planned, matched: dict[str, Typed], target: TableInfo) -> Relation:
    """Rows that change by a key need a table that is told by the same one, or by a part of it."""
    relation = found.relation
    names = _names(matched, target)
    key = [names.get(ref) for ref in relation.key]
    if not key:
        raise InvalidRequest(
            f"The query has one row that changes, without a key; table '{target.name}' is told by "
            f"({', '.join(target.primary_key)}).",
            "Add GROUP BY.",
        )
    if set(key) == set(target.primary_key):
        return relation
    if None not in key and set(target.primary_key) < set(key):
        wanted = [ref for ref in relation.key if names.get(ref) in target.primary_key]
        return one_of_each(found.selects, relation, wanted)
    wanted = [
        value.attribute.ref
        for name, value in matched.items()
        if name in target.primary_key and value.attribute is not None
    ]
    if _is_of_a_table(relation) and len(wanted) == len(target.primary_key):
        return rekeyed(found.selects, relation, wanted)
    shown = ", ".join(name or "a column that it does not give" for name in key)
    raise InvalidRequest(
        f"Rows of the query replace each other by ({shown}), those of table '{target.name}' by "
        f"({', '.join(target.primary_key)}).",
        "Make the PRIMARY KEY the columns of GROUP BY, or of PARTITION BY.",
    )


def _is_of_a_table(relation: Relation) -> bool:
    """Whether each row is one of a table, with that table's key: it says which row it is, whatever other key
    somebody wants."""
    attributes = {a.ref: a for _, a in relation.scope.columns}
    known = [attributes[ref].origin if ref in attributes else None for ref in relation.key]
    origins = [origin for origin in known if origin is not None]
    if not origins or len(origins) < len(known):
        return False
    table = origins[0].scan.table
    return {origin.column for origin in origins} == set(table.primary_key)
