"""The orders world: payments once, orders paid in time, what was sold, and customers as they stand."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from decimal import Decimal

from headgate.datagen.scenario import Record
from headgate.worlds.world import EPOCH, Row, Rows, World, first_of, moment, values_of

IN_TIME = timedelta(hours=96)


def products(records: Sequence[Record]) -> Mapping[str, Rows]:
    completed = _completed(records)
    return {
        "completed_orders": completed,
        "product_sales": _sales(completed),
        "customer_snapshot": _customers(completed),
    }


def _completed(records: Sequence[Record]) -> Rows:
    orders = {row["order_id"]: row for row in values_of(records, "orders")}
    found = []
    for payment in first_of(values_of(records, "payments"), "order_id"):
        order, paid_at = orders[payment["order_id"]], EPOCH + timedelta(microseconds=payment["paid_at"])
        placed_at = moment(order["placed_at"])
        if placed_at <= paid_at <= placed_at + IN_TIME:
            found.append(
                {
                    "order_id": payment["order_id"],
                    "customer_id": payment["customer_id"],
                    "amount": payment["amount"],
                    "method": payment["method"],
                    "channel": order["channel"],
                    "lines": order["lines"],
                    "placed_at": placed_at,
                    "paid_at": paid_at,
                }
            )
    return found


def _sales(completed: Rows) -> Rows:
    found: dict[str, Row] = {}
    for line in (line for order in completed for line in order["lines"]):
        row = found.setdefault(
            line["sku"], {"sku": line["sku"], "order_lines": 0, "pieces": 0, "sold_for": Decimal(0)}
        )
        row["order_lines"] += 1
        row["pieces"] += line["quantity"]
        row["sold_for"] += line["quantity"] * line["unit_price"]
    return list(found.values())


def _customers(completed: Rows) -> Rows:
    found: dict[str, Row] = {}
    for order in completed:
        row = found.setdefault(
            order["customer_id"],
            {"customer_id": order["customer_id"], "orders": 0, "spent": Decimal(0), "last_order": None},
        )
        row["orders"] += 1
        row["spent"] += order["amount"]
        row["last_order"] = max(row["last_order"] or order["placed_at"], order["placed_at"])
    return list(found.values())


ORDERS = World(
    name="orders",
    limit=5_000,
    seed=7,
    totals={
        "orders": "total",
        "payments": "amount",
        "products": "in_stock",
        "customers": "points",
        "completed_orders": "amount",
        "product_sales": "sold_for",
        "customer_snapshot": "spent",
    },
    products=products,
)
