"""A browser's session."""

from typing import Literal

from pydantic import Field

from headgate.server.answers.shape import Shape


class GrantAnswer(Shape):
    """A role, on what two patterns match."""

    role: Literal["reader", "writer", "admin", "engine"]
    namespace: str
    table: str


class SessionAnswer(Shape):
    """Who asks, and what they may."""

    name: str
    roles: list[GrantAnswer]
    is_admin: bool = Field(description="Of everything.")
    by: Literal["local", "link", "credential", "token"]
    expires_at: float | None = Field(description="When the browser's session ends, where there is one.")
