"""Fields that have another name now, and the columns that stay theirs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import types as t

from headgate.decode.project import is_castable, paths
from headgate.decode.reader import Reader


@dataclass(frozen=True)
class Rename:
    """The field at `path` is the column `to`, in records whose schema id is smaller than `below`.

    The new name was brought by schema `below`; from there on a field with the old name is another one.
    Without `below` it was its owner's word, for all schemas that do not have both.
    """

    path: str
    to: str
    below: int | None = None

    @property
    def new_path(self) -> str:
        return sibling(self.path, self.to)


def sibling(path: str, name: str) -> str:
    """The path of a field beside the one at `path`."""
    parent, dot, _ = path.rpartition(".")
    return f"{parent}{dot}{name}"


def names_for(reader: Reader, schema_id: int | None, renames: Sequence[Rename]) -> dict[str, str]:
    """By path as it is written, the column's name of each field that has another."""
    return dict(_names(reader.type, schema_id, renames, "", "")) if renames else {}


def _names(
    kind: t.DataType, schema_id: int | None, renames: Sequence[Rename], written: str, table: str
) -> Iterator[tuple[str, str]]:
    match kind:
        case t.StructType():
            for field in kind.fields:
                name = field.name
                for rename in renames:
                    applies = rename.below is None or schema_id is None or schema_id < rename.below
                    if applies and rename.path == f"{table}{name}" and rename.to not in kind.names:
                        name = rename.to
                if name != field.name:
                    yield f"{written}{field.name}", name
                dot = "." if isinstance(field.dataType, t.StructType) else ""
                inner = f"{written}{field.name}{dot}", f"{table}{name}{dot}"
                yield from _names(field.dataType, schema_id, renames, *inner)
        case t.ArrayType():
            dot = "." if isinstance(kind.elementType, t.StructType) else ""
            inner = f"{written}[]{dot}", f"{table}[]{dot}"
            yield from _names(kind.elementType, schema_id, renames, *inner)
        case t.MapType():
            dot = "." if isinstance(kind.valueType, t.StructType) else ""
            inner = f"{written}{{}}{dot}", f"{table}{{}}{dot}"
            yield from _names(kind.valueType, schema_id, renames, *inner)


def renames_of(reader: Reader, schema_id: int, numbers: Mapping[str, int]) -> list[Rename]:
    """What this schema says of former names: by Avro's aliases, or by Protobuf's field numbers, of which
    `numbers` has those of earlier schemas."""
    here = set(paths(reader.type))
    # Former names are told by Iceberg's paths.
    ours = {path.replace("[]", ".element").replace("{}", ".value"): path for path in here}
    found = [
        Rename(sibling(ours[path], old), ours[path].rpartition(".")[2], schema_id)
        for path, olds in reader.former_names.items()
        for old in olds
        if sibling(ours[path], old) not in here
    ]
    for path, number in reader.field_numbers.items():
        if path in numbers:
            continue
        for old, other in numbers.items():
            beside = old.rpartition(".")[0] == path.rpartition(".")[0]
            if beside and other == number and old not in here:
                found.append(Rename(old, path.rpartition(".")[2], schema_id))
    return found


def former_names(readers: Sequence[Reader]) -> dict[str, frozenset[str]]:
    """By path, the names that a field had before, as the aliases or the numbers of these schemas tell, which
    are of one record type and in the order in which they were registered."""
    found: dict[str, frozenset[str]] = {}
    numbers: dict[str, int] = {}
    for reader in readers:
        for rename in renames_of(reader, 0, numbers):
            old = rename.path.rpartition(".")[2]
            found[rename.new_path] = found.get(rename.new_path, frozenset()) | {old}
        numbers |= reader.field_numbers
    return found


@dataclass(frozen=True)
class Former:
    """The former names of fields, as the schemas up to one tell, and as all of them do."""

    so_far: Mapping[str, frozenset[str]]
    all: Mapping[str, frozenset[str]]


def names_as(kind: t.DataType, columns: t.DataType, former: Former) -> dict[str, str]:
    """By path as it is written, the column's name of each field that is called otherwise in `columns`: by a
    former name of the field, or, in records that are older than the columns, by a later one.

    A field with the name of a column is that column.
    """
    return dict(_names_as(kind, columns, former, "", "")) if former.all else {}


def _names_as(
    kind: t.DataType, columns: t.DataType, former: Former, written: str, table: str
) -> Iterator[tuple[str, str]]:
    match kind, columns:
        case t.StructType(), t.StructType():
            have = {column.name: column for column in columns.fields}
            free = [column for column in columns.fields if column.name not in kind.names]
            for field in kind.fields:
                column = have.get(field.name)
                if column is None:
                    same = (one for one in free if _is_same(field, one, former, written, table))
                    column = next(same, None)
                    if column is None:
                        continue
                    free.remove(column)
                    yield f"{written}{field.name}", column.name
                dot = "." if isinstance(field.dataType, t.StructType) else ""
                inner = f"{written}{field.name}{dot}", f"{table}{column.name}{dot}"
                yield from _names_as(field.dataType, column.dataType, former, *inner)
        case t.ArrayType(), t.ArrayType():
            dot = "." if isinstance(kind.elementType, t.StructType) else ""
            inner = f"{written}[]{dot}", f"{table}[]{dot}"
            yield from _names_as(kind.elementType, columns.elementType, former, *inner)
        case t.MapType(), t.MapType():
            dot = "." if isinstance(kind.valueType, t.StructType) else ""
            inner = f"{written}{{}}{dot}", f"{table}{{}}{dot}"
            yield from _names_as(kind.valueType, columns.valueType, former, *inner)


def _is_same(field: t.StructField, column: t.StructField, former: Former, written: str, table: str) -> bool:
    if column.name in _all_former(f"{written}{field.name}", former.so_far):
        return True
    # A type that is another is another field: the registry lets nobody say that they are the same.
    later = field.name in _all_former(f"{table}{column.name}", former.all)
    return later and is_castable(field.dataType, column.dataType)


def _all_former(path: str, former: Mapping[str, frozenset[str]]) -> set[str]:
    """The former names of a field, and theirs."""
    found: set[str] = set()
    waiting = [path]
    while waiting:
        this = waiting.pop()
        new = former.get(this, frozenset()) - found
        found |= new
        waiting += [sibling(this, name) for name in new]
    return found
