"""The orders of a shop whose payments have a field more."""

from headgate.datagen.orders import Orders
from headgate.demo.evolved import FIELD, EvolvedOrders


def test_only_payments_differ_and_only_by_the_field() -> None:
    made = EvolvedOrders(8)
    assert [field["name"] for field in made.schemas["payments"]["fields"]][-1] == FIELD
    for plain, record in zip(Orders(8).records(200), made.records(200), strict=True):
        if record.topic == "payments":
            value = dict(record.value)
            assert value.pop(FIELD) in (None, 1, 2, 3)
            assert plain == record._replace(value=value)
            assert made.encode(record, 5) != Orders(8).encode(plain, 5)
        else:
            assert plain == record
