"""Tables as an ALTER leaves them, and what their topics are then."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from pyspark.sql import types as t

from headgate.errors import AlreadyExists, InvalidRequest
from headgate.kafka.topics import ANY_TIME, VERSIONS
from headgate.sql import statements as sql
from headgate.sql.durations import parse_duration_ms
from headgate.sql.tables import TableInfo, Watermark
from headgate.statements.declared import (
    FORMATS,
    KEY_FIELDS,
    MODE,
    MODES,
    POLICIES,
    Declared,
    check_options,
    key_fields,
)
from headgate.statements.runnable import Output

PARTITIONS = 4
POLICY, RETENTION = "kafka.cleanup-policy", "kafka.retention.time"
Alter = (
    sql.AlterTableAdd
    | sql.AlterTableModifyWatermark
    | sql.AlterTableDropWatermark
    | sql.AlterTableSet
    | sql.AlterTableReset
)
_KAFKA = {POLICY: "cleanup.policy", RETENTION: "retention.ms"}
_FIXED = ("value.format", "key.format")


def altered(table: TableInfo, one: Alter) -> TableInfo:
    match one:
        case sql.AlterTableAdd():
            taken = {name.lower() for name in table.columns.names}
            for column in one.columns:
                if column.name.lower() in taken:
                    raise AlreadyExists(f"Table '{table.name}' has a column '{column.name}' already.")
            added = [t.StructField(column.name, column.type.spark, True) for column in one.columns]
            return replace(table, columns=t.StructType([*table.columns.fields, *added]))
        case sql.AlterTableModifyWatermark():
            mark = one.watermark
            if mark.column != "$rowtime" and mark.column not in table.columns.names:
                raise InvalidRequest(
                    f"Table '{table.name}' has no column '{mark.column}'.",
                    f"There are {', '.join(table.columns.names)}.",
                )
            return replace(table, watermark=Watermark(mark.column, mark.delay_ms))
        case sql.AlterTableDropWatermark():
            return replace(table, watermark=None)
        case sql.AlterTableSet():
            check_options(table.name, one.options)
            _refuse_fixed(table, one.options)
            _check_key_fields(table, one.options.get(KEY_FIELDS))
            return _with_mode(table, one.options.get(MODE))
        case sql.AlterTableReset():
            _refuse_fixed(table, one.keys)
            if MODE in one.keys:
                raise InvalidRequest(
                    f"Option '{MODE}' of table '{table.name}' has no default to go back to.",
                    f"Say which it is to be: SET ('{MODE}' = '{table.changelog}').",
                )
            return table


def _refuse_fixed(table: TableInfo, keys: Iterable[str]) -> None:
    for key in keys:
        if key in _FIXED:
            raise InvalidRequest(
                f"Option '{key}' of table '{table.name}' cannot be altered: its topic has records in it.",
                "Write another table.",
            )


def _check_key_fields(table: TableInfo, said: str | None) -> None:
    named = () if said is None else key_fields(said)
    unknown = [column for column in named if column not in table.columns.names]
    if said is not None and (unknown or not named):
        raise InvalidRequest(
            f"Option '{KEY_FIELDS}' of table '{table.name}' names '{(unknown or [said])[0]}', which is no "
            "column.",
            f"Name columns of the records' keys, with ; between them: {', '.join(table.columns.names)}.",
        )


def _with_mode(table: TableInfo, mode: str | None) -> TableInfo:
    if mode == "upsert" and not table.primary_key:
        raise InvalidRequest(
            f"Table '{table.name}' cannot be 'upsert': it has no primary key.",
            "Write another table, with PRIMARY KEY (…) NOT ENFORCED.",
        )
    return table if mode is None else replace(table, changelog=MODES[mode])


def mode_warnings(before: TableInfo, after: TableInfo) -> tuple[str, ...]:
    """What readers see from now on of records that were written for other ones."""
    said = {
        ("retract", "append"): "each record is a row from now on, those that take a row back too",
        ("retract", "upsert"): "each record is the row of its key from now on, those that take it back too",
        ("upsert", "append"): "each record is a row from now on; those that only delete are left out",
    }.get((before.changelog, after.changelog))
    return () if said is None else (f"Table '{after.name}': {said}.",)


def declared_after(declared: Declared, table: TableInfo, one: Alter) -> Declared:
    """What is declared of a table that was altered."""
    match one:
        case sql.AlterTableAdd():
            return replace(declared, columns=table.columns)
        case sql.AlterTableModifyWatermark() | sql.AlterTableDropWatermark():
            return replace(declared, watermark=table.watermark)
        case sql.AlterTableSet():
            options = {**declared.options, **one.options}
            return replace(declared, options=options, changelog=table.changelog)
        case sql.AlterTableReset():
            kept = {key: value for key, value in declared.options.items() if key not in one.keys}
            return replace(declared, options=kept)


def topic_changes(one: Alter) -> dict[str, str | None]:
    """What an ALTER changes of the topic's own configuration; None is the broker's default."""
    if isinstance(one, sql.AlterTableSet):
        return dict(kafka_options(one.options))
    if isinstance(one, sql.AlterTableReset):
        return {kafka: None for key, kafka in _KAFKA.items() if key in one.keys}
    return {}


def output_of(table: TableInfo, declared: Declared) -> Output:
    said = declared.options.get("value.format", "avro-registry")
    return Output(
        table.name,
        table.columns,
        table.primary_key or declared.distributed,
        table.changelog,
        "json" if FORMATS[said] == "json" else "avro",
        declared.buckets or PARTITIONS,
    )


def topic_config(table: TableInfo, options: Mapping[str, str]) -> dict[str, str]:
    default = VERSIONS if table.changelog == "upsert" else {"cleanup.policy": "delete", **ANY_TIME}
    return {**default, **kafka_options(options)}


def kafka_options(options: Mapping[str, str]) -> dict[str, str]:
    found = {}
    if (policy := options.get(POLICY)) is not None:
        found[_KAFKA[POLICY]] = POLICIES[policy]
    if (kept := options.get(RETENTION)) is not None:
        found[_KAFKA[RETENTION]] = str(parse_duration_ms(kept) or -1)
    return found
