"""Decoded records are fitted to the table's columns: by name, widened where exact; narrowed where a reader's
columns stay as they are, and then only values that fit."""

from collections.abc import Iterator, Mapping

from pyspark.sql import Column
from pyspark.sql import functions as f
from pyspark.sql import types as t

from headgate.errors import SchemaConflict


def project(
    record: Column,
    found: t.StructType,
    wanted: t.StructType,
    names: Mapping[str, str],
    path: str = "",
    narrow: bool = False,
) -> list[Column]:
    """The columns of `wanted` out of the struct `record`; a column that the record lacks is NULL.

    `names` has, by path, the column of each field whose column is called otherwise. With `narrow`, values of
    a wider type are cast too; that they fit is for `misfit` to say.
    """
    have = {names.get(f"{path}{field.name}", field.name): field for field in found.fields}
    return [
        _fit(
            record[have[field.name].name],
            have[field.name].dataType,
            field.dataType,
            names,
            f"{path}{have[field.name].name}",
            narrow,
        ).alias(field.name)
        if field.name in have
        else f.lit(None).cast(field.dataType).alias(field.name)
        for field in wanted.fields
    ]


def _fit(
    value: Column, found: t.DataType, wanted: t.DataType, names: Mapping[str, str], path: str, narrow: bool
) -> Column:
    if same_type(found, wanted) and not any(name.startswith(path) for name in names):
        return value
    match found, wanted:
        case t.StructType(), t.StructType():
            inner = f.struct(*project(value, found, wanted, names, f"{path}.", narrow))
            return f.when(value.isNotNull(), inner)
        case t.ArrayType(), t.ArrayType():
            items = found.elementType, wanted.elementType
            return f.transform(value, lambda item: _fit(item, *items, names, f"{path}[]", narrow))
        case t.MapType(), t.MapType():
            values = found.valueType, wanted.valueType
            return f.transform_values(
                value, lambda _, item: _fit(item, *values, names, f"{path}{{}}", narrow)
            )
        case _ if same_type(found, wanted):
            return value
        case _ if widens(found, wanted):
            return value.cast(wanted)
        case _ if narrow and widens(wanted, found):
            return value.try_cast(wanted)
    raise SchemaConflict(
        f"Field '{path}' is {found.simpleString()} in the topic and {wanted.simpleString()} in the table.",
        "Register a compatible schema, or disable the table with --purge and enable it again.",
    )


def misfit(
    record: Column,
    found: t.StructType,
    wanted: t.StructType,
    names: Mapping[str, str],
    path: str = "",
    shown: str = "",
) -> Column | None:
    """What is wrong with the first value of the struct `record` that its narrower column cannot hold, as a
    text that completes 'the record …'; NULL where all fit. None where no column is narrower than its field.

    The text names the column, and not the value: who reads errors need not be who may read columns.
    """
    columns = {field.name: field.dataType for field in wanted.fields}
    texts: list[Column] = []
    for field in found.fields:
        here, name = f"{path}{field.name}", names.get(f"{path}{field.name}", field.name)
        if name in columns:
            kinds = field.dataType, columns[name]
            text = _misfit(record[field.name], *kinds, names, here, f"{shown}{name}")
            texts += [] if text is None else [text]
    return f.coalesce(*texts) if texts else None


def _misfit(
    value: Column, found: t.DataType, wanted: t.DataType, names: Mapping[str, str], path: str, shown: str
) -> Column | None:
    match found, wanted:
        case t.StructType(), t.StructType():
            return misfit(value, found, wanted, names, f"{path}.", f"{shown}.")
        case t.ArrayType(), t.ArrayType():
            kinds = found.elementType, wanted.elementType
            return _first_misfit(value, *kinds, names, f"{path}[]", f"{shown}[]")
        case t.MapType(), t.MapType():
            kinds = found.valueType, wanted.valueType
            return _first_misfit(f.map_values(value), *kinds, names, f"{path}{{}}", f"{shown}{{}}")
        case _ if is_narrowed(found, wanted, names):
            # A DOUBLE fits a FLOAT where it is the same number, a NaN included.
            fits = value.try_cast(wanted).cast(found).eqNullSafe(value)
            kind = wanted.simpleString().upper()
            return f.when(~fits, f"has a value that does not fit column '{shown}', which is {kind}")
    return None


def _first_misfit(
    values: Column, found: t.DataType, wanted: t.DataType, names: Mapping[str, str], path: str, shown: str
) -> Column | None:
    if not is_narrowed(found, wanted, names, path):
        return None

    def text(item: Column) -> Column:
        said = _misfit(item, found, wanted, names, path, shown)
        assert said is not None
        return said

    texts = f.filter(f.transform(values, text), lambda said: said.isNotNull())
    return f.try_element_at(texts, f.lit(1))


def is_narrowed(found: t.DataType, wanted: t.DataType, names: Mapping[str, str], path: str = "") -> bool:
    """Whether some value of `found` has a column of `wanted` whose type is narrower."""
    match found, wanted:
        case t.StructType(), t.StructType():
            columns = {field.name: field.dataType for field in wanted.fields}
            dot = f"{path}." if path else ""
            return any(
                is_narrowed(field.dataType, columns[name], names, f"{dot}{field.name}")
                for field in found.fields
                if (name := names.get(f"{dot}{field.name}", field.name)) in columns
            )
        case t.ArrayType(), t.ArrayType():
            return is_narrowed(found.elementType, wanted.elementType, names, f"{path}[]")
        case t.MapType(), t.MapType():
            return is_narrowed(found.valueType, wanted.valueType, names, f"{path}{{}}")
    return found != wanted and widens(wanted, found)


