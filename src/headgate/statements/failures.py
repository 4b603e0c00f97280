"""What Spark hands on of a failure is text: what it means to the owner of a statement."""

from headgate.errors import HeadgateError, StatementFailed
from headgate.statements.sink import NULL_IN

# How Spark's Kafka source says that offsets are not there any more.
_DATA_LOST = ("KAFKA_DATA_LOSS", "data may have been lost")


def meant_by(said: str, when_lost: str) -> HeadgateError | None:
    """None for what is nothing of the statement's own. `when_lost`: the remedy where records are gone."""
    refused = next((line for line in said.splitlines() if NULL_IN in line), None)
    if refused is not None:
        return StatementFailed(
            refused[refused.index(NULL_IN) :].removeprefix("headgate: ").rstrip(".") + ".",
            "Leave such rows out (WHERE … IS NOT NULL), or give them a value (COALESCE).",
        )
    if any(sign in said for sign in _DATA_LOST):
        return StatementFailed(
            "Records that were not read yet are gone from their topic: "
            f"{next(line for line in said.splitlines() if line.strip())}",
            when_lost,
        )
    return None
