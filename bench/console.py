"""`make bench-console`: how long a page of the console takes to show something, where there is much to show.

A broker with 500 topics, a server with 200 tables whose history has 100,000 snapshots together, and Chromium,
which opens each page by its address, as one who follows a link does. The first content is there when the page
shows what it is about, rows, figures or a form, and no sign that it loads. The page measures it, from the
beginning of the navigation. The first visit of a browser loads the program as well.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from playwright.sync_api import Browser, sync_playwright

from bench.history import SPACE, metadata
from headgate.config import load_settings
from headgate.embedded.broker import Broker, wait_for_kafka
from headgate.embedded.ports import free_port
from headgate.model import TableSpec, TableState
from tests.support.services import Services

CHROMIUM = "/usr/bin/chromium"
LONGEST_SECONDS = 1.0
SCHEMA = {"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]}
# By the page's address, what it is about.
PAGES = {
    "/": ".health-part",
    "/topics": "table[aria-label=Topics] tbody td",
    "/topics/topic-000?tab=messages": ".messages .message",
    "/topics/topic-000?tab=schema": ".code-block, pre",
    "/tables": "table[aria-label=Tables] tbody td",
    "/tables/topic-000": ".stat dd",
    "/tables/topic-000?tab=snapshots": "table[aria-label=Snapshots] tbody td",
    "/tables/+enable": "main form",
    "/statements": "main table tbody td, main .empty",
    "/integrations": "main table tbody td, main .empty",
    "/exports": "main table tbody td, main .empty",
    "/activity": "main .event-list li, main table tbody td, main .empty",
    "/settings": "main table tbody td",
}
# The moment is seen by the page itself, with the frame that shows it.
_WATCH = """
window.watchFor = (selector) => new Promise((resolve) => {
  const look = () => {
    if (document.querySelector(selector) && !document.querySelector(".loading")) resolve(performance.now());
    else requestAnimationFrame(look);
  };
  look();
});
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--topics", type=int, default=500)
    parser.add_argument("--tables", type=int, default=200)
    parser.add_argument("--snapshots", type=int, default=100_000, help="In all of them together.")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    chromium = shutil.which(os.environ.get("HEADGATE_CHROMIUM", CHROMIUM))
    if chromium is None:
        raise SystemExit("no Chromium: install it, or name it in HEADGATE_CHROMIUM")
    with ExitStack() as opened:
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="bench-console-")))
        broker = opened.enter_context(broker_of(folder))
        services = Services(folder / "services", broker.bootstrap)
        opened.callback(services.close)
        opened.enter_context(services.server())
        fill(services, broker.bootstrap, options.topics, options.tables, options.snapshots)
        print(f"{options.topics} topics, {options.tables} tables, {options.snapshots} snapshots", flush=True)
        playwright = opened.enter_context(sync_playwright())
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        slow = measure(browser, services.runtime.console.rstrip("/"), options.rounds)
        browser.close()
    print(f"wanted: at most {LONGEST_SECONDS:.1f} s; slower: {', '.join(slow) or 'none'}")
    return 1 if slow else 0


@contextmanager
def broker_of(folder: Path) -> Iterator[Broker]:
    broker = Broker(folder / "broker", free_port(), free_port(), load_settings(environment={}).jars_folder)
    broker.folder.mkdir()
    with (folder / "broker.log").open("wb") as log:
        process = subprocess.Popen(broker.prepare(), stdout=log, stderr=log, start_new_session=True)
        try:
            wait_for_kafka(broker.bootstrap, alive=lambda: process.poll() is None)
            yield broker
        finally:
            process.terminate()
            process.wait(timeout=30)


def fill(services: Services, bootstrap: str, topics: int, tables: int, snapshots: int) -> None:
    names = [f"topic-{number:03d}" for number in range(topics)]
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for made in admin.create_topics([NewTopic(name, 1, 1) for name in names]).values():
        made.result(120)
    producer = Producer({"bootstrap.servers": bootstrap})
    for name in names:
        producer.produce(name, b'{"id": 1}')
    assert producer.flush(60) == 0
    runtime = services.runtime
    warehouse = Path(str(runtime.warehouse).removeprefix("file://"))
    each = snapshots // tables
    key = {"Authorization": f"Bearer {runtime.catalog_key}"}
    with httpx.Client(trust_env=False, timeout=60) as http:
        for name in names[:tables]:
            body = {"schema": json.dumps(SCHEMA)}
            http.post(f"{runtime.registry}/subjects/{name}-value/versions", json=body).raise_for_status()
        spaces = f"{runtime.iceberg}/v1/namespaces"
        made_space = http.post(spaces, json={"namespace": [SPACE]}, headers=key)
        assert made_space.status_code in (200, 409), made_space.text
        for name in names[:tables]:
            location = warehouse / SPACE / name
            file = location / "metadata" / "00001-bench.metadata.json"
            file.parent.mkdir(parents=True)
            file.write_text(json.dumps(metadata(f"file://{location}", each)))
            asked = {"name": name, "metadata-location": f"file://{file}"}
            http.post(f"{spaces}/{SPACE}/register", json=asked, headers=key).raise_for_status()
    for name in names[:tables]:
        services.store.enable_table(TableSpec(name))
        detail = {"rows": 4000 * each, "lag": 0, "files": 4 * each, "bytes": 120_000 * each}
        services.store.report(name, TableState.RUNNING, "", {**detail, "records_materialized": 4000 * each})


def measure(browser: Browser, root: str, rounds: int) -> list[str]:
    """The pages that took too long, by the median of the rounds."""
    slow = []
    for path, selector in PAGES.items():
        first = visit(browser, root + path, selector, 1)[0]
        again = visit(browser, root + path, selector, rounds)[1:]
        median = statistics.median(again)
        print(
            f"{path:34} {1000 * median:6.0f} ms, slowest {1000 * max(again):6.0f} ms; "
            f"in a new browser {1000 * first:6.0f} ms",
            flush=True,
        )
        if max(median, first) > LONGEST_SECONDS:
            slow.append(path)
    return slow


def visit(browser: Browser, address: str, selector: str, rounds: int) -> list[float]:
    """Seconds until the first content: of the first visit, and of so many that follow it."""
    with browser.new_context(viewport={"width": 1440, "height": 900}) as context:
        context.add_init_script(_WATCH)
        page = context.new_page()
        seconds = []
        for _ in range(rounds + 1):
            page.goto(address, wait_until="commit")
            seconds.append(float(page.evaluate("(selector) => window.watchFor(selector)", selector)) / 1000)
        return seconds


if __name__ == "__main__":
    raise SystemExit(main())
