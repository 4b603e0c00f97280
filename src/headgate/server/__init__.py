"""The server process: control API, Iceberg REST catalog, schema registry, metrics, console."""
