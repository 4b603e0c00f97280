"""Text is UTF-8. Avro does not check it, and one bad string makes a file unreadable to other engines."""

from functools import reduce
from operator import and_

from pyspark.sql import Column
from pyspark.sql import functions as f
from pyspark.sql import types as t


def is_text_valid(value: Column, kind: t.DataType) -> Column | None:
    """Whether every string in `value`, at any depth, is UTF-8; None if there can be no string in it."""
    match kind:
        case t.StringType():
            return f.coalesce(f.is_valid_utf8(value), f.lit(True))
        case t.StructType():
            found = (is_text_valid(value[field.name], field.dataType) for field in kind.fields)
            checks = [check for check in found if check is not None]
            return reduce(and_, checks) if checks else None
        case t.ArrayType() if _has_text(kind.elementType):
            return f.coalesce(f.forall(value, lambda item: _check(item, kind.elementType)), f.lit(True))
        case t.MapType():
            entry = t.StructType([t.StructField("key", kind.keyType), t.StructField("value", kind.valueType)])
            return f.coalesce(f.forall(f.map_entries(value), lambda item: _check(item, entry)), f.lit(True))
    return None


def _check(value: Column, kind: t.DataType) -> Column:
    found = is_text_valid(value, kind)
    return f.lit(True) if found is None else found


def _has_text(kind: t.DataType) -> bool:
    match kind:
        case t.StringType() | t.MapType():
            return True
        case t.StructType():
            return any(_has_text(field.dataType) for field in kind.fields)
        case t.ArrayType():
            return _has_text(kind.elementType)
    return False
