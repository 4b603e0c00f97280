"""Topics: their partitions and configuration, and what SQL says of them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from headgate.apply.kinds.kind import Kind, compare_fields
from headgate.apply.model import Change, Difference, Live, Owner, Spec
from headgate.errors import InvalidRequest
from headgate.kafka.topics import check_topic_name
from headgate.sql.durations import format_ms, parse_duration_ms
from headgate.sql.insert import plan_create
from headgate.sql.script import parse_script
from headgate.sql.statements import CreateTable
from headgate.sql.tables import Catalog
from headgate.statements.altering import PARTITIONS
from headgate.statements.declared import MODE, Declared, check_options, declared_by

RECORDS = "all of its records"
# What SQL says of a table, where a CREATE TABLE is there to say it.
_BY_SQL = ("partitions", "watermark", "options")
_FIXED_OPTIONS = ("value.format", "key.format")


def create_of(name: str, text: str) -> CreateTable:
    """The CREATE TABLE of a topic: one, of this name, that is filled by others."""
    script = parse_script(text)
    if len(script) != 1 or not isinstance(create := script[0], CreateTable) or create.query is not None:
        raise InvalidRequest(
            f"The sql of topic '{name}' is one CREATE TABLE without AS.",
            "What fills the topic stands under statements.",
        )
    if create.name != name:
        raise InvalidRequest(
            f"The sql of topic '{name}' creates '{create.name}'.", "Give both the same name."
        )
    return create


def declared_of(name: str, text: str) -> Declared:
    """What a CREATE TABLE declares."""
    create = create_of(name, text)
    check_options(name, create.options)
    made, _ = plan_create(create, Catalog())
    return with_mode(declared_by(create, made))


def with_mode(declared: Declared) -> Declared:
    """What a CREATE TABLE declares, with its mode among its options whether or not it says so."""
    return replace(declared, options={MODE: declared.changelog or "append", **declared.options})


def watermark_of(spec: Spec) -> dict[str, Any] | None:
    mark = spec.get("watermark")
    return None if mark is None else {"column": mark["column"], "delay_ms": parse_duration_ms(mark["delay"])}


def watermark_spec(mark: Mapping[str, Any] | None) -> Any:
    return None if mark is None else {"column": mark["column"], "delay": format_ms(mark["delay_ms"])}


class Topics(Kind):
    name = "topics"
    holds = RECORDS

    def check(self, name: str, spec: Spec) -> None:
        check_topic_name(name)
        if spec.get("sql") is None:
            check_options(name, spec.get("options") or {})
            watermark_of(spec)
            return
        said = [field for field in _BY_SQL if spec.get(field) is not None]
        if said:
            raise InvalidRequest(
                f"Topic '{name}' has sql, which says its {said[0]} too.",
                "Say it in the CREATE TABLE: DISTRIBUTED INTO n BUCKETS, WATERMARK FOR …, WITH (…).",
            )
        declared_of(name, spec["sql"])

    def difference(self, name: str, spec: Spec, live: Live, owner: Owner | None) -> Difference | None:
        before = owner.spec if owner is not None else {}
        changes = compare_fields(
            spec.get("config") or {}, live.spec.get("config") or {}, before.get("config") or {}, "config."
        )
        there = Declared.from_dict(live.detail["declared"]).to_dict()
        if spec.get("sql") is not None:
            declared, lost = _declared_difference(declared_of(name, spec["sql"]).to_dict(), there)
            changes += declared
        else:
            own, lost = _own_difference(spec, live, before, there)
            changes += own
        return Difference(tuple(changes), lost=RECORDS if lost else "") if changes else None


def _own_difference(
    spec: Spec, live: Live, before: Spec, there: Mapping[str, Any]
) -> tuple[list[Change], bool]:
    """Of a topic whose columns its schema says."""
    changes = compare_fields(
        spec.get("options") or {}, there["options"], before.get("options") or {}, "options."
    )
    wanted = watermark_of(spec)
    if wanted != there["watermark"] and (wanted is not None or before.get("watermark") is not None):
        changes.append(Change("watermark", watermark_spec(there["watermark"]), watermark_spec(wanted)))
    partitions = spec.get("partitions")
    resized = partitions is not None and partitions != live.spec["partitions"]
    if resized:
        changes.append(Change("partitions", live.spec["partitions"], partitions))
    return changes, resized


def _declared_difference(wanted: Mapping[str, Any], there: Mapping[str, Any]) -> tuple[list[Change], bool]:
    """Of a topic whose CREATE TABLE the file has; whether its records cannot stay."""
    changes = compare_fields(wanted["options"], there["options"], there["options"], "options.")
    lost = any(change.field.removeprefix("options.") in _FIXED_OPTIONS for change in changes)
    if wanted["watermark"] != there["watermark"]:
        changes.append(
            Change("watermark", watermark_spec(there["watermark"]), watermark_spec(wanted["watermark"]))
        )
    for field in ("primary_key", "distributed"):
        if (wanted[field] or None) != (there[field] or None):
            changes.append(Change(field, there[field], wanted[field]))
            lost = True
    if (wanted["buckets"] or PARTITIONS) != (there["buckets"] or PARTITIONS):
        changes.append(Change("buckets", there["buckets"], wanted["buckets"]))
        lost = True
    columns = _fields(wanted), _fields(there)
    if columns[0] != columns[1]:
        changes.append(Change("columns", *(_column_text(fields) for fields in reversed(columns))))
        lost = lost or not _only_adds(*columns)
    return changes, lost


def _fields(declared: Mapping[str, Any]) -> list[dict[str, Any]]:
    return list((declared["columns"] or {"fields": []})["fields"])


def _only_adds(wanted: list[dict[str, Any]], there: list[dict[str, Any]]) -> bool:
    return bool(there) and wanted[: len(there)] == there and all(f["nullable"] for f in wanted[len(there) :])


def _column_text(fields: list[dict[str, Any]]) -> str:
    return ", ".join(
        f"{field['name']} {field['type']}{'' if field['nullable'] else ' NOT NULL'}" for field in fields
    )
