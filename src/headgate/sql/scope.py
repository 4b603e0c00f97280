"""Names: which column a word means, at a place in a query."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pyspark.sql.types import DataType

from headgate.errors import InvalidRequest

if TYPE_CHECKING:
    from headgate.sql.operators import ScanRows


@dataclass(frozen=True)
class Origin:
    """A column of a table, passed on as it is."""

    scan: "ScanRows"
    column: str


@dataclass(frozen=True)
class WindowPart:
    """What of a window a column is; `ref` is the column with the whole window, a struct of start and end."""

    ref: str
    part: Literal["start", "end", "time"]


@dataclass(frozen=True)
class Attribute:
    """A column in a plan. `ref` is its name there, like no other's; `name` is what the query calls it."""

    name: str
    ref: str
    type: DataType
    nullable: bool = True
    origin: Origin | None = None
    window: WindowPart | None = None
    # Found by name, but not part of `*`: the system's columns.
    hidden: bool = False


@dataclass(frozen=True)
class Scope:
    """The columns that a place sees, each with the alias of its table."""

    columns: tuple[tuple[str, Attribute], ...]

    def find(self, name: str, table: str | None = None) -> Attribute | None:
        """The column of this name; None if there is none. Letters as they are, or any letters if that is
        clear."""
        for same in (str, str.lower):
            found = {
                attribute.ref: attribute
                for alias, attribute in self.columns
                if same(attribute.name) == same(name) and (table is None or same(alias) == same(table))
            }
            if len(found) > 1:
                tables = sorted({a for a, c in self.columns if same(c.name) == same(name)})
                raise InvalidRequest(
                    f"Column '{name}' is ambiguous: {', '.join(tables)} have one.",
                    "Put the table's name before it.",
                )
            if found:
                return next(iter(found.values()))
        return None

    def has_table(self, name: str) -> bool:
        return any(alias.lower() == name.lower() for alias, _ in self.columns)

    def visible(self, table: str | None = None) -> list[tuple[str, Attribute]]:
        """What `*`, or `table.*`, stands for."""
        return [
            (alias, attribute)
            for alias, attribute in self.columns
            if not attribute.hidden and (table is None or alias.lower() == table.lower())
        ]

    def names(self) -> list[str]:
        return sorted({attribute.name for _, attribute in self.columns if not attribute.hidden})

    def joined(self, other: "Scope") -> "Scope":
        return Scope((*self.columns, *other.columns))


def under(alias: str, attributes: Sequence[Attribute]) -> Scope:
    return Scope(tuple((alias, attribute) for attribute in attributes))
