"""Kafka as the rest of Headgate sees it: topics, and offsets in them."""

from headgate.kafka.access import KafkaAccess
from headgate.kafka.offsets import Offsets
from headgate.kafka.topics import Topics

__all__ = ["KafkaAccess", "Offsets", "Topics"]
