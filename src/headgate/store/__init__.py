"""Control state: what is wanted, and where it stands."""

from headgate.store.store import ProcessRecord, Store, TableRecord, TableStatus

__all__ = ["ProcessRecord", "Store", "TableRecord", "TableStatus"]
