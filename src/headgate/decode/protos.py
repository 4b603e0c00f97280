"""Protobuf schemas as the registry has them, text or base64 descriptor, become descriptors.

Text is compiled by protoc itself, in a process of its own: a schema comes from outside, and protoc writes its
complaints to standard error.
"""

import base64
import binascii
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from google.protobuf.descriptor import FileDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError

#: What a text is called that nothing refers to; its name is in no message.
TEXT_NAME = "schema.proto"
COMPILER_SECONDS = 30
_CONFLUENT = "confluent_kafka.schema_registry.confluent"
# Imports that producers do not register: every client brings them along.
_KNOWN: Mapping[str, str] = {
    **{
        f"google/protobuf/{name}.proto": f"google.protobuf.{name}_pb2"
        for name in (
            "any",
            "api",
            "descriptor",
            "duration",
            "empty",
            "field_mask",
            "source_context",
            "struct",
            "timestamp",
            "type",
            "wrappers",
        )
    },
    **{
        f"google/type/{name}.proto": f"google.type.{name}_pb2"
        for name in (
            "calendar_period",
            "color",
            "date",
            "datetime",
            "dayofweek",
            "decimal",
            "expr",
            "fraction",
            "interval",
            "latlng",
            "localized_text",
            "money",
            "month",
            "phone_number",
            "postal_address",
            "quaternion",
            "timeofday",
        )
    },
    "confluent/meta.proto": f"{_CONFLUENT}.meta_pb2",
    "confluent/type/decimal.proto": f"{_CONFLUENT}.type.decimal_pb2",
    "confluent/type/variant.proto": f"{_CONFLUENT}.type.variant_pb2",
    "confluent/types/decimal.proto": f"{_CONFLUENT}.types.decimal_pb2",
}


class MalformedProto(ValueError):
    """The schema is not Protobuf; says what the compiler says."""


@dataclass(frozen=True)
class Protos:
    """A schema's file and all that it imports, near or far, each after those that it needs itself.

    Only bytes: this is what goes to other processes.
    """

    name: str
    files: tuple[bytes, ...]

    @property
    def main(self) -> FileDescriptorProto:
        return FileDescriptorProto.FromString(self.files[-1])

    def pool(self) -> DescriptorPool:
        pool = DescriptorPool()
        for file in self.files:
            pool.AddSerializedFile(file)
        return pool

    def file(self) -> FileDescriptor:
        return self.pool().FindFileByName(self.name)


def compiled(text: str, references: Sequence[tuple[str, str]] = ()) -> Protos:
    """`references` are (import path, text or base64 descriptor) of all that is imported, near or far."""
    return _compiled(text, tuple(references))


def serialized(text: str, references: Sequence[tuple[str, str]] = ()) -> str:
    """The base64 of the schema's descriptor, as Confluent's clients want it."""
    return (
        text
        if _descriptor(text) is not None
        else base64.b64encode(compiled(text, references).files[-1]).decode()
    )


@lru_cache(maxsize=256)
def _compiled(text: str, references: tuple[tuple[str, str], ...]) -> Protos:
    given: dict[str, FileDescriptorProto] = {}
    texts: dict[str, str] = {}
    for name, reference in references:
        if name not in _KNOWN:
            _sort_in(name, reference, given, texts)
    main = _descriptor(text)
    # A descriptor knows its own name; others refer to the file by the names that they have for it.
    name = TEXT_NAME if main is None or not main.name or main.name in given | texts else main.name
    while name in given or name in texts:
        name = f"_{name}"
    _sort_in(name, text, given, texts)
    if texts:
        given |= _compile(texts, given)
    files = _ordered(name, given)
    found = Protos(name, tuple(file.SerializeToString() for file in files))
    _check(found)
    return found


def _sort_in(name: str, text: str, given: dict[str, FileDescriptorProto], texts: dict[str, str]) -> None:
    """Descriptors to `given`, what has to be compiled to `texts`."""
    descriptor = _descriptor(text)
    if descriptor is None:
        before = texts.setdefault(name, text)
        same = before == text and name not in given
    else:
        descriptor.name = name
        same = given.setdefault(name, descriptor) == descriptor and name not in texts
    if not same:
        raise MalformedProto(f"two different schemas are referred to as '{name}'")