def is_castable(found: t.DataType, wanted: t.DataType) -> bool:
    """Whether each field of `found` has the type of its column, or one that is wider or narrower."""
    match found, wanted:
        case t.StructType(), t.StructType():
            columns = {field.name: field.dataType for field in wanted.fields}
            return all(
                is_castable(field.dataType, columns[field.name])
                for field in found.fields
                if field.name in columns
            )
        case t.ArrayType(), t.ArrayType():
            return is_castable(found.elementType, wanted.elementType)
        case t.MapType(), t.MapType():
            return is_castable(found.valueType, wanted.valueType)
    return same_type(found, wanted) or widens(found, wanted) or widens(wanted, found)


def renamed(found: t.DataType, names: Mapping[str, str], path: str = "") -> t.DataType:
    """The type with the names that its fields have in the table."""
    match found:
        case t.StructType():
            return t.StructType(
                [
                    t.StructField(
                        names.get(f"{path}{field.name}", field.name),
                        renamed(field.dataType, names, f"{path}{field.name}" + _inside(field.dataType)),
                    )
                    for field in found.fields
                ]
            )
        case t.ArrayType():
            return t.ArrayType(renamed(found.elementType, names, f"{path}[]" + _inside(found.elementType)))
        case t.MapType():
            inner = renamed(found.valueType, names, f"{path}{{}}" + _inside(found.valueType))
            return t.MapType(found.keyType, inner)
    return found


def _inside(kind: t.DataType) -> str:
    """Between a path and the fields of what it leads to."""
    return "." if isinstance(kind, t.StructType) else ""


def paths(found: t.DataType, path: str = "") -> Iterator[str]:
    """The paths of all fields: `address`, `address.street`, `lines[].price`, `prices{}.amount`."""
    match found:
        case t.StructType():
            for field in found.fields:
                here = f"{path}{field.name}"
                yield here
                yield from paths(field.dataType, here + _inside(field.dataType))
        case t.ArrayType():
            yield from paths(found.elementType, f"{path}[]" + _inside(found.elementType))
        case t.MapType():
            yield from paths(found.valueType, f"{path}{{}}" + _inside(found.valueType))


def fits(found: t.DataType, wanted: t.DataType) -> bool:
    """Whether records of `found` lose nothing in a table of `wanted`: no field is missing, none narrower."""
    match found, wanted:
        case t.StructType(), t.StructType():
            have = {field.name: field.dataType for field in wanted.fields}
            return all(name in have and fits(found[name].dataType, have[name]) for name in found.names)
        case t.ArrayType(), t.ArrayType():
            return fits(found.elementType, wanted.elementType)
        case t.MapType(), t.MapType():
            return fits(found.valueType, wanted.valueType)
    return found == wanted or widens(found, wanted)


def widened(found: t.DataType, columns: t.DataType, path: str = "") -> Iterator[str]:
    """The columns that become wider to hold `found`, each with its types: `n: int to bigint`."""
    match found, columns:
        case t.StructType(), t.StructType():
            have = {field.name: field.dataType for field in columns.fields}
            for field in found.fields:
                if field.name in have:
                    here = f"{path}{field.name}" + _inside(field.dataType)
                    yield from widened(field.dataType, have[field.name], here)
        case t.ArrayType(), t.ArrayType():
            inside = f"{path}[]" + _inside(found.elementType)
            yield from widened(found.elementType, columns.elementType, inside)
        case t.MapType(), t.MapType():
            inside = f"{path}{{}}" + _inside(found.valueType)
            yield from widened(found.valueType, columns.valueType, inside)
        case _ if found != columns and widens(columns, found):
            yield f"{path}: {columns.simpleString()} to {found.simpleString()}"


def case_conflict(found: t.DataType, wanted: t.DataType, path: str = "") -> str | None:
    """The path of a field of `found` that differs only by case from one of `wanted`: no reader takes both."""
    match found, wanted:
        case t.StructType(), t.StructType():
            have = {field.name.lower(): field for field in wanted.fields}
            for field in found.fields:
                other = have.get(field.name.lower())
                if other is not None and other.name != field.name:
                    return f"{path}{field.name}"
                if other is not None:
                    inner = case_conflict(field.dataType, other.dataType, f"{path}{field.name}.")
                    if inner is not None:
                        return inner
        case t.ArrayType(), t.ArrayType():
            return case_conflict(found.elementType, wanted.elementType, path)
        case t.MapType(), t.MapType():
            return case_conflict(found.valueType, wanted.valueType, path)
    return None


def widens(found: t.DataType, wanted: t.DataType) -> bool:
    """Whether every value of `found` is the same value in `wanted`."""
    match found, wanted:
        case (t.IntegerType(), t.LongType()) | (t.FloatType(), t.DoubleType()):
            return True
        case t.DecimalType(), t.DecimalType():
            return found.scale == wanted.scale and found.precision <= wanted.precision
    return False


def same_type(found: t.DataType, wanted: t.DataType) -> bool:
    """Equal types, whatever is said of nulls."""
    match found, wanted:
        case t.StructType(), t.StructType():
            return found.names == wanted.names and all(
                same_type(a.dataType, b.dataType) for a, b in zip(found.fields, wanted.fields, strict=True)
            )
        case t.ArrayType(), t.ArrayType():
            return same_type(found.elementType, wanted.elementType)
        case t.MapType(), t.MapType():
            return same_type(found.keyType, wanted.keyType) and same_type(found.valueType, wanted.valueType)
    return found == wanted
