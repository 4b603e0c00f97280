"""Where a page of messages begins, in a form that a client hands back."""

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Self

from headgate.errors import InvalidRequest

Way = Literal["older", "newer"]


@dataclass(frozen=True)
class Cursor:
    """Records are read from `offsets` on, one for each partition: those before them (`older`), or those from
    there on (`newer`). A page shows the newest first, or the oldest."""

    topic_id: str
    way: Way
    newest_first: bool
    offsets: Mapping[int, int]

    def to_text(self) -> str:
        said = [self.topic_id, self.way, self.newest_first, {str(p): o for p, o in self.offsets.items()}]
        packed = json.dumps(said, separators=(",", ":")).encode()
        return base64.urlsafe_b64encode(packed).decode().rstrip("=")

    @classmethod
    def parse(cls, text: str, topic_id: str) -> Self:
        """Refuses what was no cursor, and that of a topic which was created again."""
        try:
            said = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
            own, way, newest_first, offsets = said
            if way not in ("older", "newer") or not isinstance(newest_first, bool):
                raise ValueError(way)
            found = cls(own, way, newest_first, {int(p): int(o) for p, o in offsets.items()})
        except (binascii.Error, ValueError, TypeError, AttributeError) as error:
            raise InvalidRequest("The cursor is none of this server's.", "Begin again without it.") from error
        if own != topic_id:
            raise InvalidRequest(
                "The topic was created again since the page before was read.",
                "Begin again without the cursor.",
            )
        return found
