"""Health, metrics, and who may ask."""

import pytest
from fastapi.testclient import TestClient
from prometheus_client.parser import text_string_to_metric_families

from headgate.embedded.runtime import Runtime
from headgate.model import TableFormat, TableSpec, TableState
from headgate.server.app import create_app
from headgate.store import Integrations, IntegrationState, PublicationState, Store

LABELS = ("topic", "catalog", "partition", "state", "process", "version")


def test_all_is_well(client: TestClient) -> None:
    answer = client.get("/healthz")

    assert answer.status_code == 200
    assert answer.json() == {"status": "ok", "instance": "this-one", "checks": {"store": "ok"}}


def test_one_part_that_fails_is_503_and_named(
    runtime: Runtime, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    """What exactly is wrong is in the log: anybody may ask, and errors name files, hosts and tables."""

    def broken() -> None:
        raise ConnectionError("no JVM at /home/somebody")

    app = create_app(runtime, store, checks={"jvm": broken, "catalog": lambda: None})
    with TestClient(app, base_url="http://localhost") as client:
        answer = [client.get("/healthz") for _ in range(3)][-1]

    assert answer.status_code == 503
    checks = {"store": "ok", "jvm": "ConnectionError", "catalog": "ok"}
    assert answer.json() == {"status": "failing", "instance": "", "checks": checks}
    assert caplog.text.count("no JVM at /home/somebody") == 1


def test_metrics_are_what_the_control_state_says(client: TestClient, store: Store) -> None:
    store.enable_table(TableSpec("orders"))
    detail = {"rows": 12, "lag": 3, "behind_since": None, "position": {"offsets": {"0": 5, "1": 7}}}
    store.report("orders", TableState.RUNNING, "", detail)
    store.enable_table(TableSpec("new"))
    store.beat("engine", "one", 1, "ready")
    integrations = Integrations(store.engine)
    integrations.add("athena", "glue", TableFormat.ICEBERG, {})
    integrations.report("athena", IntegrationState.CONNECTED, "")
    integrations.tell("athena", "orders", PublicationState.SYNCED, "")

    answer = client.get("/metrics")
    found = {
        (sample.name, *(sample.labels[name] for name in LABELS if name in sample.labels)): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }

    assert answer.headers["content-type"].startswith("text/plain")
    assert found["headgate_table_rows", "orders"] == 12
    assert found["headgate_table_lag_offsets", "orders"] == 3
    assert found["headgate_table_freshness_seconds", "orders"] == 0
    assert found["headgate_table_position", "orders", "1"] == 7
    assert found["headgate_table_state", "orders", "Running"] == 1
    assert found["headgate_table_state", "orders", "Failed"] == 0
    assert found["headgate_table_state", "new", "Pending"] == 1
    assert ("headgate_table_rows", "new") not in found
    assert found["headgate_process_up", "engine"] == 1
    assert found["headgate_process_up", "query"] == 0
    assert found["headgate_catalog_state", "athena", "Connected"] == 1
    assert found["headgate_catalog_state", "athena", "Failed"] == 0
    assert found["headgate_catalog_tables", "athena", "Synced"] == 1
    assert found["headgate_catalog_tables", "athena", "Failed"] == 0


@pytest.mark.parametrize(
    ("headers", "allowed"),
    [
        ({"host": "127.0.0.1:8080"}, True),
        ({"host": "localhost:8080"}, True),
        ({"host": "[::1]:8080"}, True),
        ({"host": "127.0.0.1:8080", "origin": "http://127.0.0.1:8080"}, True),
        ({"host": "127.0.0.1:8080", "origin": "http://evil.example"}, False),
        ({"host": "127.0.0.1:8080", "origin": "http://127.0.0.1:9999"}, False),
        ({"host": "127.0.0.1:8080", "origin": "null"}, False),
        ({"host": "evil.example"}, False),
        ({"host": "127.0.0.1.evil.example"}, False),
        ({"host": "[oops"}, False),
        ({"host": ""}, False),
    ],
)
def test_pages_of_others_are_kept_out(
    client: TestClient, store: Store, headers: dict[str, str], allowed: bool
) -> None:
    answer = client.post("/api/v1/query/start", headers=headers)

    assert answer.status_code == (202 if allowed else 403)
    assert store.process("query").wanted is allowed
