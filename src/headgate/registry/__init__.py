"""Schemas: the embedded registry (Confluent's API), and the engine's client to any such registry."""
