"""Control state: what is wanted, and where it stands."""

from headgate.store.sql_objects import SqlObjects
from headgate.store.statements import StatementRecord, Statements
from headgate.store.store import ProcessRecord, Request, Store, TableRecord, TableStatus

__all__ = [
    "ProcessRecord",
    "Request",
    "SqlObjects",
    "StatementRecord",
    "Statements",
    "Store",
    "TableRecord",
    "TableStatus",
]
