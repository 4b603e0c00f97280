"""The second tutorial as it is typed: a finite topic comes to its figures without a further record."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from headgate.datagen import Orders, produce
from headgate.model import StatementState
from tests.integration.statements.bench import Bench
from tests.integration.statements.test_bounded import Jobs
from tests.support.services import Services, wait_for
from tests.unit.docs.pages import ROOT, lines

PAGE = (ROOT / "docs" / "tutorials" / "clean-topics.md").read_text()
_TABLES = re.compile(r"(?<![\w'-])(?<!AS )(orders|payments|paid_once|in_time|paid_by_minute)(?![\w'-])")


def blocks() -> Iterator[str]:
    """The page's blocks of SQL, in order."""
    block: list[str] = []
    for line in lines(PAGE):
        if line.language == "sql":
            block.append(line.text)
        elif block:
            yield "\n".join(block)
            block = []


def figures(text: str) -> list[str]:
    """The numbers of a sentence of the page."""
    sentence = " ".join(PAGE.split())
    assert text in sentence
    return re.findall(r"\d[\d,.]*\d|\d", text)


@pytest.fixture
def jobs(bench: Bench, tmp_path: Path) -> Iterator[Jobs]:
    found = Jobs(bench, tmp_path)
    yield found
    found.store.close()


def test_the_second_tutorial_comes_to_its_figures(bench: Bench, jobs: Jobs, services: Services) -> None:
    once, joined, more, ends = blocks()
    prefix = f"t{bench.name}_"
    runtime = services.runtime

    def run(text: str) -> list[str]:
        return jobs.run(_TABLES.sub(rf"{prefix}\1", text))

    def values(table: str) -> list[Any]:
        return bench.values(f"{prefix}{table}")

    def until(name: str, rows: Callable[[], bool]) -> None:
        def done() -> bool:
            record = jobs.statements.get(name)
            assert record.state is not StatementState.FAILED, record.reason
            return rows()

        wait_for(f"the rows of {name}", done, 180)

    sent = produce(Orders(1), runtime.kafka, runtime.registry, limit=2000, prefix=prefix)
    paid, payments = figures("1,940 rows of 2,040 payments")
    assert sent[f"{prefix}payments"] == int(payments.replace(",", ""))
    with jobs.engine():
        run(once)
        until("payments-once", lambda: len(values("paid_once")) >= int(paid.replace(",", "")))
        run(joined)
        orders, amount = figures("1,900 orders for 1,553,130.76")
        until("orders-in-time", lambda: len(values("in_time")) >= int(orders.replace(",", "")))
        assert sum(row["amount"] for row in values("in_time")) == Decimal(amount.replace(",", ""))
        jobs.statements.want("orders-in-time", "stopped")
        jobs.until(["orders-in-time"], StatementState.STOPPED)
        run(more)
        before, plastic, other = figures(
            "1,900 orders from before with NULL, 137 that were paid by plastic and 338"
        )
        produce(Orders(2), runtime.kafka, runtime.registry, limit=500, prefix=prefix)
        wanted = {None: int(before.replace(",", "")), "plastic": int(plastic), "other": int(other)}
        until("orders-in-time-2", lambda: len(values("in_time")) >= sum(wanted.values()))
        run(ends)
        jobs.until(["by-minute"], StatementState.COMPLETED)
    assert len({row["order_id"] for row in values("paid_once")}) == len(values("paid_once"))
    assert Counter(row.get("paid_by") for row in values("in_time")) == wanted
    assert sum(row["payments"] for row in values("paid_by_minute")) == len(values("paid_once"))
