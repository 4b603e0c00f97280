"""The columns of an export: nested ones made flat, and what is said of them compared with what there is."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from headgate.errors import InvalidRequest
from headgate.export.definition import ExportOptions

_VARIANT = b"variant"


@dataclass(frozen=True)
class Column:
    """A column that leaves: where it stands in the rows of the query, its name, and its type there."""

    path: tuple[str, ...]
    name: str
    type: pa.DataType

    @property
    def is_text(self) -> bool:
        return bool(pa.types.is_string(self.type) or pa.types.is_large_string(self.type))


def flat_columns(schema: pa.Schema) -> list[Column]:
    """The columns of a query, structs replaced by their fields: `a.b` becomes `a_b`."""
    columns = [column for field in schema for column in _flat(field, ())]
    doubled = [name for name, count in Counter(column.name for column in columns).items() if count > 1]
    if doubled:
        raise InvalidRequest(
            f"The query has more than one column '{doubled[0]}', once structs are flat.",
            "Give each a name of its own with AS.",
        )
    return columns


def _flat(field: pa.Field, above: tuple[str, ...]) -> Iterator[Column]:
    path = (*above, field.name)
    kind = field.type
    if pa.types.is_struct(kind) and not _is_variant(field):
        for inner in kind:
            yield from _flat(inner, path)
        return
    _check_type(kind, ".".join(path), _is_variant(field))
    yield Column(path, "_".join(path), kind)


def _is_variant(field: pa.Field) -> bool:
    if not pa.types.is_struct(field.type):
        return False
    return any(_VARIANT in (inner.metadata or {}) for inner in field.type)


def _check_type(kind: pa.DataType, name: str, is_variant: bool) -> None:
    if is_variant or pa.types.is_map(kind):
        what = "a VARIANT" if is_variant else "a MAP"
        raise InvalidRequest(
            f"Column '{name}' is {what}, which has no order and no place in a row.",
            f"Select to_json({name}) AS {name.split('.')[-1]}, or fields of it.",
        )
    simple = (
        pa.types.is_boolean,
        pa.types.is_integer,
        pa.types.is_floating,
        pa.types.is_decimal,
        pa.types.is_string,
        pa.types.is_large_string,
        pa.types.is_binary,
        pa.types.is_large_binary,
        pa.types.is_date,
        pa.types.is_timestamp,
    )
    if pa.types.is_list(kind):
        for inner in _fields_within(kind):
            _check_type(inner.type, name, _is_variant(inner))
    elif not any(is_it(kind) for is_it in simple):
        raise InvalidRequest(
            f"Column '{name}' is of type {kind}, which cannot be exported.",
            f"CAST({name} AS STRING), or leave it out.",
        )


def _fields_within(kind: pa.DataType) -> Iterator[pa.Field]:
    """The fields of an array's elements."""
    inner = kind.value_field
    if pa.types.is_struct(inner.type) and not _is_variant(inner):
        yield from inner.type
    else:
        yield inner


def check_columns(columns: Sequence[Column], options: ExportOptions) -> None:
    """What is said of columns must be about columns that are there; what is personal leaves masked."""
    names = [column.name for column in columns]
    said = {"masks": options.masks, "personal": options.personal, "order_by": options.order_by}
    for where, mentioned in {**said, "columns": options.columns or ()}.items():
        for name in mentioned:
            if name not in names:
                raise InvalidRequest(
                    f"{where} names column '{name}', which the query does not give.",
                    f"It gives {', '.join(names)}.",
                )
    allowed = names if options.columns is None else options.columns
    if extra := [name for name in names if name not in allowed]:
        raise InvalidRequest(
            f"The query gives {_listed(extra)}, which may not leave: `columns` does not name it.",
            "Take it out of the query, or name it under `columns`.",
        )
    if options.format == "csv" and len(columns) == 1 and not options.csv.null:
        raise InvalidRequest(
            "A NULL in the only column would be an empty line, which readers leave out.",
            "Say what stands for it: `csv: {null: ...}`.",
        )
    if bare := [name for name in options.personal if name not in options.masks]:
        raise InvalidRequest(
            f"{_listed(bare)} is personal and would leave unmasked.",
            "Name how it is hidden under `masks`, or take it out of the query.",
        )


def ordering(columns: Sequence[Column], order_by: Sequence[str]) -> list[str]:
    """All columns, those of `order_by` first: rows that are equal in all of them are the same text."""
    return list(dict.fromkeys([*order_by, *(column.name for column in columns)]))


def has_fractions(columns: Sequence[Column]) -> bool:
    return any(pa.types.is_floating(column.type) for column in columns)


def _listed(names: Sequence[str]) -> str:
    return f"column{'s' if len(names) > 1 else ''} {', '.join(repr(name) for name in names)}"
