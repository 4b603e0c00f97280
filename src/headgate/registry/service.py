"""The embedded schema registry: what Confluent's does, kept in the control database."""

import re
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Engine

from headgate.decode.protos import MalformedProto, serialized
from headgate.registry import registration, settings, storage
from headgate.registry.avro import inlined
from headgate.registry.compatibility import AvroCompatibility, Verdict
from headgate.registry.refusals import (
    MAX_NUMBER,
    compatibility_not_configured,
    contexts_unsupported,
    invalid_schema,
    invalid_version,
    mode_not_configured,
    not_permitted,
    reference_exists,
    schema_not_found,
    subject_not_found,
    subject_not_soft_deleted,
    subject_soft_deleted,
    version_not_found,
    version_not_soft_deleted,
    version_soft_deleted,
)
from headgate.registry.registration import Imported
from headgate.registry.schemas import Schema, SchemaVersion, StoredSchema, check_subject
from headgate.registry.settings import GLOBAL, Mode
from headgate.store.database import reading

LATEST_WORDS = ("latest", "-1")
_DIGITS = re.compile(r"[0-9]{1,10}")


class RegistryService:
    """Schemas by subject. Every method is one transaction, and answers or raises a Refusal."""

    def __init__(self, engine: Engine, compatibility: AvroCompatibility) -> None:
        self._engine = engine
        self._avro = compatibility
        self._registering = threading.Lock()

    # -- registering and looking up

    def register(
        self, subject: str, schema: Schema, normalize: bool = False, imported: Imported | None = None
    ) -> SchemaVersion:
        """The version that holds the schema: a new one, or the one that it is under already."""
        check_subject(subject)
        imported = imported or Imported()
        # Judging takes calls to the JVM, too long to hold the database's write lock. So it is done on what
        # a reader sees, and done again if the registry has changed before the result is written. The lock
        # makes that rare: only other processes can get in between.
        with self._registering:
            while True:
                with reading(self._engine) as connection:
                    found = registration.plan(connection, self._avro, subject, schema, normalize, imported)
                if isinstance(found, SchemaVersion):
                    return found
                try:
                    with storage.writing(self._engine, at=found.revision) as connection:
                        return registration.execute(connection, subject, found)
                except storage.Stale:
                    continue

    def lookup(
        self, subject: str, schema: Schema, normalize: bool = False, deleted: bool = False
    ) -> SchemaVersion:
        check_subject(subject)
        with reading(self._engine) as connection:
            versions = _visible(storage.versions(connection, subject), deleted)
            if not versions:
                raise subject_not_found(subject)
            pinned = registration.pinned(connection, schema)
            normalize = normalize or bool(settings.effective_config(connection, subject).get("normalize"))
            found = registration.find(versions, pinned, normalize)
            found = found or registration.find_same(connection, versions, pinned)
        if found is None:
            raise schema_not_found()
        return found

    def check(self, subject: str, schema: Schema, version: str | None = None) -> Verdict:
        """Whether the schema may follow `version`; none: all that the subject's level looks at."""
        check_subject(subject)
        with reading(self._engine) as connection:
            living = _visible(storage.versions(connection, subject), deleted=False)
            if version is not None and (living or version not in LATEST_WORDS):
                living = [_pick(subject, living, version)]
            resolved = registration.resolve(connection, registration.pinned(connection, schema))
            registration.validate(self._avro, resolved)
            config = settings.effective_config(connection, subject)
            return registration.compare(connection, self._avro, config, resolved, living)

    # -- subjects and versions

    def subjects(self, prefix: str = "", deleted: bool = False, deleted_only: bool = False) -> list[str]:
        with reading(self._engine) as connection:
            states = storage.subject_states(connection, checked_prefix(prefix))
        return [subject for subject, gone in states if (gone if deleted_only else deleted or not gone)]

    def versions(self, subject: str, deleted: bool = False, deleted_only: bool = False) -> list[int]:
        check_subject(subject)
        with reading(self._engine) as connection:
            everything = storage.versions(connection, subject)
        found = [v.version for v in everything if (v.deleted if deleted_only else deleted or not v.deleted)]
        if not found:
            raise subject_not_found(subject)
        return found

    def version(self, subject: str, version: str, deleted: bool = False) -> SchemaVersion:
        check_subject(subject)
        with reading(self._engine) as connection:
            return _pick(subject, _visible(storage.versions(connection, subject), deleted), version)

    def latest_with_metadata(
        self, subject: str, properties: Mapping[str, str], deleted: bool = False
    ) -> SchemaVersion:
        """The newest version whose metadata has all these properties."""
        check_subject(subject)
        with reading(self._engine) as connection:
            versions = _visible(storage.versions(connection, subject), deleted)
        if not versions:
            raise subject_not_found(subject)
        for version in reversed(versions):
            known = (version.schema.metadata or {}).get("properties") or {}
            if properties.items() <= known.items():
                return version
        raise schema_not_found()

    def referenced_by(self, subject: str, version: str) -> list[int]:
        check_subject(subject)
        with reading(self._engine) as connection:
            found = _pick(subject, storage.versions(connection, subject), version)
            return storage.referrers(connection, subject, found.version, deleted=False)

    def delete_subject(self, subject: str, permanent: bool = False) -> list[int]:
        """Soft, unless `permanent`: then all of it must be soft-deleted already."""
        check_subject(subject)
        with storage.writing(self._engine) as connection:
            settings.refuse_when_read_only(connection, subject)
            everything = storage.versions(connection, subject)
            living = _visible(everything, deleted=False)
            if not everything:
                raise subject_not_found(subject)
            if permanent and living:
                raise subject_not_soft_deleted(subject)
            if not permanent and not living:
                raise subject_soft_deleted(subject)
            return self._delete(connection, subject, everything if permanent else living, permanent)

    def delete_version(self, subject: str, version: str, permanent: bool = False) -> int:
        check_subject(subject)
        with storage.writing(self._engine) as connection:
            settings.refuse_when_read_only(connection, subject)
            everything = storage.versions(connection, subject)
            wanted = everything if permanent or version not in LATEST_WORDS else _visible(everything, False)
            found = _pick(subject, wanted, version)
            if permanent and not found.deleted:
                raise version_not_soft_deleted(subject, found.version)
            if not permanent and found.deleted:
                raise version_soft_deleted(subject, found.version)
            return self._delete(connection, subject, [found], permanent)[0]

    def _delete(
        self, connection: Connection, subject: str, versions: Sequence[SchemaVersion], permanent: bool
    ) -> list[int]:
        for version in versions:
            # For good, soft-deleted referrers count too: records written with them are still read.
            ids = storage.referrers(connection, subject, version.version, deleted=permanent)
            if ids:
                raise reference_exists(subject, version.version, ids)
        numbers = [version.version for version in versions]
        if permanent:
            storage.erase(connection, subject, numbers)
            return numbers
        storage.mark_deleted(connection, subject, numbers)
        if not _visible(storage.versions(connection, subject), deleted=False):
            settings.drop_config(connection, subject)
            settings.drop_mode(connection, subject)
        return numbers

    # -- schemas

    def schema(self, schema_id: int) -> StoredSchema:
        """Soft-deleted ones too: records carry their ids for as long as they are kept."""
        with reading(self._engine) as connection:
            found = storage.schema_by_id(connection, schema_id)
        if found is None:
            raise schema_not_found(f"Schema {schema_id}")
        return found

    def schema_by_guid(self, guid: str) -> StoredSchema:
        with reading(self._engine) as connection:
            found = storage.schema_by_guid(connection, guid.lower())
        if found is None:
            raise schema_not_found(f"Schema {guid}")
        return found

    def versions_of(self, schema_id: int, deleted: bool = False) -> list[SchemaVersion]:
        """Where a schema is registered."""
        with reading(self._engine) as connection:
            if storage.schema_by_id(connection, schema_id) is None:
                raise schema_not_found(f"Schema {schema_id}")
            return _visible(storage.versions_of(connection, schema_id), deleted)

    def schemas(
        self, prefix: str = "", deleted: bool = False, latest_only: bool = False
    ) -> list[SchemaVersion]:
        with reading(self._engine) as connection:
            found = _visible(storage.all_versions(connection, checked_prefix(prefix)), deleted)
        if latest_only:
            found = list({version.subject: version for version in found}.values())
        return found

    def newest_id(self) -> int:
        with reading(self._engine) as connection:
            return storage.newest_id(connection)

    def self_contained(self, schema: Schema) -> str:
        """An Avro schema's text with its references put inline."""
        with reading(self._engine) as connection:
            resolved = registration.resolve(connection, schema)
        return inlined(schema.text, resolved.dependencies)

    def serialized(self, schema: Schema) -> str:
        """A Protobuf schema as the base64 of its descriptor."""
        with reading(self._engine) as connection:
            resolved = registration.resolve(connection, schema)
        try:
            return serialized(schema.text, resolved.named)
        except MalformedProto as error:
            raise invalid_schema(str(error)) from error

    # -- settings: of one subject, or of everybody when none is named

    def config(self, subject: str | None, default_to_global: bool = False) -> dict[str, Any]:
        scope = _scope(subject)
        with reading(self._engine) as connection:
            if scope == GLOBAL or default_to_global:
                return settings.effective_config(connection, scope)
            own = settings.own_config(connection, scope)
        if own is None:
            raise compatibility_not_configured(scope)
        return own

    def put_config(self, subject: str | None, config: Mapping[str, Any]) -> None:
        scope = _scope(subject)
        with storage.writing(self._engine) as connection:
            settings.refuse_when_read_only(connection, scope)
            settings.put_config(connection, scope, config)

    def delete_config(self, subject: str | None) -> dict[str, Any]:
        """What was set until now."""
        scope = _scope(subject)
        with storage.writing(self._engine) as connection:
            settings.refuse_when_read_only(connection, scope)
            own = settings.own_config(connection, scope)
            if own is None and scope != GLOBAL:
                raise subject_not_found(scope)
            before = settings.effective_config(connection, scope) if scope == GLOBAL else own
            settings.drop_config(connection, scope)
        return dict(before or {})

    def mode(self, subject: str | None, default_to_global: bool = False) -> Mode:
        scope = _scope(subject)
        with reading(self._engine) as connection:
            if scope == GLOBAL or default_to_global:
                return settings.effective_mode(connection, scope)
            own = settings.own_mode(connection, scope)
        if own is None:
            raise mode_not_configured(scope)
        return own

    def put_mode(self, subject: str | None, mode: Mode, force: bool = False) -> None:
        scope = _scope(subject)
        with storage.writing(self._engine) as connection:
            if mode is Mode.IMPORT and not force and self._holds_schemas(connection, scope):
                raise not_permitted(
                    "Cannot go into import mode: there are schemas already.",
                    "Delete them first, or set force=true.",
                )
            settings.put_mode(connection, scope, mode)

    def delete_mode(self, subject: str | None) -> Mode:
        """What was set until now."""
        scope = _scope(subject)
        with storage.writing(self._engine) as connection:
            own = settings.own_mode(connection, scope)
            if own is None and scope != GLOBAL:
                raise subject_not_found(scope)
            settings.drop_mode(connection, scope)
        return own or Mode.READWRITE

    def _holds_schemas(self, connection: Connection, scope: str) -> bool:
        if scope == GLOBAL:
            return any(not gone for _, gone in storage.subject_states(connection, ""))
        return bool(_visible(storage.versions(connection, scope), deleted=False))


def checked_prefix(prefix: str) -> str:
    if prefix.startswith(":."):
        raise contexts_unsupported(prefix)
    # Clients ask so for the subjects of all contexts; there is one.
    return prefix.removeprefix(":*:")


def _scope(subject: str | None) -> str:
    if subject is None:
        return GLOBAL
    check_subject(subject)
    return subject


def _visible(versions: Sequence[SchemaVersion], deleted: bool) -> list[SchemaVersion]:
    return [version for version in versions if deleted or not version.deleted]


def _pick(subject: str, versions: Sequence[SchemaVersion], wanted: str) -> SchemaVersion:
    """The version that a client names: a number, or the latest."""
    if wanted not in LATEST_WORDS and not (_DIGITS.fullmatch(wanted) and 1 <= int(wanted) <= MAX_NUMBER):
        raise invalid_version(wanted)
    if not versions:
        raise subject_not_found(subject)
    if wanted in LATEST_WORDS:
        return versions[-1]
    for version in versions:
        if version.version == int(wanted):
            return version
    raise version_not_found(wanted)
