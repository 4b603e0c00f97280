"""Every embedded part replaced by a URL: one code path, other addresses."""

from pathlib import Path

import httpx

from headgate.datagen.orders import Orders
from headgate.datagen.orders_schemas import SCHEMAS
from headgate.datagen.produce import produce
from tests.support.ledger import Ledger
from tests.support.services import Services
from tests.support.stack import Stack


def test_kafka_registry_and_catalog_of_ones_own(services: Services, tmp_path: Path) -> None:
    theirs = services.runtime
    ledger = Ledger(SCHEMAS)
    produce(Orders(11), theirs.kafka, theirs.registry, limit=200, prefix="own.", ledger=ledger)
    with Stack(
        tmp_path / "data",
        HEADGATE_KAFKA__BOOTSTRAP=theirs.kafka,
        HEADGATE_REGISTRY__URL=theirs.registry,
        HEADGATE_CATALOG__URI=theirs.iceberg,
        # Managed tables are made by who shows the key of an engine.
        HEADGATE_CATALOG__PROPERTIES__TOKEN=theirs.catalog_key or "",
        HEADGATE_CLUSTER__NAME="east",
    ) as stack:
        status = stack.json("status")
        assert status["addresses"]["kafka"] == theirs.kafka
        assert status["addresses"]["registry"] == theirs.registry
        assert status["addresses"]["iceberg"] == theirs.iceberg
        assert "broker" not in {p["name"] for p in status["processes"] if p["state"] == "ready"}
        own = stack.runtime.api.removesuffix("/api/v1")
        assert httpx.get(f"{own}/registry/subjects", trust_env=False).status_code == 404
        assert httpx.get(f"{own}/iceberg/v1/config", trust_env=False).status_code == 404
        for topic in ("own.orders", "own.payments"):
            stack.run("table", "enable", topic, "--freshness", "1s")
            stack.run("table", "sync", topic, "--timeout", "120s")
            # The namespace is the cluster's name.
            ledger.check(topic, theirs.iceberg, namespace="east")
        found = stack.run("query", "SELECT count(*) AS n FROM east.`own.orders`", "--output", "csv")
        assert found.stdout.split() == ["n", str(ledger.count("own.orders"))]
