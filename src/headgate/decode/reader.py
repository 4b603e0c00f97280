"""What every format is to the rest: bytes of one schema in, a record of columns out, inside Spark."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import MappingProxyType

from pyspark.sql import Column
from pyspark.sql import types as t


class Reader(ABC):
    """Reads what was written with one schema.

    Spark evaluates an expression anew wherever it stands. So the costly part, `raw`, is put into a column of
    its own, once, and the other expressions are made from that column.

    `body` is the message without its framing (magic byte, schema id, message indexes). It is NULL in rows
    that are not this reader's; whatever the expressions say there is not looked at, but they must not raise.
    They never raise for any bytes at all: bytes that do not fit are a problem of that record, not of its job.
    """

    #: The columns of a record. All of them can be NULL, at every depth.
    type: t.StructType
    #: The full name of the record type, where the format has one.
    record_name: str | None = None
    #: Former names of fields, by the path that Iceberg has (`address.street`, `lines.element.price`):
    #: a table's column of that name is it.
    former_names: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    #: Where fields are known by numbers, the number of each, by path: a field keeps it under another name.
    field_numbers: Mapping[str, int] = MappingProxyType({})

    @abstractmethod
    def raw(self, body: Column) -> Column:
        """The decoded message in whatever type suits the format."""

    @abstractmethod
    def is_exact(self, raw: Column, body: Column) -> Column:
        """True, never NULL, where the bytes are a whole message and `value` has exactly what it says."""

    @abstractmethod
    def value(self, raw: Column) -> Column:
        """A struct of `type`; for rows where `is_exact` holds."""

    def field(self, raw: Column, *path: str) -> Column:
        """One field of `value`, in an expression that need not have all the others in it."""
        found = self.value(raw)
        for name in path:
            found = found[name]
        return found

    def problem(self, raw: Column, body: Column) -> Column | None:
        """For rows where `is_exact` does not hold: why, as a short text that completes 'the record …';
        None where there is no more to say than that the bytes do not fit their schema."""
        return None
