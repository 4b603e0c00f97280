"""What a route of the API asks of its caller: declared beside the route, shown in the OpenAPI description.

`**needs(Role.WRITER, "table")` belongs to a route whose path names a table. Where the body names things, the
route says so and asks `Asking` itself. A route that declares nothing keeps the server from starting.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Request
from fastapi.routing import APIRoute

from headgate.access import Principal, Role
from headgate.access.topics import RIGHTS, TopicRights
from headgate.datagen.spec import GeneratorSpec
from headgate.errors import NotAllowed, NotFound
from headgate.kafka.topics import no_such_topic
from headgate.store import Generators, Statements
from headgate.store.generators import no_generator
from headgate.store.statements import no_statement
from headgate.store.store import no_table

# The key in a route's description.
RULE = "x-headgate-access"
# `everything`: no question of topics. `table`, `topic`, `statement`: the one that the path names.
# `generator`: the topics which the named one writes. `body`: those that the body names. `seen`: the answer
# has what the caller sees. `own`: what the caller has started. `open`: for whoever asks, without a role.
About = Literal["everything", "table", "topic", "statement", "generator", "body", "seen", "own", "open"]
# For a route that asks itself who it is.
OPEN: dict[str, Any] = {"openapi_extra": {RULE: {"role": None, "about": "open"}}}


@dataclass(frozen=True)
class Access(TopicRights):
    """The rights of one request's caller; `things` is what the request was about, for the audit trail."""

    things: list[str] = field(default_factory=list)
    _marks: set[str] = field(default_factory=set)

    @property
    def is_telling(self) -> bool:
        """Whether they have named what they may not see, or may not do."""
        return "turned away" in self._marks

    @property
    def shows_records(self) -> bool:
        """Whether the answer has records."""
        return "records" in self._marks

    def note_records(self) -> None:
        self._marks.add("records")

    def check(self, topic: str, needed: Role, missing: NotFound) -> None:
        if not self.has(topic, needed):
            self._marks.add("turned away")
        super().check(topic, needed, missing)

    def check_makes(self, topic: str, needed: Role = Role.WRITER) -> None:
        self.note(f"topic {topic}")
        super().check_makes(topic, needed)

    def check_statement(self, options: Mapping[str, Any], needed: Role, missing: NotFound) -> None:
        if not self.sees_statement(options):
            self._marks.add("turned away")
        super().check_statement(options, needed, missing)

    def check_table(self, topic: str, needed: Role) -> None:
        self.note(f"table {topic}")
        self.check(topic, needed, no_table(topic))

    def check_topic(self, topic: str, needed: Role) -> None:
        self.note(f"topic {topic}")
        self.check(topic, needed, no_such_topic(topic))

    def check_generator(self, topics: Iterable[str], needed: Role, missing: NotFound) -> None:
        """Whoever may read all that a generator writes sees it."""
        names = list(topics)
        if not self.sees_all(names):
            self._marks.add("turned away")
            raise missing
        for topic in names:
            self.check(topic, needed, missing)

    def note(self, thing: str) -> None:
        """What the request is about."""
        if thing not in self.things:
            self.things.append(thing)


def access_of(request: Request) -> Access:
    access: Access = request.scope[RIGHTS]
    return access


Asking = Annotated[Access, Depends(access_of)]


def needs(
    role: Role, about: About, statements: Statements | None = None, generators: Generators | None = None
) -> dict[str, Any]:
    """A route's rule, as arguments of its decorator. `statements`, `generators` have what is named."""

    def check(request: Request, access: Asking) -> None:
        named = request.path_params
        match about:
            case "everything":
                access.check_everywhere(role)
            case "table":
                access.check_table(named["topic"], role)
            case "topic":
                access.check_topic(named["name"], role)
            case "statement":
                assert statements is not None
                check_statement(access, statements, named["name"], role)
            case "generator":
                assert generators is not None
                check_generator(access, generators, named["generator"], role)
            case _:
                check_known(access.caller)

    return {
        "dependencies": [Depends(check)],
        "openapi_extra": {RULE: {"role": str(role), "about": about}},
    }


def check_statement(access: Access, statements: Statements, name: str, needed: Role) -> None:
    access.note(f"statement {name}")
    access.check_statement(statements.get(name).options, needed, no_statement(name))


def check_generator(access: Access, generators: Generators, name: str, needed: Role) -> None:
    access.note(f"generator {name}")
    spec = GeneratorSpec.from_dict(dict(generators.get(name).spec))
    access.check_generator(spec.topics(), needed, no_generator(name))


def check_known(caller: Principal) -> None:
    """Whoever has a role on anything: what they get is what they see."""
    if caller.highest is None:
        raise NotAllowed(
            f"{caller.name} has no role on anything.",
            "Use another credential: `headgate credentials create NAME --role reader`.",
        )


def check_declared(routers: Iterable[APIRouter]) -> None:
    """No route without its rule: refuses to go on where one was forgotten."""
    for router in routers:
        for route in router.routes:
            extra: Mapping[str, Any] = (route.openapi_extra or {}) if isinstance(route, APIRoute) else {}
            if RULE not in extra:
                raise AssertionError(f"{route} does not say who may use it: `**needs(role, about)`")
