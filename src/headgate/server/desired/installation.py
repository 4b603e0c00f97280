"""The ports of planning and applying on this server's own services."""

from collections.abc import Mapping

from headgate.apply.model import Observed, Owner, Plan, Ref
from headgate.apply.ports import Installation, Part
from headgate.config import Settings
from headgate.kafka.offsets import Offsets
from headgate.kafka.topics import Topics
from headgate.registry.client import SchemaSource
from headgate.server.api.exports import ExportDesk
from headgate.server.api.storage import StorageDesk
from headgate.server.desired.credentials import CredentialPart
from headgate.server.desired.exports import ExportPart
from headgate.server.desired.generators import GeneratorPart
from headgate.server.desired.places import CatalogPart, StoragePart
from headgate.server.desired.secrets import check_secrets
from headgate.server.desired.statements import StatementPart
from headgate.server.desired.tables import TablePart
from headgate.server.desired.topics import SchemaPart, TopicPart
from headgate.statements.declared import DeclaredTables
from headgate.statements.execute import Executor
from headgate.storage import Storages
from headgate.store import Generators, Integrations, Statements, Store, Worlds


class StoredOwners:
    """Owners in the control state."""

    def __init__(self, worlds: Worlds) -> None:
        self._worlds = worlds

    def all(self) -> Mapping[Ref, Owner]:
        return {Ref(one.kind, one.name): Owner(one.world, one.spec) for one in self._worlds.all()}

    def claim(self, ref: Ref, owner: Owner) -> None:
        self._worlds.claim(ref.kind, ref.name, owner.world, owner.spec)

    def release(self, ref: Ref) -> None:
        self._worlds.release(ref.kind, ref.name)


def installation_of(
    settings: Settings,
    store: Store,
    topics: Topics,
    offsets: Offsets,
    schemas: SchemaSource,
    declared: DeclaredTables,
    executor: Executor,
    desk: StorageDesk,
    exports: ExportDesk,
) -> Installation:
    """This Headgate, as far as files have a say in it."""
    statements = StatementPart(Statements(store.engine), declared, executor)
    storages = Storages(store.engine)
    parts: dict[str, Part] = {
        "storage": StoragePart(storages, desk),
        "schemas": SchemaPart(schemas),
        "topics": TopicPart(topics, declared, executor),
        "statements": statements,
        "tables": TablePart(store, topics, offsets, settings.catalog.uri is None),
        "catalogs": CatalogPart(Integrations(store.engine), settings, storages),
        "exports": ExportPart(exports),
        "credentials": CredentialPart(store),
        "generators": GeneratorPart(Generators(store.engine)),
    }

    def check(plan: Plan, observed: Observed) -> None:
        check_secrets(plan, settings)
        statements.check(plan, observed)

    return Installation(parts, StoredOwners(Worlds(store.engine)), check)
