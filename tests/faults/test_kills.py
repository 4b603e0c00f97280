"""The engine is killed while records arrive: the table equals the ledger of what was acknowledged."""

import os
import random
import subprocess
import sys

import pytest

from headgate.datagen.orders import Orders
from headgate.datagen.orders_schemas import SCHEMAS
from headgate.datagen.produce import prepare_topics, produce
from headgate.kafka.topics import Topics
from tests.support.ledger import Ledger
from tests.support.stack import Stack

SOAK = os.environ.get("HEADGATE_SOAK") == "1"
# Orders give a little more payments than themselves, and a record for each order.
ORDERS, KILLS, RATE = (200_000, 5, 4_000) if SOAK else (4_000, 1, 800)


@pytest.mark.soak
def test_the_engine_is_killed_at_random_times(stack: Stack) -> None:
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    runtime = stack.runtime
    ledger = Ledger(SCHEMAS)
    prepare_topics(Topics(runtime.kafka), [f"kills.{topic}" for topic in SCHEMAS])
    for topic in ("orders", "payments"):
        stack.run("table", "enable", f"kills.{topic}", "--freshness", "1s")
    url = runtime.settings.store_url
    command = [sys.executable, "-m", "tests.support.killer", url, str(KILLS), str(seed)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as killer:
        try:
            produce(
                Orders(seed),
                runtime.kafka,
                runtime.registry,
                limit=ORDERS,
                prefix="kills.",
                rate=RATE,
                ledger=ledger,
            )
            said, _ = killer.communicate(timeout=600)
        finally:
            killer.kill()
    assert said.count("killed") == KILLS
    for topic in ("orders", "payments"):
        stack.run("table", "sync", f"kills.{topic}", "--timeout", "300s")
        assert ledger.count(f"kills.{topic}") >= ORDERS * 0.9
        ledger.check(f"kills.{topic}", runtime.iceberg)