def _descriptor(text: str) -> FileDescriptorProto | None:
    """None for text: no .proto file with something in it is base64, since it has spaces or semicolons."""
    try:
        return FileDescriptorProto.FromString(base64.b64decode(text, validate=True)) if text else None
    except (binascii.Error, ValueError, DecodeError):
        return None


def _compile(
    texts: Mapping[str, str], given: Mapping[str, FileDescriptorProto]
) -> dict[str, FileDescriptorProto]:
    for name in texts:
        _check_name(name)
    known = [_known(name) for name in _KNOWN]
    with TemporaryDirectory() as folder:
        root = Path(folder, "protos")
        for name, text in texts.items():
            file = root / name
            try:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, encoding="utf-8")
            except OSError as error:
                raise MalformedProto(f"no file can have the name '{name}': {error.strerror}") from error
        there, out = Path(folder, "there"), Path(folder, "out")
        there.write_bytes(FileDescriptorSet(file=[*known, *given.values()]).SerializeToString())
        options = [f"--proto_path={root}", f"--descriptor_set_in={there}", f"--descriptor_set_out={out}"]
        _run_compiler([*options, *texts], root)
        found = FileDescriptorSet.FromString(out.read_bytes())
    return {file.name: file for file in found.file}


def _run_compiler(arguments: Sequence[str], root: Path) -> None:
    command = [sys.executable, "-m", "grpc_tools.protoc", *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=COMPILER_SECONDS)
    except subprocess.TimeoutExpired as error:
        raise MalformedProto(f"the compiler took longer than {COMPILER_SECONDS} s") from error
    if done.returncode != 0:
        said = " ".join(line.strip() for line in done.stderr.replace(f"{root}/", "").splitlines())
        raise MalformedProto(said.strip() or f"the compiler failed with code {done.returncode}")


def _check_name(name: str) -> None:
    """A name is a path that somebody sent: it must stay inside its folder."""
    path = PurePosixPath(name)
    inside = not path.is_absolute() and ".." not in path.parts and str(path) == name
    if not inside or name.startswith("-") or any(c in '\\:,"\0' or not c.isprintable() for c in name):
        raise MalformedProto(f"'{name}' is not a path that a schema can be imported by")


def _known(name: str) -> FileDescriptorProto:
    found = FileDescriptorProto()
    import_module(_KNOWN[name]).DESCRIPTOR.CopyToProto(found)
    found.name = name
    return found


def _ordered(name: str, given: Mapping[str, FileDescriptorProto]) -> list[FileDescriptorProto]:
    found: dict[str, FileDescriptorProto] = {}

    def add(name: str, above: tuple[str, ...]) -> None:
        if name in found:
            return
        if name in above:
            raise MalformedProto(f"it imports itself by way of '{name}'")
        if name in _KNOWN:
            file = _known(name)
        elif name in given:
            file = given[name]
        else:
            raise MalformedProto(f"it imports '{name}', which is not among its references")
        for dependency in file.dependency:
            add(dependency, (*above, name))
        found[name] = file

    add(name, ())
    return list(found.values())


def _check(protos: Protos) -> None:
    """Descriptors that were sent as such have seen no compiler."""
    try:
        protos.file()
    except (TypeError, KeyError, ValueError) as error:
        raise MalformedProto(f"its descriptor is not valid: {error}") from error


# -- the messages of a file, by Confluent's indexes


def message_paths(file: FileDescriptorProto) -> Iterator[tuple[tuple[int, ...], str]]:
    """The path and the full name of each message type. The entries of maps are no messages of their own,
    though they are counted."""
    prefix = f"{file.package}." if file.package else ""
    for index, message in enumerate(file.message_type):
        yield from _paths(message, (index,), prefix)


def _paths(
    message: DescriptorProto, path: tuple[int, ...], prefix: str
) -> Iterator[tuple[tuple[int, ...], str]]:
    if message.options.map_entry:
        return
    name = f"{prefix}{message.name}"
    yield path, name
    for index, nested in enumerate(message.nested_type):
        yield from _paths(nested, (*path, index), f"{name}.")
