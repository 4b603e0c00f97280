"""`python -m tests.support.statement_engine --data DIR`: an engine of statements with plans by hand.

A statement's script is JSON: the plan's name, its source and its output topic.
"""

import json
import os
import sys
import uuid

from headgate.catalog.client import catalog_properties
from headgate.embedded.entry import enter, stop_on_signal
from headgate.engine.statements import StatementLoop
from headgate.registry.client import SchemaSource
from headgate.spark import Driver, build_session
from headgate.statements.runnable import Job, Output
from headgate.store import StatementRecord, Statements, Store
from headgate.tables.lane import SESSION
from tests.integration.statements.plans import (
    EVENTS,
    Table,
    Watermark,
    copies,
    counts,
    keep_last,
    projection,
    windows_then_totals,
)

PLANS = {
    "projection": projection,
    "counts": counts,
    "last": keep_last,
    "copies": copies,
    "totals": windows_then_totals,
}


def job_of(record: StatementRecord) -> Job:
    said = json.loads(record.script)
    plan = PLANS[said["plan"]](Table(said["source"], EVENTS, watermark=Watermark("ts")))
    output = Output(said["output"], plan.columns, plan.key or ("who",), plan.changelog, partitions=2)
    return Job(plan, output)


def main() -> int:
    runtime, _ = enter("tests.support.statement_engine", __doc__)
    stop = stop_on_signal()
    settings = runtime.settings
    store = Store.open(settings.store_url)
    instance = uuid.uuid4().hex
    store.beat("engine", instance, os.getpid(), "starting")
    name = f"statements-{instance}"
    properties = catalog_properties(runtime.iceberg, token=runtime.catalog_key)
    session = build_session(settings, name, "1g", properties, SESSION)
    with Driver(session), SchemaSource(runtime.registry_access) as schemas:
        loop = StatementLoop(
            Statements(store.engine),
            session,
            runtime.kafka_access,
            schemas,
            job_of,
            settings.checkpoints,
            settings.statements.model_copy(update={"interval": 0.5, "tasks": 2, "max_batch_rows": 2000}),
        )
        store.beat("engine", instance, os.getpid(), "ready")
        loop.run(stop)
    store.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
