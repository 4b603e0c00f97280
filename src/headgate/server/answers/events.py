"""What happened, and who did what."""

from typing import Literal

from headgate.server.answers.shape import Shape


class EventAnswer(Shape):
    """Something that happened to a table, a statement, a catalog or another thing. Times are seconds."""

    id: int
    at: float
    subject: str
    kind: str
    message: str


class AgedEventAnswer(EventAnswer):
    """An event, with how many seconds ago it was."""

    age: float


class AuditEntryAnswer(Shape):
    """A request that changed something, asked for rows, or was refused."""

    id: int
    at: float
    who: str
    credential: str
    address: str
    door: Literal["loopback", "public"]
    action: str
    things: list[str]
    status: int
