"""What the records of an internal topic are: rows as Avro, by position, so that columns may have any name."""

import hashlib
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as f
from pyspark.sql import types as t

from headgate.decode.avro_column import from_avro, to_avro
from headgate.errors import UnsupportedSchema
from headgate.sql.types import quote
from headgate.statements import runnable as r
from headgate.statements.encode import avro_schema

_RECORD = "stage"
# Beside the columns: the time that a row was given, to the microsecond, and what it does.
_ROWTIME, _OP = "rowtime", "op"


@dataclass(frozen=True)
class Codec:
    """The columns of a stage. Every value comes back as it was; that one cannot be NULL is forgotten."""

    columns: t.StructType
    schema: str
    updating: bool

    def encoded(self, found: list[str]) -> Column:
        """The value of a record, from a frame that has the columns `found`."""
        fields = [
            f.col(quote(field.name)).cast(stored(field.dataType)).alias(f"c{number}")
            for number, field in enumerate(self.columns.fields)
            if not _is_nothing(field)
        ]
        time = f.col(quote(r.ROWTIME)) if r.ROWTIME in found else f.lit(None)
        fields.append(time.cast("timestamp").alias(_ROWTIME))
        if self.updating:
            fields.append(f.col(quote(r.OP)).alias(_OP))
        return to_avro(f.struct(*fields), self.schema)

    def decoded(self, value: Column) -> Column:
        """One struct, whose parts the others here name."""
        return from_avro(value, self.schema)

    def column(self, row: str, name: str) -> Column:
        """A column by its name, `$op` included, of what was decoded as `row`."""
        if name == r.OP and self.updating and name not in self.columns.names:
            return f.col(f"{row}.{_OP}").alias(name)
        number = self.columns.names.index(name)
        field = self.columns.fields[number]
        if _is_nothing(field):
            return f.lit(None).alias(name)
        return f.col(f"{row}.c{number}").cast(nullable(field.dataType)).alias(name)

    def rowtime(self, row: str) -> Column:
        return f.col(f"{row}.{_ROWTIME}")

    @property
    def mark(self) -> str:
        """Differs where the records would."""
        return hashlib.sha256(self.schema.encode()).hexdigest()[:16]


def codec_of(stage: r.StageOf) -> Codec:
    """Refuses columns that no record can hold, and keys that are none."""
    columns = stage.runnable.columns
    fields: list[t.StructField] = []
    for number, field in enumerate(columns.fields):
        if _is_nothing(field):
            continue
        here = t.StructField(f"c{number}", stored(field.dataType))
        try:
            avro_schema(t.StructType([here]), _RECORD)
        except UnsupportedSchema as error:
            raise UnsupportedSchema(
                f"Column '{field.name}' is of type {field.dataType.simpleString()}, which cannot pass from "
                "one step of the statement to the next.",
                "Cast it to another type; the keys of a map must be strings.",
            ) from error
        fields.append(here)
    unknown = [name for name in stage.key if name not in columns.names]
    if unknown:
        raise AssertionError(f"{stage.name} has no column {', '.join(unknown)}")
    updating = stage.runnable.changelog == "upsert"
    fields.append(t.StructField(_ROWTIME, t.TimestampType()))
    if updating:
        fields.append(t.StructField(_OP, t.StringType()))
    return Codec(columns, avro_schema(t.StructType(fields), _RECORD), updating)


def stored(kind: t.DataType) -> t.DataType:
    """The type with fields named by their positions, and NULL allowed everywhere."""
    return _renamed(kind, by_position=True)


def nullable(kind: t.DataType) -> t.DataType:
    """The type with NULL allowed everywhere."""
    return _renamed(kind, by_position=False)


def _renamed(kind: t.DataType, by_position: bool) -> t.DataType:
    match kind:
        case t.StructType():
            return t.StructType(
                [
                    t.StructField(
                        f"f{number}" if by_position else field.name, _renamed(field.dataType, by_position)
                    )
                    for number, field in enumerate(kind.fields)
                ]
            )
        case t.ArrayType():
            return t.ArrayType(_renamed(kind.elementType, by_position))
        case t.MapType():
            # The key of a map is no place for a NULL.
            return t.MapType(_renamed(kind.keyType, by_position), _renamed(kind.valueType, by_position))
    return kind


def _is_nothing(field: t.StructField) -> bool:
    """A column that is NULL always, as `SELECT NULL` has one, is in no record."""
    return isinstance(field.dataType, t.NullType)
