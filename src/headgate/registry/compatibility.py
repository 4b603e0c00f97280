"""Which schemas may follow which: the levels, each format's rules, and Avro's own in the JVM."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol, TypeVar

from py4j.protocol import Py4JError, Py4JJavaError

from headgate.errors import RegistryUnavailable
from headgate.jvm import Jvm
from headgate.registry.json_compatibility import JsonCompatibility
from headgate.registry.protobuf_compatibility import ProtobufCompatibility
from headgate.registry.refusals import invalid_schema
from headgate.registry.schemas import ResolvedSchema, Schema, SchemaType, digest

_T = TypeVar("_T")


class Level(StrEnum):
    NONE = "NONE"
    BACKWARD = "BACKWARD"
    BACKWARD_TRANSITIVE = "BACKWARD_TRANSITIVE"
    FORWARD = "FORWARD"
    FORWARD_TRANSITIVE = "FORWARD_TRANSITIVE"
    FULL = "FULL"
    FULL_TRANSITIVE = "FULL_TRANSITIVE"

    @property
    def transitive(self) -> bool:
        """Against all earlier versions, not only the latest."""
        return self.value.endswith("_TRANSITIVE")

    @property
    def backward(self) -> bool:
        """The new schema reads what the earlier one wrote."""
        return self.value.startswith(("BACKWARD", "FULL"))

    @property
    def forward(self) -> bool:
        """The earlier schema reads what the new one writes."""
        return self.value.startswith(("FORWARD", "FULL"))


@dataclass(frozen=True)
class Earlier:
    """A registered version that a new schema is compared with."""

    version: int
    resolved: ResolvedSchema


@dataclass(frozen=True)
class Verdict:
    """`unjudged` are the versions that no rules exist for yet: neither compatible nor incompatible."""

    problems: tuple[str, ...] = ()
    unjudged: tuple[int, ...] = ()


class Rules(Protocol):
    """What a format says of two of its schemas."""

    def problems(self, reader: ResolvedSchema, writer: ResolvedSchema) -> list[str]:
        """Why `reader` cannot read what `writer` wrote; nothing when it can."""


class AvroCompatibility:
    """Apache Avro's parser and SchemaCompatibility. Safe to use from several threads."""

    def __init__(self, jvm: Jvm) -> None:
        self._jvm = jvm

    def validate(self, resolved: ResolvedSchema) -> None:
        """Refuses what Avro's parser does not accept, with the parser's message."""
        _in_jvm(lambda: self._parse(resolved, validate_defaults=True))

    def problems(self, reader: ResolvedSchema, writer: ResolvedSchema) -> list[str]:
        """Why `reader` cannot read what `writer` wrote; nothing when it can."""
        return _in_jvm(lambda: self._compare(reader, writer))

    def _compare(self, reader: ResolvedSchema, writer: ResolvedSchema) -> list[str]:
        found = self._jvm.java.org.apache.avro.SchemaCompatibility.checkReaderWriterCompatibility(
            self._parse(reader), self._parse(writer)
        )
        return [
            f"{problem.getType().toString()} at {problem.getLocation()}: {problem.getMessage()}"
            for problem in found.getResult().getIncompatibilities()
        ]

    def _parse(self, resolved: ResolvedSchema, validate_defaults: bool = False) -> Any:
        parser = self._jvm.java.org.apache.avro.Schema.Parser()
        # A default that was let in once, by another registry perhaps, must not block its successors.
        parser.setValidateDefaults(False)
        for dependency in resolved.dependencies:
            parser.parse(dependency)
        parser.setValidateDefaults(validate_defaults)
        return parser.parse(resolved.schema.text)


def judge(
    avro: AvroCompatibility, level: Level, candidate: ResolvedSchema, earlier: Sequence[Earlier]
) -> Verdict:
    """Compares with the latest of `earlier`, or with all when the level is transitive."""
    problems: list[str] = []
    unjudged: list[int] = []
    rules = _rules(avro).get(candidate.schema.type)
    for other in to_compare(level, earlier):
        if _same(candidate.schema, other.resolved.schema):
            continue
        if candidate.schema.type != other.resolved.schema.type:
            change = f"{other.resolved.schema.type.value} to {candidate.schema.type.value}"
            problems.append(f"with version {other.version}: the schema type changes from {change}")
        elif rules is None:
            unjudged.append(other.version)
        else:
            problems += _problems(rules, level, candidate, other)
    return Verdict(tuple(problems), tuple(unjudged))


def to_compare(level: Level, earlier: Sequence[Earlier]) -> Sequence[Earlier]:
    """`earlier` with the oldest first; the answer has the newest first."""
    if level is Level.NONE:
        return ()
    return earlier[::-1] if level.transitive else earlier[-1:]


def _rules(avro: AvroCompatibility) -> dict[SchemaType, Rules]:
    return {
        SchemaType.AVRO: avro,
        SchemaType.JSON: JsonCompatibility(),
        SchemaType.PROTOBUF: ProtobufCompatibility(),
    }


def _problems(rules: Rules, level: Level, candidate: ResolvedSchema, other: Earlier) -> list[str]:
    found: list[str] = []
    if level.backward:
        new_reads_old = rules.problems(reader=candidate, writer=other.resolved)
        found += [f"the new schema cannot read version {other.version}: {p}" for p in new_reads_old]
    if level.forward:
        old_reads_new = rules.problems(reader=other.resolved, writer=candidate)
        found += [f"version {other.version} cannot read the new schema: {p}" for p in old_reads_new]
    return found


def _same(one: Schema, other: Schema) -> bool:
    return digest(one.without_extras()) == digest(other.without_extras())


def _in_jvm(work: Callable[[], _T]) -> _T:
    try:
        return work()
    except Py4JJavaError as error:
        thrown = error.java_exception
        raise invalid_schema(str(thrown.getMessage() or thrown.toString())) from error
    except (Py4JError, OSError) as error:
        raise RegistryUnavailable(
            f"The JVM with Avro's rules does not answer: {error}", "Start the server again."
        ) from error
