"""`python -m headgate.export`: runs exports by their schedules, while there are any."""

import hashlib
import logging
import os
import threading
from contextlib import closing

from headgate.embedded.entry import enter, stop_on_signal
from headgate.embedded.runtime import Runtime
from headgate.embedded.secrets import ENGINE_KEY, EXPORT_KEY, QUERY_KEY, secret
from headgate.errors import ConfigError
from headgate.export.incremental import kind_of
from headgate.export.lake import CatalogTables
from headgate.export.links import Links, address_of
from headgate.export.mail import Mailer
from headgate.export.notify import Notifier
from headgate.export.places import Destinations
from headgate.export.rows import QueryRows
from headgate.export.run import Surroundings
from headgate.export.service import ExportService, Scheduler, Worker
from headgate.export.tags import personal_fields
from headgate.registry.client import SchemaSource
from headgate.storage import Storages
from headgate.storage.aws import Clients
from headgate.store import Exports, Store

NAME = "export"
BEAT_SECONDS = 2.0
# A batch that is written, a mail that is on its way.
GRACE_SECONDS = 10.0
log = logging.getLogger("headgate.export")


def main() -> int:
    runtime, instance = enter("headgate.export", __doc__)
    return run(runtime, instance, stop_on_signal())


def run(runtime: Runtime, instance: str, stop: threading.Event) -> int:
    """Until told to stop, or another process has taken its place."""
    store = Store.open(runtime.settings.store_url)
    with closing(store):
        store.beat(NAME, instance, os.getpid(), "starting")
        service = make_service(runtime, store, stop)
        service.start()
        log.info("ready")
        while store.keep(NAME, instance, "ready") and not stop.wait(BEAT_SECONDS):
            pass
        stop.set()
        service.join(GRACE_SECONDS)
    return 0


def make_service(runtime: Runtime, store: Store, stop: threading.Event) -> ExportService:
    settings = runtime.settings
    if settings.catalog.uri is not None:
        raise ConfigError("Exports read tables of the embedded catalog, and catalog.uri names another.")
    exports = Exports(store.engine)
    key = secret(runtime.data, ENGINE_KEY)
    around = Surroundings(
        CatalogTables(runtime.iceberg, key),
        QueryRows(store, secret(runtime.data, QUERY_KEY), key, stop),
        settings.secret,
        destinations_of(runtime, store).of,
        settings.namespace,
        lambda table: kind_of(store, settings.namespace, table),
        exports.last_increment,
        personal_fields(SchemaSource(runtime.registry_access), store, settings.namespace),
    )
    notifier = notifier_of(runtime, store)
    home = hashlib.sha256(secret(runtime.data, EXPORT_KEY).encode()).hexdigest()[:16]
    # The supervisor has ended the process before this one, and all that it had started.
    exports.release_all(home)
    workers = [
        Worker(exports, around, notifier, settings.export.retry, stop, home)
        for _ in range(settings.export.workers)
    ]
    return ExportService(Scheduler(exports), workers, stop)


def destinations_of(runtime: Runtime, store: Store) -> Destinations:
    return Destinations(runtime.settings.export_folder, Storages(store.engine), Clients().of)


def notifier_of(runtime: Runtime, store: Store) -> Notifier:
    settings = runtime.settings
    mailer = Mailer(settings.export.smtp, settings.secret)
    read = destinations_of(runtime, store).read
    return Notifier(mailer, links_of(runtime), settings.secret, settings.export.link_lifetime, read)


def links_of(runtime: Runtime) -> Links:
    return Links(secret(runtime.data, EXPORT_KEY), address_of(runtime))
