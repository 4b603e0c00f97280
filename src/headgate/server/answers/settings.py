"""What this Headgate was told, and by what."""

from typing import Literal

from pydantic import Field, JsonValue

from headgate.server.answers.shape import Shape


class SettingAnswer(Shape):
    """A setting. The value of what is, or may be, a secret is null."""

    key: str
    value: JsonValue
    source: Literal["default", "file", "environment", "command"]
    secret: bool
    description: str = Field(description="Empty where the name says it.")
