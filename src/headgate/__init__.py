"""Headgate turns Kafka topics into Iceberg tables, exactly once."""

__version__ = "0.1.0"
