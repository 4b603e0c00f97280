"""Control state: what is wanted, and where it stands."""

from headgate.store.export_records import ExportRecord, RunRecord, RunState
from headgate.store.exports import Exports
from headgate.store.generators import GeneratorRecord, Generators, GeneratorState
from headgate.store.integrations import (
    IntegrationRecord,
    Integrations,
    IntegrationState,
    PublicationRecord,
    PublicationState,
)
from headgate.store.sql_objects import SqlObjects
from headgate.store.statements import StatementRecord, Statements
from headgate.store.store import ProcessRecord, Request, Store, TableRecord, TableStatus
from headgate.store.worlds import WorldObject, Worlds

__all__ = [
    "ExportRecord",
    "Exports",
    "GeneratorRecord",
    "GeneratorState",
    "Generators",
    "IntegrationRecord",
    "IntegrationState",
    "Integrations",
    "ProcessRecord",
    "PublicationRecord",
    "PublicationState",
    "Request",
    "RunRecord",
    "RunState",
    "SqlObjects",
    "StatementRecord",
    "Statements",
    "Store",
    "TableRecord",
    "TableStatus",
    "WorldObject",
    "Worlds",
]
