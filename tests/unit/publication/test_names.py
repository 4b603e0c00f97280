"""Names follow from the topic alone."""

import pytest

from headgate.errors import InvalidRequest
from headgate.publication.names import check_outside_name, outside_name


@pytest.mark.parametrize(
    ("topic", "plain"),
    [
        ("orders", "orders"),
        ("Shop.orders-v2", "shop_orders_v2"),
        ("shop_orders.v2", "shop_orders_v2"),
        ("ORDERS", "orders"),
        ("2026.a", "2026_a"),
    ],
)
def test_how_topics_are_called(topic: str, plain: str) -> None:
    assert outside_name("glue", topic) == outside_name("unity", topic) == plain
    assert outside_name("rest", topic) == topic
    check_outside_name("glue", plain, "a table")


@pytest.mark.parametrize("name", ["Orders", "a.b", "a-b", "", "a b", "x" * 256, "a\x00"])
def test_names_that_glue_and_unity_do_not_take(name: str) -> None:
    for kind in ("glue", "unity"):
        with pytest.raises(InvalidRequest, match="cannot name a table"):
            check_outside_name(kind, name, "a table")


@pytest.mark.parametrize("name", ["", "x" * 256, "a\x1fb"])
def test_names_that_nobody_takes(name: str) -> None:
    with pytest.raises(InvalidRequest, match="cannot name a table"):
        check_outside_name("rest", name, "a table")
