"""The Avro schemas of the scenario `orders`."""

from typing import Any

from headgate.datagen.scenario import Schema

CATEGORIES = ("BOATS", "CAMPING", "CLOTHING", "NAVIGATION", "PROVISIONS")
TIERS = ("BASIC", "REGULAR", "PATRON")
CHANNELS = ("WEB", "APP", "STORE", "PHONE")
METHODS = ("CARD", "TRANSFER", "WALLET", "INVOICE")


def _field(name: str, kind: Any, doc: str = "") -> dict[str, Any]:
    field: dict[str, Any] = {"name": name, "type": kind}
    if doc:
        field["doc"] = doc
    if isinstance(kind, list):
        field["default"] = None
    return field


def _record(name: str, *fields: dict[str, Any], doc: str = "") -> Schema:
    found: Schema = {"type": "record", "name": name, "fields": list(fields)}
    return found | ({"doc": doc, "namespace": "headgate.orders"} if doc else {})


def _enum(name: str, symbols: tuple[str, ...]) -> Schema:
    return {"type": "enum", "name": name, "symbols": list(symbols)}


def _decimal(precision: int) -> Schema:
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": 2}


def _optional(kind: Any) -> list[Any]:
    return ["null", kind]


MILLIS = {"type": "long", "logicalType": "timestamp-millis"}
MICROS = {"type": "long", "logicalType": "timestamp-micros"}
DATE = {"type": "int", "logicalType": "date"}
TEXTS = {"type": "map", "values": "string"}

ADDRESS = _record(
    "Address",
    _field("street", "string"),
    _field("house_number", "int"),
    _field("town", "string"),
    _field("postcode", _optional("string")),
    _field("country", "string", "ISO 3166, two letters."),
)

CUSTOMER = _record(
    "Customer",
    _field("customer_id", "string"),
    _field("full_name", "string"),
    _field("email", "string"),
    _field("tier", _enum("Tier", TIERS)),
    _field("born_on", _optional(DATE)),
    _field("home", ADDRESS),
    _field("newsletter", "boolean"),
    _field("points", "int"),
    _field("labels", TEXTS),
    _field("registered_at", MILLIS),
    _field("updated_at", MICROS),
    doc="A customer, as of updated_at. The key is customer_id.",
)

PRODUCT = _record(
    "Product",
    _field("sku", "string"),
    _field("title", "string"),
    _field("category", _enum("Category", CATEGORIES)),
    _field("unit_price", _decimal(10)),
    _field("weight_kg", "double"),
    _field("in_stock", "long"),
    _field("colours", {"type": "array", "items": "string"}),
    _field(
        "packaging",
        _optional(_record("Packaging", _field("length_mm", "int"), _field("fragile", "boolean"))),
    ),
    _field("discontinued", "boolean"),
    _field("updated_at", MILLIS),
    doc="A product, as of updated_at. The key is sku.",
)

ORDER_LINE = _record(
    "OrderLine",
    _field("sku", "string"),
    _field("quantity", "int"),
    _field("unit_price", _decimal(10), "The product's price when the order was placed."),
)

ORDER = _record(
    "Order",
    _field("order_id", "long"),
    _field("customer_id", "string"),
    _field("placed_at", MILLIS),
    _field("channel", _enum("Channel", CHANNELS)),
    _field("lines", {"type": "array", "items": ORDER_LINE}),
    _field("voucher", _optional(_decimal(8)), "Taken off the sum of the lines."),
    _field("total", _decimal(12)),
    _field("ship_to", ADDRESS),
    _field("deliver_by", _optional(DATE)),
    _field("note", _optional("string")),
    _field("express", "boolean"),
    _field("tags", TEXTS),
    doc="An order that was placed. The key is order_id, as text.",
)

PAYMENT = _record(
    "Payment",
    _field("payment_id", "string"),
    _field("order_id", "long"),
    _field("customer_id", "string"),
    _field("amount", _decimal(12)),
    _field("method", _enum("Method", METHODS)),
    _field("card_ending", _optional("string")),
    _field("paid_at", MICROS),
    _field("confirmation", "string"),
    _field("fee", "double"),
    _field("risk", "float"),
    doc="A payment of an order, perhaps not for the first time. The key is order_id, as text.",
)

SCHEMAS = {"customers": CUSTOMER, "products": PRODUCT, "orders": ORDER, "payments": PAYMENT}
