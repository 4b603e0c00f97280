"""Orders for a table, and what its snapshots and files are."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

from headgate.datagen.orders import Orders
from headgate.datagen.produce import produce
from headgate.model import BATCH_KEY
from scripts.readers import pyiceberg_on
from tests.support.ledger import Ledger
from tests.support.services import Services

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
    summaries = [s.summary for s in table.snapshots() if s.summary is not None]
    return [s[BATCH_KEY] for s in summaries if s.additional_properties.get("added-records")]
