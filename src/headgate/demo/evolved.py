"""The orders of a shop that has learned something: its payments have a field more."""

from collections.abc import Iterator
from typing import Any

from headgate.datagen.orders import Orders
from headgate.datagen.orders_schemas import SCHEMAS, avro_field, optional
from headgate.datagen.scenario import Record, Schema

FIELD = "instalments"


def _with_field(schema: Schema) -> Schema:
    return schema | {"fields": [*schema["fields"], avro_field(FIELD, optional("int"))]}


EVOLVED_SCHEMAS = {**SCHEMAS, "payments": _with_field(SCHEMAS["payments"])}


class EvolvedOrders(Orders):
    """The scenario `orders`, whose payments tell in how many instalments they are made."""

    schemas = EVOLVED_SCHEMAS

    def _tell(self, limit: int | None) -> Iterator[Record]:
        for record in super()._tell(limit):
            yield record._replace(value=_evolved(record.value)) if record.topic == "payments" else record


def _evolved(payment: dict[str, Any]) -> dict[str, Any]:
    return payment | {FIELD: None if payment["method"] == "INVOICE" else 1 + payment["order_id"] % 3}
