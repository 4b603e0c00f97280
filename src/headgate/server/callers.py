"""What the query driver is told of who asks: a token for the catalog, and how much they get."""

from collections.abc import Callable

from headgate.access import Gate, Principal, Role
from headgate.config import Limits
from headgate.statements.asking import Caller


def callers(limits: Limits, gate: Gate, embedded: bool) -> Callable[[Principal], Caller]:
    """`embedded`: the catalog is ours; one of yours is told nothing of ours."""

    def describe(principal: Principal) -> Caller:
        role = principal.highest or Role.READER
        section = {Role.READER: "reader", Role.WRITER: "writer"}.get(role, "admin")
        most = getattr(limits, section)
        return Caller(
            principal.name,
            principal.id,
            gate.query_token(principal) if embedded else None,
            most.rows,
            most.bytes,
            most.seconds,
            most.concurrent,
            most.scanned,
            f"limits.{section}",
        )

    return describe
