"""Which schemas messages are decoded by for a caller: those that the registry shows them by their ids."""

import time
from collections.abc import Callable

from headgate.access.topics import TopicRights
from headgate.registry.api.rights import SubjectRights
from headgate.registry.client import SchemaSource

# A page and a tail ask with each message; subjects come and go while a tail lasts.
KEPT_SECONDS = 10.0


class SchemaRights:
    """One caller's. Anybody who writes to a topic can name a schema of another in a message."""

    def __init__(
        self, schemas: SchemaSource, rights: TopicRights, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._schemas = schemas
        self._is_everywhere = rights.is_everywhere
        self._subjects = SubjectRights(rights)
        self._clock = clock
        self._kept: dict[int, tuple[float, bool]] = {}

    def sees(self, schema_id: int) -> bool:
        """Whether the caller sees a subject that the schema is under. Raises RegistryUnavailable."""
        if self._is_everywhere:
            return True
        now = self._clock()
        asked_at, answer = self._kept.get(schema_id, (now - KEPT_SECONDS, False))
        if now - asked_at >= KEPT_SECONDS:
            answer = any(map(self._subjects.sees, self._schemas.subjects_of(schema_id)))
            self._kept[schema_id] = now, answer
        return answer
