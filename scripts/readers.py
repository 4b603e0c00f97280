"""Engines that are not ours, pointed at the catalog, as the demo has them."""

from headgate.demo.readers import attach, duckdb_on, duckdb_with, pyiceberg_on

__all__ = ["attach", "duckdb_on", "duckdb_with", "pyiceberg_on"]
