"""What passes between reading, planning and applying; all of it frozen."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

Spec = Mapping[str, Any]
NOTHING: Spec = MappingProxyType({})


class Ref(NamedTuple):
    """A thing by its kind, as files name it (`topics`), and its name."""

    kind: str
    name: str

    @property
    def noun(self) -> str:
        """The kind of one of them."""
        return {"storage": "storage"}.get(self.kind, self.kind.removesuffix("s"))

    def __str__(self) -> str:
        return f"{self.noun} {self.name}"


@dataclass(frozen=True)
class Resource:
    """A thing as a file wants it, and where the file says so (`orders.yaml:12`)."""

    ref: Ref
    spec: Spec
    at: str = ""


@dataclass(frozen=True)
class Wanted:
    """The content of a file, or of several: what is to be there, and the world that owns what it makes."""

    world: str | None
    resources: Sequence[Resource]

    def refs(self) -> list[Ref]:
        return [resource.ref for resource in self.resources]


@dataclass(frozen=True)
class Live:
    """A thing as it is there now, in the words of a file.

    `by_pattern`: the configuration made it. `detail` is what a kind needs to know beyond what a file can say.
    """

    spec: Spec
    by_pattern: bool = False
    detail: Spec = field(default_factory=lambda: NOTHING)


@dataclass(frozen=True)
class Owner:
    """The world that made a thing, and what its file said of it."""

    world: str
    spec: Spec = field(default_factory=lambda: NOTHING)


@dataclass(frozen=True)
class Change:
    """One field that differs; None is nothing."""

    field: str
    before: Any
    after: Any


@dataclass(frozen=True)
class Difference:
    """How a thing is not as wanted. `lost` names what cannot be kept: the thing is replaced then. `keeps`
    says what becomes of state, where somebody should agree to it."""

    changes: tuple[Change, ...]
    lost: str = ""
    keeps: str = ""


@dataclass(frozen=True)
class Create:
    """A thing that is not there. `keeps` says what is there of it nevertheless."""

    ref: Ref
    spec: Spec
    why: str
    keeps: str = ""
    at: str = ""


@dataclass(frozen=True)
class ChangeInPlace:
    """A thing that is there and differs; what it holds stays."""

    ref: Ref
    spec: Spec
    changes: tuple[Change, ...]
    why: str
    keeps: str = ""
    at: str = ""


@dataclass(frozen=True)
class Replace:
    """A thing that is removed, with what it holds, and created again."""

    ref: Ref
    spec: Spec
    changes: tuple[Change, ...]
    lost: str
    why: str
    at: str = ""


@dataclass(frozen=True)
class Remove:
    """A thing that its world names no longer."""

    ref: Ref
    lost: str
    why: str
    delete_data: bool = False


@dataclass(frozen=True)
class Release:
    """A thing that a world has made and that is gone: the world owns it no longer."""

    ref: Ref
    why: str


Step = Create | ChangeInPlace | Replace | Remove | Release


@dataclass(frozen=True)
class Plan:
    """The steps in their order. `notes` are about what is left as it is."""

    world: str | None
    steps: tuple[Step, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Wishes:
    """What may be done beyond creating and changing. `destroy`: the world is to have nothing."""

    prune: bool = False
    delete_data: bool = False
    destroy: bool = False


@dataclass(frozen=True)
class Observed:
    """What is there, and whose it is."""

    live: Mapping[Ref, Live]
    owners: Mapping[Ref, Owner] = field(default_factory=lambda: MappingProxyType({}))
