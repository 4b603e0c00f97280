"""Who may do what in the registry: a subject belongs to its topic, and takes the role on that.

By the usual names `orders-value` and `orders-key` are of the topic `orders`; any other subject is taken for
the name of a topic itself. What is for all subjects takes a role on everything. A schema by its id is for
those who see a subject that it is under.
"""

from typing import Annotated

from fastapi import Depends, Request

from headgate.access.roles import Role
from headgate.access.topics import RIGHTS, TopicRights, all_rights
from headgate.errors import NotAllowed, NotFound
from headgate.registry.api.bodies import SchemaBody
from headgate.registry.refusals import Refusal, schema_not_found, subject_not_found
from headgate.registry.schemas import SchemaVersion
from headgate.registry.service import RegistryService

PARTS = ("-key", "-value")
READING = frozenset({"GET", "HEAD"})
# Asked with a schema in the body, and nothing is changed.
LOOKUPS = ("/subjects/{subject:path}", "/compatibility/")


class SubjectRights:
    """The rights of a request's caller, asked by subject."""

    def __init__(self, rights: TopicRights) -> None:
        self._rights = rights

    def sees(self, subject: str) -> bool:
        return self._rights.sees(topic_of(subject))

    def check_request(self, request: Request, path: str) -> None:
        """Before a route is run. `path` is its template."""
        needed = _needed(request, path)
        subject = request.path_params.get("subject") or request.query_params.get("subject") or None
        try:
            if subject is not None:
                self._rights.check(topic_of(subject), needed, NotFound(subject))
            elif needed > Role.READER:
                self._rights.check_everywhere(Role.ADMIN)
        except NotFound as error:
            raise subject_not_found(str(error)) from error
        except NotAllowed as error:
            raise Refusal(403, error.message, error.remedy) from error

    def check_references(self, sent: SchemaBody) -> None:
        """Schemas that another is made of are read with it."""
        for reference in sent.references or ():
            if not self.sees(reference.subject):
                raise subject_not_found(reference.subject)

    def check_id(self, service: RegistryService, schema_id: int, what: str | None = None) -> None:
        """`what` is what the caller has called it."""
        if self._rights.is_everywhere:
            return
        if not any(self.sees(version.subject) for version in service.versions_of(schema_id, True)):
            raise schema_not_found(what or f"Schema {schema_id}")

    def seen(self, versions: list[SchemaVersion]) -> list[SchemaVersion]:
        return [version for version in versions if self.sees(version.subject)]


def topic_of(subject: str) -> str:
    """The topic that a subject is named for."""
    for part in PARTS:
        if subject.endswith(part) and subject != part:
            return subject.removesuffix(part)
    return subject


def rights_of(request: Request) -> SubjectRights:
    """As the doorkeeper left them; without one everybody is at home."""
    return SubjectRights(request.scope.get(RIGHTS) or all_rights())


Rights = Annotated[SubjectRights, Depends(rights_of)]


def _needed(request: Request, path: str) -> Role:
    if request.method in READING or (request.method == "POST" and _is_lookup(path)):
        return Role.READER
    permanent = request.query_params.get("permanent", "").lower() in ("true", "1", "yes", "on", "t", "y")
    return Role.ADMIN if permanent else Role.WRITER


def _is_lookup(path: str) -> bool:
    return path == LOOKUPS[0] or path.startswith(LOOKUPS[1])
