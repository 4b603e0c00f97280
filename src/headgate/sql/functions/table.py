"""What a function of the language is: a name, how it is written, what it means, and how Spark says it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    MapType,
    NullType,
    StringType,
)

from headgate.errors import InvalidRequest
from headgate.sql.typed import Typed, call
from headgate.sql.types import (
    BIGINT,
    BYTES,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    is_number,
    is_time,
    is_whole,
    name_of,
)


@dataclass(frozen=True)
class Session:
    """What functions depend on besides their arguments."""

    zone: str = "UTC"


Rule = Callable[[list[Typed], Session], Typed]


@dataclass(frozen=True)
class Function:
    """`form` is how it is written, `meaning` a sentence for the reference."""

    name: str
    form: str
    meaning: str
    rule: Rule
    least: int
    most: int | None
    group: str = ""

    def apply(self, args: list[Typed], session: Session) -> Typed:
        if len(args) < self.least or (self.most is not None and len(args) > self.most):
            raise InvalidRequest(f"{self.name} has {len(args)} arguments.", f"It is written {self.form}.")
        return self.rule(args, session)


_KINDS: dict[str, tuple[str, Callable[[DataType], bool]]] = {
    "s": ("a STRING", lambda t: isinstance(t, StringType)),
    "n": ("a number", is_number),
    "i": ("a whole number", is_whole),
    "d": ("a number", is_number),
    "b": ("a BOOLEAN", lambda t: isinstance(t, BooleanType)),
    "y": ("BYTES", lambda t: isinstance(t, BinaryType)),
    "t": ("a TIMESTAMP, TIMESTAMP_LTZ or DATE", lambda t: is_time(t) or isinstance(t, DateType)),
    "a": ("an ARRAY", lambda t: isinstance(t, ArrayType)),
    "m": ("a MAP", lambda t: isinstance(t, MapType)),
    "*": ("a value", lambda t: True),
}
# What a NULL that has no type becomes.
_DEFAULTS: dict[str, DataType] = {
    "s": STRING,
    "n": DOUBLE,
    "i": INT,
    "d": DOUBLE,
    "y": BYTES,
    "t": TIMESTAMP,
}


def check(name: str, kinds: Sequence[str], args: list[Typed]) -> list[Typed]:
    """The arguments, if they are of these kinds. `d` becomes a DOUBLE."""
    checked: list[Typed] = []
    for place, (kind, arg) in enumerate(zip(kinds, args, strict=False), 1):
        what, fits = _KINDS[kind]
        if isinstance(arg.type, NullType):
            arg = arg.cast(_DEFAULTS.get(kind, STRING)) if kind != "*" else arg
        elif not fits(arg.type):
            raise InvalidRequest(
                f"Argument {place} of {name} is {name_of(arg.type)}, and must be {what}.",
                "Make it one with CAST.",
            )
        checked.append(arg.cast(DOUBLE) if kind == "d" else arg)
    return checked


def simple(
    name: str,
    form: str,
    meaning: str,
    kinds: str,
    kind: DataType | None,
    template: str,
    optional: int = 0,
    nullable: bool | None = None,
) -> Function:
    """One Spark expression; `kind` None is the type of the first argument. With optional arguments the
    template has one form per count of them, separated by ` | `, the shortest first."""
    templates = template.split(" | ")

    def rule(args: list[Typed], _: Session) -> Typed:
        checked = check(name, kinds, args)
        chosen = templates[len(args) - (len(kinds) - optional)] if len(templates) > 1 else templates[0]
        return call(chosen, kind if kind is not None else checked[0].type, checked, nullable)

    return Function(name, form, meaning, rule, len(kinds) - optional, len(kinds))


def literal_text(name: str, place: int, arg: Typed) -> str:
    """An argument that must be known before anything runs: a pattern, a path, a unit."""
    if not arg.known or not isinstance(arg.literal, str):
        raise InvalidRequest(
            f"Argument {place} of {name} must be text that is written down.", "It cannot come from a column."
        )
    return arg.literal


def literal_int(name: str, place: int, arg: Typed) -> int:
    if not arg.known or not isinstance(arg.literal, int) or isinstance(arg.literal, bool):
        raise InvalidRequest(f"Argument {place} of {name} must be a whole number that is written down.")
    return arg.literal


def named(function: Function, name: str) -> Function:
    """The same function by another name."""
    return Function(
        name,
        function.form.replace(function.name, name, 1),
        f"The same as {function.name}.",
        function.rule,
        function.least,
        function.most,
    )


__all__ = ["BIGINT", "Function", "Session", "check", "literal_int", "literal_text", "named", "simple"]
