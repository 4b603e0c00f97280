"""Partition fields as users write them: `day(at)`, `bucket(16, id)`, `truncate(4, name)`, `country`."""

import re
from dataclasses import dataclass

from headgate.errors import InvalidRequest

TIMED = ("year", "month", "day", "hour")
SIZED = ("bucket", "truncate")
_CALL = re.compile(r"^\s*([A-Za-z]+)\s*\(\s*(?:(\d+)\s*,\s*)?(.+?)\s*\)\s*$")


@dataclass(frozen=True)
class PartitionField:
    """One field of a partition spec. `column` is a path for a field in a struct."""

    transform: str
    column: str
    size: int | None = None

    @property
    def iceberg_transform(self) -> str:
        """As Iceberg's own transforms call themselves."""
        return self.transform if self.size is None else f"{self.transform}[{self.size}]"

    def __str__(self) -> str:
        if self.transform == "identity":
            return self.column
        return f"{self.transform}({'' if self.size is None else f'{self.size}, '}{self.column})"


def parse_partition(text: str) -> PartitionField:
    """A field, or InvalidRequest with what would do."""
    call = _CALL.match(text)
    if call is None:
        column = text.strip().strip("`")
        if not column or "(" in column or ")" in column:
            raise _nonsense(text)
        return PartitionField("identity", column)
    name, size, column = call[1].lower(), call[2], call[3].strip("`")
    transform = name.removesuffix("s") if name.removesuffix("s") in TIMED else name
    if transform in (*TIMED, "identity") and size is None and column:
        return PartitionField(transform, column)
    if transform in SIZED and size is not None and int(size) > 0:
        return PartitionField(transform, column, int(size))
    raise _nonsense(text)


def _nonsense(text: str) -> InvalidRequest:
    return InvalidRequest(
        f"'{text}' is not a partition field.",
        "Write year(c), month(c), day(c), hour(c), bucket(16, c), truncate(4, c), or a column.",
    )
