"""The Avro schemas of the scenario `orders`."""

from typing import Any

from headgate.datagen.evolve import Evolution
from headgate.datagen.scenario import Schema

CATEGORIES = ("BOATS", "CAMPING", "CLOTHING", "NAVIGATION", "PROVISIONS")
TIERS = ("BASIC", "REGULAR", "PATRON")
CHANNELS = ("WEB", "APP", "STORE", "PHONE")
METHODS = ("CARD", "TRANSFER", "WALLET", "INVOICE")


def avro_field(name: str, kind: Any, doc: str = "") -> dict[str, Any]:
    field: dict[str, Any] = {"name": name, "type": kind}
    if doc:
        field["doc"] = doc
    if isinstance(kind, list):
        field["default"] = None
    return field


def avro_record(
    name: str, *fields: dict[str, Any], doc: str = "", namespace: str = "headgate.orders"
) -> Schema:
    found: Schema = {"type": "record", "name": name, "fields": list(fields)}
    return found | ({"doc": doc, "namespace": namespace} if doc else {})


def avro_enum(name: str, symbols: tuple[str, ...]) -> Schema:
    return {"type": "enum", "name": name, "symbols": list(symbols)}


def decimal(precision: int) -> Schema:
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": 2}


def optional(kind: Any) -> list[Any]:
    return ["null", kind]


MILLIS = {"type": "long", "logicalType": "timestamp-millis"}
MICROS = {"type": "long", "logicalType": "timestamp-micros"}
DATE = {"type": "int", "logicalType": "date"}
TEXTS = {"type": "map", "values": "string"}

ADDRESS = avro_record(
    "Address",
    avro_field("street", "string"),
    avro_field("house_number", "int"),
    avro_field("town", "string"),
    avro_field("postcode", optional("string")),
    avro_field("country", "string", "ISO 3166, two letters."),
)

CUSTOMER = avro_record(
    "Customer",
    avro_field("customer_id", "string"),
    avro_field("full_name", "string"),
    avro_field("email", "string"),
    avro_field("tier", avro_enum("Tier", TIERS)),
    avro_field("born_on", optional(DATE)),
    avro_field("home", ADDRESS),
    avro_field("newsletter", "boolean"),
    avro_field("points", "int"),
    avro_field("labels", TEXTS),
    avro_field("registered_at", MILLIS),
    avro_field("updated_at", MICROS),
    doc="A customer, as of updated_at. The key is customer_id.",
)

PRODUCT = avro_record(
    "Product",
    avro_field("sku", "string"),
    avro_field("title", "string"),
    avro_field("category", avro_enum("Category", CATEGORIES)),
    avro_field("unit_price", decimal(10)),
    avro_field("weight_kg", "double"),
    avro_field("in_stock", "long"),
    avro_field("colours", {"type": "array", "items": "string"}),
    avro_field(
        "packaging",
        optional(avro_record("Packaging", avro_field("length_mm", "int"), avro_field("fragile", "boolean"))),
    ),
    avro_field("discontinued", "boolean"),
    avro_field("updated_at", MILLIS),
    doc="A product, as of updated_at. The key is sku.",
)

ORDER_LINE = avro_record(
    "OrderLine",
    avro_field("sku", "string"),
    avro_field("quantity", "int"),
    avro_field("unit_price", decimal(10), "The product's price when the order was placed."),
)

ORDER = avro_record(
    "Order",
    avro_field("order_id", "long"),
    avro_field("customer_id", "string"),
    avro_field("placed_at", MILLIS),
    avro_field("channel", avro_enum("Channel", CHANNELS)),
    avro_field("lines", {"type": "array", "items": ORDER_LINE}),
    avro_field("voucher", optional(decimal(8)), "Taken off the sum of the lines."),
    avro_field("total", decimal(12)),
    avro_field("ship_to", ADDRESS),
    avro_field("deliver_by", optional(DATE)),
    avro_field("note", optional("string")),
    avro_field("express", "boolean"),
    avro_field("tags", TEXTS),
    doc="An order that was placed. The key is order_id, as text.",
)

PAYMENT = avro_record(
    "Payment",
    avro_field("payment_id", "string"),
    avro_field("order_id", "long"),
    avro_field("customer_id", "string"),
    avro_field("amount", decimal(12)),
    avro_field("method", avro_enum("Method", METHODS)),
    avro_field("card_ending", optional("string")),
    avro_field("paid_at", MICROS),
    avro_field("confirmation", "string"),
    avro_field("fee", "double"),
    avro_field("risk", "float"),
    doc="A payment of an order, perhaps not for the first time. The key is order_id, as text.",
)

SCHEMAS = {"customers": CUSTOMER, "products": PRODUCT, "orders": ORDER, "payments": PAYMENT}

# What --evolve makes of them.
EVOLUTIONS = {
    "orders": Evolution(
        added=avro_field("currency", optional("string"), "ISO 4217."),
        computed=lambda row: "EUR" if row["channel"] != "PHONE" else None,
        widened=(("lines", "quantity"),),
    ),
    "payments": Evolution(
        added=avro_field("provider", optional("string")),
        computed=lambda row: {"CARD": "sluice-pay", "WALLET": "purse"}.get(row["method"]),
        renamed={"confirmation": "confirmation_code"},
    ),
    "customers": Evolution(
        added=avro_field("language", optional("string"), "ISO 639, two letters."),
        computed=lambda row: row["home"]["country"].lower(),
        widened=(("points",),),
    ),
}
