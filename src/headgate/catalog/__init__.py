"""The embedded Iceberg REST catalog, and how clients reach it or one of yours."""

from headgate.catalog.client import catalog_properties
from headgate.catalog.embedded import EmbeddedCatalog
from headgate.catalog.routes import catalog_router

__all__ = ["EmbeddedCatalog", "catalog_properties", "catalog_router"]
