"""The engine is killed while statements run in several steps, when one has written and at random times: each
result is there once."""

import json
import os
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from headgate.kafka.topics import Topics
from headgate.registry.client import SchemaSource
from headgate.registry.schemas import SchemaType
from headgate.statements.stages import PREFIX
from headgate.store import Statements
from tests.faults.test_statements import (
    Feed,
    by_window,
    caught_up,
    committed,
    die_when_written,
    engine,
    farther,
)
from tests.integration.statements.bench import EVENT_SCHEMA
from tests.support.services import Services, wait_for

KILLS = 20 if os.environ.get("HEADGATE_SOAK") == "1" else 1


@pytest.mark.soak
def test_each_result_of_several_steps_is_there_once(services: Services, tmp_path: Path) -> None:
    """A row that is doubled or lost between two steps shows: in the copies, and in the sums over windows."""
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    chance = random.Random(seed)
    runtime, statements = services.runtime, Statements(services.store.engine)
    topics = Topics(runtime.kafka)
    name = f"stages-{uuid4().hex[:6]}"
    source = topics.create(name, 2).name
    with SchemaSource(runtime.registry) as schemas:
        schema_id = schemas.register(f"{source}-value", SchemaType.AVRO, json.dumps(EVENT_SCHEMA))
        outputs = {plan: f"{name}.{plan}" for plan in ("copies", "totals")}
        for plan, output in outputs.items():
            script = json.dumps({"plan": plan, "source": source, "output": output})
            statements.create(output, "insert", script, {"idle_seconds": 600})
        feed = Feed(runtime.kafka, source, schema_id)
        try:
            die_when_written(services, tmp_path / "points")
            for number in range(KILLS):
                with engine(services) as process:
                    if number % 3 == 0:
                        # At work: it has come farther than its forerunner.
                        farther(statements, chance.choice(list(outputs.values())))
                    time.sleep(chance.uniform(0, 6))
                    process.kill()
        finally:
            feed.end()
        rows = feed.ledger
        with engine(services):
            for output in outputs.values():
                caught_up(statements, output, len(rows) // 2)
            expected = totals(by_window(rows))
            wait_for(
                "the totals",
                lambda: newest(committed(services, schemas, outputs["totals"])) == expected,
                120,
            )
            # Steps tell their lags one after the other: all of them 0 does not say that all is through.
            copies = wait_for(
                "the copies",
                lambda: (
                    found
                    if len(found := committed(services, schemas, outputs["copies"])) >= len(rows)
                    else None
                ),
                120,
            )
            for output in outputs.values():
                statements.want(output, "deleted")
            wait_for("the statements to be gone", lambda: not statements.all())
        assert topics.beginning_with(PREFIX) == []
    assert Counter((row["id"], row["who"], row["cents"]) for row in copies) == Counter(
        (row["id"], row["who"], row["amount"] * 100) for row in rows
    )


def totals(windows: dict[tuple[int, str], int]) -> dict[str, tuple[int, int]]:
    """Of each: how many windows, and how many events in them."""
    found: dict[str, tuple[int, int]] = {}
    for (_, who), events in windows.items():
        known = found.get(who, (0, 0))
        found[who] = known[0] + 1, known[1] + events
    return found


def newest(changes: list[dict[str, Any]]) -> dict[str, tuple[int, int]]:
    """Totals only grow: the greatest of each is the newest."""
    found: dict[str, tuple[int, int]] = {}
    for row in changes:
        found[row["who"]] = max(found.get(row["who"], (0, 0)), (row["windows"], row["n"]))
    return found
