"""The sales world: events once, flat, and without what tells a person."""

from collections.abc import Mapping, Sequence

from headgate.datagen.scenario import Record
from headgate.worlds.world import Row, Rows, World, first_of, moment, values_of


def products(records: Sequence[Record]) -> Mapping[str, Rows]:
    return {"clean_sales": [_clean(event) for event in first_of(values_of(records, "sales"), "event_id")]}


def _clean(event: Row) -> Row:
    product, order, customer = event["product"], event["order"] or {}, event["customer"]
    return {
        "event_id": event["event_id"],
        "step": event["step"],
        "stand": event["stand"],
        "happened_at": moment(event["happened_at"]),
        "sku": product["sku"],
        "title": product["title"],
        "category": product["category"],
        "order_id": order.get("order_id"),
        "quantity": order.get("quantity"),
        "total": order.get("total"),
        "customer_id": customer["customer_id"],
        "email": masked_email(customer["contact"]["email"]),
        "phone": masked_phone(customer["contact"]["phone"]),
        "country": customer["country"],
    }


def masked_email(address: str) -> str:
    """The ends of the name, and the host."""
    name, _, host = address.rpartition("@")
    hidden = "*" * len(name) if len(name) <= 2 else f"{name[0]}{'*' * (len(name) - 2)}{name[-1]}"
    return f"{hidden}@{host}"


def masked_phone(number: str | None) -> str | None:
    """All but the last two digits are stars."""
    if number is None:
        return None
    left = sum(letter.isdigit() for letter in number) - 2
    found = []
    for letter in number:
        hides = letter.isdigit() and left > 0
        left -= letter.isdigit()
        found.append("*" if hides else letter)
    return "".join(found)


SALES = World(name="sales", limit=5_000, seed=7, totals={"clean_sales": "total"}, products=products)
