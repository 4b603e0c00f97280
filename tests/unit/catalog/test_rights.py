"""What a role may do with a table, and what is not there for it."""

from collections.abc import Callable

import pytest

from headgate.access.roles import Grant, Principal
from headgate.catalog.errors import CatalogError
from headgate.catalog.names import Identifier
from headgate.catalog.rights import Rights, sees

RIGHTS = Rights(reserved=("local",))
ORDERS, OWN = Identifier(("local",), "orders"), Identifier(("sandbox",), "orders")


def caller(*grants: str) -> Principal:
    return Principal("somebody", tuple(Grant.parse(grant) for grant in grants))


def status(check: Callable[[Principal, Identifier], None], who: Principal, table: Identifier) -> int:
    """200, or the status of the refusal."""
    try:
        check(who, table)
    except CatalogError as error:
        return error.status
    return 200


@pytest.mark.parametrize(("role", "expected"), [("reader", 403), ("writer", 200), ("admin", 200)])
def test_a_table_is_changed_by_writers(role: str, expected: int) -> None:
    assert status(RIGHTS.check_writes, caller(role), OWN) == expected
    assert status(RIGHTS.check_writes_view, caller(role), OWN) == expected
    assert status(RIGHTS.check_creates, caller(role), OWN) == expected


@pytest.mark.parametrize(
    ("role", "expected"), [("reader", 403), ("writer", 403), ("admin", 403), ("engine", 200)]
)
def test_a_managed_table_is_written_by_the_engine_alone(role: str, expected: int) -> None:
    assert status(RIGHTS.check_managed, caller(role), ORDERS) == expected


@pytest.mark.parametrize(("role", "expected"), [("writer", 403), ("admin", 200), ("engine", 200)])
def test_the_namespace_of_the_topics_is_reserved(role: str, expected: int) -> None:
    assert status(RIGHTS.check_creates, caller(role), ORDERS) == expected


def test_a_table_that_no_grant_covers_is_not_there() -> None:
    elsewhere = caller("admin:sandbox")
    assert not sees(elsewhere, ORDERS)
    assert status(RIGHTS.check_sees_table, elsewhere, ORDERS) == 404
    assert status(RIGHTS.check_writes, elsewhere, ORDERS) == 404
    assert status(RIGHTS.check_sees_table, caller("reader:local:orders"), ORDERS) == 200
