"""The functions of the language, by name."""

from collections.abc import Mapping
from types import MappingProxyType

from headgate.sql.functions.conditions import CONDITIONS
from headgate.sql.functions.documents import ARRAYS, DOCUMENTS
from headgate.sql.functions.masks import MASKS
from headgate.sql.functions.numbers import NUMBERS
from headgate.sql.functions.strings import STRINGS
from headgate.sql.functions.table import Function, Session
from headgate.sql.functions.times import TIMES

GROUPS: Mapping[str, tuple[Function, ...]] = MappingProxyType(
    {
        "Conditions": CONDITIONS,
        "Strings": STRINGS,
        "Numbers": NUMBERS,
        "Dates and times": TIMES,
        "JSON": DOCUMENTS,
        "Arrays and maps": ARRAYS,
        "Masks": MASKS,
    }
)
FUNCTIONS: Mapping[str, Function] = MappingProxyType(
    {function.name: function for group in GROUPS.values() for function in group}
)

__all__ = ["FUNCTIONS", "GROUPS", "Function", "Session"]
