"""Tables of files, carried out on the control state; the engine's part is acted here."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import cast

import pytest

from headgate.apply.model import Change
from headgate.errors import TableStopped
from headgate.kafka.offsets import Offsets
from headgate.kafka.topics import Topics
from headgate.model import WAITING_FOR_SCHEMA, TableSpec, TableState
from headgate.server.desired.tables import TablePart
from headgate.store import Store

NO_KAFKA = cast(Topics, None), cast(Offsets, None)
CHANGE = [Change("freshness", 10.0, 5.0)]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store.open(f"sqlite:///{tmp_path / 'control.db'}")
    store.enable_table(TableSpec("raw"))
    yield store
    store.close()


def changed(store: Store) -> Iterator[str]:
    part = TablePart(store, *NO_KAFKA, embedded=True)
    return part.change("raw", {"freshness": "5s"}, CHANGE, part.observe(["raw"])["raw"])


def test_it_stands_when_the_engine_has_made_it_and_tells_where(store: Store) -> None:
    lines = changed(store)
    assert "it is Pending, waiting for the engine" in next(lines)
    store.report("raw", TableState.SYNCING, "", {})
    assert next(lines) == "table raw to run: it is Syncing"
    store.report("raw", TableState.SYNCING, "", {"location": "file:///lake/raw"})
    assert list(islice(lines, 5)) == []
    assert store.table("raw").spec.freshness_seconds == 5.0


def test_one_whose_topic_has_no_schema_yet_is_not_waited_for(store: Store) -> None:
    lines = changed(store)
    next(lines)
    store.report("raw", TableState.PENDING, f"{WAITING_FOR_SCHEMA}: register one", {})
    assert list(islice(lines, 5)) == []


def test_one_that_is_suspended_stops_the_apply_with_the_reason(store: Store) -> None:
    lines = changed(store)
    next(lines)
    store.report("raw", TableState.SUSPENDED, "its topic was made anew", {})
    with pytest.raises(TableStopped, match="its topic was made anew"):
        list(lines)
