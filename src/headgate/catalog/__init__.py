"""The embedded Iceberg REST catalog, and how clients reach it or one of yours."""
