"""`make bench-history`: how long a page of a table's history takes, where there are many tables.

Tables are registered whose metadata has so many snapshots. Of each, a page is asked for the first time (its
metadata is read, and the index made), and again from the index; then of each after a commit.
"""

import argparse
import json
import random
import statistics
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import httpx
import uvicorn

from headgate.access import LOCAL
from headgate.catalog.delegation import Asked
from headgate.catalog.embedded import EmbeddedCatalog
from headgate.config import load_settings
from headgate.embedded.ports import LOOPBACK, free_port
from headgate.embedded.runtime import Runtime
from headgate.jvm import Jvm
from headgate.model import BATCH_KEY, FROM_KEY, OPERATION_KEY, POSITION_KEY, SECONDS_KEY, Position, TableSpec
from headgate.server.app import create_app
from headgate.server.connections import Connection
from headgate.store import Store

SPACE = "local"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=200)
    parser.add_argument("--snapshots", type=int, default=100_000, help="In all of them together.")
    parser.add_argument("--limit", type=int, default=50)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-history-") as folder:
        settings = load_settings(environment={}, data=Path(folder) / "data")
        store = Store.open(settings.store_url)
        with (
            Jvm(settings.jars_folder) as jvm,
            EmbeddedCatalog(jvm, settings.catalog_db, settings.warehouse, (SPACE,)) as catalog,
        ):
            each = options.snapshots // options.tables
            names = [f"table-{number}" for number in range(options.tables)]
            catalog.namespaces.create({"namespace": [SPACE]}, None, LOCAL)
            for name in names:
                store.enable_table(TableSpec(name))
                register(catalog, Path(settings.warehouse.removeprefix("file://")), name, each)
            print(f"{options.tables} tables, {each} snapshots each; pages of {options.limit}", flush=True)
            runtime = Runtime.of(settings, server_port=free_port(), connect_port=1, broker_port=1)
            serve(create_app(runtime, store, lake=catalog), runtime.server_port)
            with httpx.Client(base_url=runtime.api, trust_env=False, timeout=120) as http:
                measure(http, catalog, settings.warehouse, names, each, options.limit)
        store.close()


def measure(
    http: httpx.Client, catalog: EmbeddedCatalog, warehouse: str, names: list[str], each: int, limit: int
) -> None:
    def page(name: str, **more: int) -> None:
        answer = http.get(f"/tables/{name}/history", params={"limit": limit, **more})
        answer.raise_for_status()
        found = answer.json()
        assert found["snapshots"], found

    def commit(name: str) -> None:
        register(catalog, Path(warehouse.removeprefix("file://")), name, each + 1, overwrite=True)

    report("first sight, the index is made", timed(page, names))
    report("warm", timed(page, random.sample(names * 5, len(names) * 5)))
    report("warm, a page in the middle", timed(lambda name: page(name, before=each // 2), names))
    some = names[: max(1, len(names) // 10)]
    for name in some:
        commit(name)
    report("after a commit", timed(page, some))


def timed(act: Callable[[str], None], names: Iterable[str]) -> list[float]:
    seconds = []
    for name in names:
        began = time.perf_counter()
        act(name)
        seconds.append(time.perf_counter() - began)
    return seconds


def report(what: str, seconds: list[float]) -> None:
    p99 = sorted(seconds)[int(len(seconds) * 0.99)] if len(seconds) > 1 else seconds[0]
    print(
        f"{what:32} median {1000 * statistics.median(seconds):7.1f} ms, p99 {1000 * p99:7.1f} ms", flush=True
    )


def register(
    catalog: EmbeddedCatalog, warehouse: Path, name: str, snapshots: int, overwrite: bool = False
) -> None:
    location = warehouse / SPACE / name
    file = location / "metadata" / f"{uuid.uuid4()}.metadata.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(metadata(f"file://{location}", snapshots)))
    body = {"name": name, "metadata-location": f"file://{file}", "overwrite": overwrite}
    catalog.tables.register((SPACE,), body, None, Asked(LOCAL))


def metadata(location: str, snapshots: int) -> dict[str, Any]:
    """Of a table that was appended to so often, with summaries as the engine writes them."""
    now = int(time.time() * 1000)
    column = {"id": 1, "name": "id", "required": False, "type": "long"}
    made = [
        snapshot(location, number, now - 10_000 * (snapshots - number)) for number in range(1, snapshots + 1)
    ]
    return {
        "format-version": 2,
        "table-uuid": str(uuid.uuid4()),
        "location": location,
        "last-sequence-number": snapshots,
        "last-updated-ms": now,
        "last-column-id": 1,
        "schemas": [{"type": "struct", "schema-id": 0, "fields": [column]}],
        "current-schema-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "default-spec-id": 0,
        "last-partition-id": 999,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "default-sort-order-id": 0,
        "properties": {},
        "current-snapshot-id": snapshots,
        "snapshots": made,
        "refs": {"main": {"snapshot-id": snapshots, "type": "branch"}},
        "snapshot-log": [
            {"snapshot-id": one["snapshot-id"], "timestamp-ms": one["timestamp-ms"]} for one in made
        ],
        "metadata-log": [],
    }


def snapshot(location: str, number: int, at: int) -> dict[str, Any]:
    position = Position("cluster-of-the-bench", "topic-id", dict.fromkeys(range(4), number * 1000))
    return {
        "snapshot-id": number,
        **({"parent-snapshot-id": number - 1} if number > 1 else {}),
        "sequence-number": number,
        "timestamp-ms": at,
        "manifest-list": f"{location}/metadata/snap-{number}.avro",
        "schema-id": 0,
        "summary": {
            "operation": "append",
            "added-data-files": "4",
            "added-records": "4000",
            "added-files-size": "120000",
            "total-records": str(4000 * number),
            "total-data-files": str(4 * number),
            "total-files-size": str(120_000 * number),
            POSITION_KEY: position.to_json(),
            FROM_KEY: position.to_json(),
            BATCH_KEY: str(uuid.uuid4()),
            OPERATION_KEY: "batch",
            SECONDS_KEY: "1.234",
        },
    }


def serve(app: Any, port: int) -> None:
    """From a thread that ends with the process."""
    config = uvicorn.Config(app, host=LOOPBACK, port=port, http=Connection, log_level="warning")
    server = uvicorn.Server(config)
    threading.Thread(target=server.run, daemon=True).start()
    while not server.started:
        time.sleep(0.05)


if __name__ == "__main__":
    main()
