"""What a request says of a table becomes a TableSpec, or is refused with what would do."""

from pydantic import BaseModel, ConfigDict, Field

from headgate.model import TableSpec
from headgate.options import TableOptions


class TableRequest(TableOptions):
    """A topic that is to be a table."""

    topic: str = Field(min_length=1)

    def spec(self) -> TableSpec:
        return self.apply(TableSpec(self.topic))


class ResumeRequest(BaseModel):
    """How to go on."""

    model_config = ConfigDict(extra="forbid")

    accept: str | None = Field(
        None, description="`new-topic`, `new-timeline` or `lost`: go on past what stopped the table."
    )
