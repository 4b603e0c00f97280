"""What a request says of a table becomes a TableSpec, or is refused with what would do."""

from pydantic import BaseModel, ConfigDict, Field

from headgate.model import TableSpec
from headgate.options import TableOptions


class TableRequest(TableOptions):
    """A topic that is to be a table."""

    topic: str = Field(min_length=1)

    def spec(self) -> TableSpec:
        return self.apply(TableSpec(self.topic))


class ResetRequest(BaseModel):
    """Where a statement is to begin instead."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    start: str | dict[str, str] = Field(
        alias="from",
        description="`earliest`, `latest`, a time, offsets by partition as `0:12,1:40`, or `last`: where the "
        "statement's output stands. Or by topic, one of the first four for each.",
    )
    dry_run: bool = Field(False, description="Only say what it would repeat and skip.")


class ResumeRequest(BaseModel):
    """How to go on."""

    model_config = ConfigDict(extra="forbid")

    accept: str | None = Field(
        None, description="`new-topic`, `new-timeline` or `lost`: go on past what stopped the table."
    )
