"""Bytes of records become columns."""
