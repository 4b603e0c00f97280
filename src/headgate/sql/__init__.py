"""Streaming SQL: its language, and its plans on Spark's own operators."""
