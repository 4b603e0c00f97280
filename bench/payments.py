"""Payments for the benchmarks: small Avro records of six fields, as fast as one process makes them."""

import json
import struct

from confluent_kafka import Producer
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

from headgate.kafka.topics import Topics

TOPIC = "payments"
SCHEMA = json.dumps(
    {
        "type": "record",
        "name": "Payment",
        "fields": [
            {"name": "payment_id", "type": "string"},
            {"name": "order_id", "type": "int"},
            {"name": "customer_id", "type": "int"},
            {"name": "amount", "type": "double"},
            {"name": "method", "type": ["null", "string"], "default": None},
            {"name": "paid_at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        ],
    }
)
BASE_MS = 1_760_000_000_000


def produce(bootstrap: str, registry: str, count: int, first: int = 0, topic: str = TOPIC) -> None:
    """`count` payments numbered from `first`, acknowledged by the broker."""
    topics = Topics(bootstrap)
    if topic not in topics.describe_many([topic]):
        topics.create(topic, 4)
    client = SchemaRegistryClient({"url": registry})
    schema_id: int = client.register_schema(f"{topic}-value", Schema(SCHEMA, "AVRO"))
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "linger.ms": 50,
            "compression.type": "lz4",
            "queue.buffering.max.messages": 1_000_000,
            "queue.buffering.max.kbytes": 1_000_000,
        }
    )
    header = b"\x00" + schema_id.to_bytes(4, "big")
    for number in range(first, first + count):
        while True:
            try:
                producer.produce(topic, header + encode(number), str(number % 500_000))
                break
            except BufferError:
                producer.poll(0.1)
        if number % 10_000 == 0:
            producer.poll(0)
    if producer.flush(120):
        raise SystemExit("some payments were not acknowledged")


def encode(number: int) -> bytes:
    """One payment in Avro's binary form, by hand: the generator must not be what is measured."""
    name = b"p-%d" % number
    method = b"\x02\x08card" if number % 3 else b"\x00"
    return b"".join(
        (
            _zigzag(len(name)),
            name,
            _zigzag(number % 500_000),
            _zigzag(number % 10_007),
            struct.pack("<d", (number % 9_973) / 7),
            method,
            _zigzag(BASE_MS + number),
        )
    )


def _zigzag(value: int) -> bytes:
    value <<= 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)
