"""Fields that have another name now, and the columns that stay theirs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import types as t

from headgate.decode.project import paths
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
