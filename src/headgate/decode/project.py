"""Decoded records are fitted to the table's columns: by name, widened where exact, never otherwise."""

from pyspark.sql import Column
from pyspark.sql import functions as f
from pyspark.sql import types as t

from headgate.errors import SchemaConflict


def project(record: Column, found: t.StructType, wanted: t.StructType, path: str = "") -> list[Column]:
    """The columns of `wanted` out of the struct `record`; a column that the record lacks is NULL."""
    have = {field.name: field.dataType for field in found.fields}
    return [
        _fit(record[field.name], have[field.name], field.dataType, f"{path}{field.name}").alias(field.name)
        if field.name in have
        else f.lit(None).cast(field.dataType).alias(field.name)
        for field in wanted.fields
    ]


def _fit(value: Column, found: t.DataType, wanted: t.DataType, path: str) -> Column:
    if same_type(found, wanted):
        return value
    match found, wanted:
        case t.StructType(), t.StructType():
            inner = f.struct(*project(value, found, wanted, f"{path}."))
            return f.when(value.isNotNull(), inner)
        case t.ArrayType(), t.ArrayType():
            return f.transform(
                value, lambda item: _fit(item, found.elementType, wanted.elementType, f"{path}[]")
            )
        case t.MapType(), t.MapType():
            return f.transform_values(
                value, lambda _, item: _fit(item, found.valueType, wanted.valueType, f"{path}{{}}")
            )
        case _ if widens(found, wanted):
            return value.cast(wanted)
    raise SchemaConflict(
        f"Field '{path}' is {found.simpleString()} in the topic and {wanted.simpleString()} in the table.",
        "Register a compatible schema, or disable the table with --purge and enable it again.",
    )


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
