"""The Avro schemas of the scenario `sales`."""

from headgate.datagen.evolve import Evolution
from headgate.datagen.orders_schemas import (
    CATEGORIES,
    MILLIS,
    avro_enum,
    avro_field,
    avro_record,
    decimal,
    optional,
)

STEPS = ("VIEWED", "RESERVED", "BOUGHT", "RETURNED")
NAMESPACE = "headgate.sales"

PRODUCT = avro_record(
    "SoldProduct",
    avro_field("sku", "string"),
    avro_field("title", "string"),
    avro_field("category", avro_enum("SoldCategory", CATEGORIES)),
    avro_field("unit_price", decimal(10)),
)

ORDER = avro_record(
    "SalesOrder",
    avro_field("order_id", "long"),
    avro_field("quantity", "int"),
    avro_field("total", decimal(12)),
    avro_field("coupon", optional("string")),
)

CONTACT = avro_record(
    "Contact",
    avro_field("email", "string"),
    avro_field("phone", optional("string")),
)

CUSTOMER = avro_record(
    "Buyer",
    avro_field("customer_id", "string"),
    avro_field("full_name", "string"),
    avro_field("contact", CONTACT),
    avro_field("town", "string"),
    avro_field("country", "string", "ISO 3166, two letters."),
)

EVENT = avro_record(
    "SalesEvent",
    avro_field("event_id", "string"),
    avro_field("step", avro_enum("Step", STEPS)),
    avro_field("stand", "string", "The stall, shop or boat where it happened."),
    avro_field("happened_at", MILLIS),
    avro_field("product", PRODUCT),
    avro_field("order", optional(ORDER), "None for what was only viewed."),
    avro_field("customer", CUSTOMER),
    doc="A step of a sale with all that is known of it, perhaps not for the first time. Key: event_id.",
    namespace=NAMESPACE,
)

SCHEMAS = {"sales": EVENT}

# What --evolve makes of them.
EVOLUTIONS = {
    "sales": Evolution(
        added=avro_field("consent", optional("boolean"), "Whether the buyer may be written to."),
        computed=lambda row: row["customer"]["contact"]["phone"] is not None,
        inside=("customer", "contact"),
        widened=(("order", "quantity"),),
    )
}
