"""Two engines, lost replies, lost scratch: the table equals the ledger all the same."""

import shutil
import signal
import threading
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import unquote, urlsplit

import httpx

from headgate.datagen.orders import Orders
from headgate.datagen.orders_schemas import SCHEMAS
from headgate.datagen.produce import produce
from headgate.model import BATCH_KEY, TableSpec
from scripts.readers import pyiceberg_on
from tests.support.ledger import Ledger
from tests.support.proxy import is_batch, proxy
from tests.support.services import Services, wait_for

ORDERS = 400


def produce_orders(services: Services, prefix: str, seed: int, ledger: Ledger) -> str:
    """Some orders; the topic of their payments."""
    runtime = services.runtime
    produce(
        Orders(seed),
        runtime.kafka,
        runtime.registry,
        limit=ORDERS,
        prefix=prefix,
        ledger=ledger,
    )
    return f"{prefix}payments"


def live_files(services: Services, topic: str) -> list[Path]:
    """Every data file that the table's newest snapshot names."""
    table = pyiceberg_on(services.runtime.iceberg).load_table(("local", topic))
    return [Path(unquote(urlsplit(task.file.file_path).path)) for task in table.scan().plan_files()]


def snapshots_with_rows(services: Services, topic: str) -> list[str | None]:
    table = pyiceberg_on(services.runtime.iceberg).load_table(("local", topic))
    found = [s.summary for s in table.snapshots() if s.summary is not None]
    return [s[BATCH_KEY] for s in found if s.additional_properties.get("added-records")]


def test_an_engine_stopped_and_woken_writes_nothing_twice(services: Services) -> None:
    """The first engine is stopped with its commit on the way; a second does its work; the first is woken."""
    ledger = Ledger(SCHEMAS)
    topic = produce_orders(services, "woken.", 1, ledger)
    held, go_on = threading.Event(), threading.Event()

    def hold(method: str, path: str, body: bytes) -> None:
        if is_batch(method, body) and not held.is_set():
            held.set()
            assert go_on.wait(120)

    with ExitStack() as running:
        iceberg = running.enter_context(proxy(services.runtime.iceberg, hold, lambda *_: True))
        services.store.enable_table(TableSpec(topic, freshness_seconds=1))
        first = running.enter_context(services.engine(iceberg))
        assert held.wait(60), "the first engine never committed"
        first.signal(signal.SIGSTOP)

        second = running.enter_context(services.engine())
        services.sync(topic)
        ledger.check(topic, services.runtime.iceberg)
        before = set(live_files(services, topic))

        # Woken, and its request let through: it carries a batch that the table already has.
        first.signal(signal.SIGCONT)
        go_on.set()
        wait_for("the first engine to step down", lambda: first.popen.poll() is not None)
        assert first.popen.returncode == 0
        assert second.popen.poll() is None

        assert set(live_files(services, topic)) == before
        assert all(file.exists() for file in before)
        assert len(snapshots_with_rows(services, topic)) == 1
        ledger.check(topic, services.runtime.iceberg)


def test_a_reply_lost_after_the_commit_and_its_batch_sent_again(services: Services) -> None:
    """The catalog has committed, the engine never hears of it: one snapshot, every file there. The same batch
    again is unknown and never refused: on a 4xx the client would delete files that are the table's."""
    ledger = Ledger(SCHEMAS)
    topic = produce_orders(services, "lost.", 2, ledger)
    lost = threading.Event()
    batches: list[tuple[str, bytes]] = []

    def remember(method: str, path: str, body: bytes) -> None:
        if is_batch(method, body):
            batches.append((path, body))

    def lose(method: str, path: str, body: bytes) -> bool:
        if is_batch(method, body) and not lost.is_set():
            lost.set()
            return False
        return True

    with ExitStack() as running:
        iceberg = running.enter_context(proxy(services.runtime.iceberg, remember, lose))
        services.store.enable_table(TableSpec(topic, freshness_seconds=1))
        running.enter_context(services.engine(iceberg))
        assert lost.wait(60), "no commit came by"
        services.sync(topic)
        assert len(snapshots_with_rows(services, topic)) == 1
        assert all(file.exists() for file in live_files(services, topic))
        ledger.check(topic, services.runtime.iceberg)

        # And it goes on from there.
        produce_orders(services, "lost.", 3, ledger)
        services.sync(topic)
        ledger.check(topic, services.runtime.iceberg)
    root = services.runtime.iceberg.removesuffix("/iceberg")
    key = services.runtime.catalog_key
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
    # The one whose reply was lost, and the newest.
    for path, body in (batches[0], batches[-1]):
        answer = httpx.post(root + path, content=body, headers=headers, trust_env=False)
        assert answer.status_code >= 500, answer.text
    ledger.check(topic, services.runtime.iceberg)


def test_wiping_scratch_between_two_runs_changes_nothing(services: Services) -> None:
    """There is no checkpoint to lose: the position is in the table."""
    ledger = Ledger(SCHEMAS)
    topic = produce_orders(services, "wiped.", 4, ledger)
    with services.engine() as engine:
        services.store.enable_table(TableSpec(topic, freshness_seconds=1))
        services.sync(topic)
        engine.kill()
    scratch = services.data / "scratch"
    assert scratch.exists()
    shutil.rmtree(scratch)
    produce_orders(services, "wiped.", 5, ledger)
    with services.engine():
        services.sync(topic)
        ledger.check(topic, services.runtime.iceberg)
    assert len(snapshots_with_rows(services, topic)) == 2
