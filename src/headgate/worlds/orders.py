"""The orders world: payments once, orders paid in time, what was sold, and customers as they stand."""

from collections.abc import Mapping, Sequence
from decimal import Decimal

from headgate.datagen.scenario import Record
from headgate.worlds.world import HOUR_MS, Row, Rows, World, first_of, moment, values_of

IN_TIME_MS = 96 * HOUR_MS


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
        order, paid_ms = orders[payment["order_id"]], payment["paid_at"] // 1000
        if 0 <= paid_ms - order["placed_at"] <= IN_TIME_MS:
            found.append(
                {
                    "order_id": payment["order_id"],
                    "customer_id": payment["customer_id"],
                    "amount": payment["amount"],
                    "method": payment["method"],
                    "channel": order["channel"],
                    "lines": order["lines"],
                    "placed_at": moment(order["placed_at"]),
                    "paid_at": moment(paid_ms),
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
