"""The Delta log of a table: its actions, its files, and what of Iceberg's metadata becomes of them."""
