"""The Avro schemas of the scenario `hotels`."""

from headgate.datagen.evolve import Evolution
from headgate.datagen.orders_schemas import (
    DATE,
    MILLIS,
    avro_enum,
    avro_field,
    avro_record,
    decimal,
    optional,
)
from headgate.datagen.times import DAY_MS

CATEGORIES = ("HOUSEBOAT", "INN", "LOCK_HOUSE", "MILL", "WHARF")
ACTIONS = ("SEARCH", "LOOK", "COMPARE", "BOOK")
NAMESPACE = "headgate.hotels"

GUEST = avro_record(
    "Guest",
    avro_field("mail", "string"),
    avro_field("guest_id", "string"),
    avro_field("given_name", "string"),
    avro_field("family_name", "string"),
    avro_field("born_on", DATE),
    avro_field("tier", "string"),
    avro_field("created_at", "string", "ISO 8601, in UTC, to the millisecond."),
    avro_field("updated_at", "string", "ISO 8601, in UTC, to the millisecond."),
    doc="A guest, as of updated_at. The key is mail.",
    namespace=NAMESPACE,
)

HOTEL = avro_record(
    "Hotel",
    avro_field("hotel_id", "string"),
    avro_field("name", "string"),
    avro_field("category", avro_enum("Category", CATEGORIES)),
    avro_field("town", "string"),
    avro_field("country", "string", "ISO 3166, two letters."),
    avro_field("rooms", "int"),
    avro_field("free_rooms", "int"),
    avro_field("created_at", "string", "ISO 8601, in UTC, to the millisecond."),
    avro_field("updated_at", "string", "ISO 8601, in UTC, to the millisecond."),
    doc="A hotel, as of updated_at. The key is hotel_id.",
    namespace=NAMESPACE,
)

BOOKING = avro_record(
    "Booking",
    avro_field("booking_id", "long"),
    avro_field("guest_mail", "string"),
    avro_field("hotel_id", "string"),
    avro_field("check_in", "long", "Milliseconds since 1970, and nothing says so."),
    avro_field("check_out", "long", "Milliseconds since 1970, and nothing says so."),
    avro_field("guests", "int"),
    avro_field("price", decimal(10)),
    avro_field("booked_at", MILLIS),
    doc="A booking, perhaps not for the first time. The key is booking_id, as text.",
    namespace=NAMESPACE,
)

REVIEW = avro_record(
    "Review",
    avro_field("review_id", "string"),
    avro_field("booking_id", "long"),
    avro_field("hotel_id", "string"),
    avro_field("stars", "int"),
    avro_field("words", optional("string")),
    avro_field("written_at", MILLIS),
    doc="What a guest says of a stay. The key is booking_id, as text.",
    namespace=NAMESPACE,
)

CLICK = avro_record(
    "Click",
    avro_field("click_id", "string"),
    avro_field("guest_mail", "string"),
    avro_field("hotel_id", optional("string")),
    avro_field("action", avro_enum("Action", ACTIONS)),
    avro_field("clicked_at", MILLIS),
    doc="A step of a visitor. The key is guest_mail.",
    namespace=NAMESPACE,
)

SCHEMAS = {"guests": GUEST, "hotels": HOTEL, "bookings": BOOKING, "reviews": REVIEW, "clicks": CLICK}

# What --evolve makes of them.
EVOLUTIONS = {
    "guests": Evolution(
        added=avro_field("newsletter", optional("boolean")), computed=lambda row: row["tier"] != "DAY"
    ),
    "hotels": Evolution(widened=(("rooms",), ("free_rooms",))),
    "bookings": Evolution(
        added=avro_field("nights", optional("int")),
        computed=lambda row: (row["check_out"] - row["check_in"]) // DAY_MS,
        widened=(("guests",),),
    ),
    "reviews": Evolution(renamed={"words": "comment"}),
    "clicks": Evolution(
        added=avro_field("device", optional("string")),
        computed=lambda row: None if row["action"] == "BOOK" else "phone",
    ),
}
