"""The tables of the catalog's database.

The first two are JdbcCatalog's, which creates them; the others are ours, in the same file so that one SQL
transaction covers them all.
"""

from sqlalchemy import Boolean, Column, Engine, Float, Integer, MetaData, String, Table

CATALOG = "headgate"  # the catalog_name column: one database holds one catalog

_icebergs = MetaData()
_ours = MetaData()

tables = Table(
    "iceberg_tables",
    _icebergs,
    Column("catalog_name", String, primary_key=True),
    Column("table_namespace", String, primary_key=True),
    Column("table_name", String, primary_key=True),
    Column("metadata_location", String),
    Column("previous_metadata_location", String),
    Column("iceberg_type", String),
)
namespaces = Table(
    "iceberg_namespace_properties",
    _icebergs,
    Column("catalog_name", String, primary_key=True),
    Column("namespace", String, primary_key=True),
    Column("property_key", String, primary_key=True),
)

# Kept apart from the snapshots, which expire: a batch that comes again years later is still recognised.
batches = Table(
    "headgate_batches",
    _ours,
    Column("table_uuid", String, primary_key=True),
    Column("batch_id", String, primary_key=True),
    sqlite_with_rowid=False,
)
# A table dropped without purge leaves its files and its row; the next table of that name goes elsewhere.
locations = Table(
    "headgate_locations",
    _ours,
    Column("table_uuid", String, primary_key=True),
    Column("location", String, nullable=False),
    Column("live", Boolean, nullable=False),
)
# Tables that readers are not shown.
internal = Table(
    "headgate_internal",
    _ours,
    Column("table_namespace", String, primary_key=True),
    Column("table_name", String, primary_key=True),
)
outcomes = Table(
    "headgate_idempotency",
    _ours,
    Column("key", String, primary_key=True),
    Column("fingerprint", String, nullable=False),
    Column("status", Integer, nullable=False),
    Column("metadata_location", String),
    Column("body", String),
    Column("created_at", Float, nullable=False, index=True),
)


def create_all(engine: Engine) -> None:
    _ours.create_all(engine)
