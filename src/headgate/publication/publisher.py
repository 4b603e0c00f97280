"""Keeps outside catalogs up to date, beside the data and never in its way.

Batches do not know of it. It looks at the tables from time to time, as any other client of the catalog would,
and has each outside catalog follow in a thread of that catalog's own.
"""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from headgate.publication.catalogs import open_catalog
from headgate.publication.outside import OutsideCatalog
from headgate.publication.worker import Tables, Worker
from headgate.storage import Storages
from headgate.store import IntegrationRecord, Integrations, Store

log = logging.getLogger(__name__)

# How often to look whether somebody wants something else.
WANTS_SECONDS = 1.0


@dataclass
class _Running:
    thread: threading.Thread
    wake: threading.Event = field(default_factory=threading.Event)
    stamp: str = ""


class Publisher:
    """Runs until `ended`. Its threads do not hold up the end of their process."""

    def __init__(
        self,
        store: Store,
        tables: Tables,
        cluster: str,
        secret: Callable[[str], str],
        interval: float,
    ) -> None:
        self._store = store
        self._integrations = Integrations(store.engine)
        self._storages = Storages(store.engine)
        self._tables = tables
        self._cluster = cluster
        self._secret = secret
        self._interval = interval
        self._running: dict[str, _Running] = {}

    def run(self, ended: threading.Event) -> None:
        while not ended.is_set():
            try:
                self._reconcile(ended)
            except Exception:
                log.exception("Outside catalogs cannot be looked after now")
            ended.wait(min(WANTS_SECONDS, self._interval))
        for running in self._running.values():
            running.wake.set()

    def _reconcile(self, ended: threading.Event) -> None:
        for record in self._integrations.all():
            running = self._running.get(record.name)
            if running is None or not running.thread.is_alive():
                self._start(record, ended)
            elif running.stamp != record.stamp:
                running.stamp = record.stamp
                running.wake.set()

    def _start(self, record: IntegrationRecord, ended: threading.Event) -> None:
        wake = threading.Event()
        thread = threading.Thread(
            target=self._work, args=(record.name, wake, ended), name=f"catalog {record.name}", daemon=True
        )
        self._running[record.name] = _Running(thread, wake, record.stamp)
        thread.start()

    def _work(self, name: str, wake: threading.Event, ended: threading.Event) -> None:
        worker = Worker(self._integrations, self._tables, self._connect, self._store.tables)
        try:
            while not ended.is_set():
                found = [one for one in self._integrations.all() if one.name == name]
                if not found or not self._round(worker, found[0], ended):
                    break
                wake.wait(self._interval)
                wake.clear()
        finally:
            worker.close()

    def _round(self, worker: Worker, record: IntegrationRecord, ended: threading.Event) -> bool:
        try:
            return worker.round(record)
        except Exception as error:
            if ended.is_set():
                return False  # the driver or the store is closed already
            # Whatever it is: this catalog tries again, the others and the data go on.
            log.exception("Catalog '%s' failed", record.name)
            worker.stumbled(record, error)
            return True

    def _connect(self, record: IntegrationRecord) -> OutsideCatalog:
        return open_catalog(record.kind, record.options, self._cluster, self._secret, self._storages.get)
