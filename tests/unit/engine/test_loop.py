"""The round of tables: what one of them meets is its own trouble."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from headgate.config import Engine as Settings
from headgate.engine.loop import Loop
from headgate.errors import KafkaUnavailable, RegistryUnavailable
from headgate.maintain.verify import Known
from headgate.model import Position, TableSpec, TableState, Topic
from headgate.store import Store, TableRecord
from headgate.tables.materialize import TopicView
from tests.support.services import wait_for


class Table:
    """A materializer that is at the end of its topic, or cannot be looked at."""

    mirror_trouble = None
    record_bytes = 1.0
    places = record_plan = None
    is_open = True
    facts: Mapping[str, Any] = {}

    def __init__(self, spec: TableSpec, error: Exception | None = None) -> None:
        self.spec, self.error = spec, error
        self.position = Position("cluster", "T1", {0: 5})

    def check(self, _: TopicView) -> None:
        if self.error is not None:
            raise self.error

    def lag(self, _: TopicView) -> int:
        return 0

    def run(self, _: TopicView) -> None:
        """Nothing is left to read."""

    def forget(self) -> None: ...


class Kafka:
    """Every topic has five records; or Kafka does not answer."""

    answers = True

    def views(self, names: Iterable[str]) -> dict[str, TopicView]:
        if not self.answers:
            raise KafkaUnavailable("Kafka does not answer.")
        return {name: TopicView("cluster", Topic(name, "T1", (0,)), {0: 0}, {0: 5}) for name in names}


class Verifier:
    """Remembers what it was asked to verify."""

    def __init__(self) -> None:
        self.asked: list[Known] = []

    def verify(self, known: Known, deep: bool, progress: Any) -> dict[str, Any]:
        self.asked.append(known)
        return {"damaged": False}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store.open(f"sqlite:///{tmp_path / 'control.db'}")
    for topic in ("a-broken", "b-sound"):
        store.enable_table(TableSpec(topic))
    yield store
    store.close()


def looked_after(store: Store, make: Any, kafka: Kafka | None = None, verifier: Any = None) -> Loop:
    source, lake = cast(Any, kafka or Kafka()), cast(Any, SimpleNamespace())
    return Loop(store, source, lake, make, Settings(tick_seconds=0.1, workers=1), verifier=verifier)


def until(loop: Loop, store: Store, topic: str, state: TableState) -> str:
    """Round after round, until the table is in that state; what is said of it."""

    def reached() -> bool:
        loop.tick()
        return store.table(topic).status.state is state

    wait_for(f"{topic} to be {state}", reached, 20)
    return store.table(topic).status.reason


def test_a_table_that_cannot_be_looked_at_holds_no_other_up(store: Store) -> None:
    error = ValueError("an offset that is no number")

    def make(record: TableRecord) -> Table:
        return Table(record.spec, error if record.spec.topic == "a-broken" else None)

    loop = looked_after(store, make)
    assert until(loop, store, "b-sound", TableState.RUNNING) == ""
    said = until(loop, store, "a-broken", TableState.FAILED)
    assert said == "trying again: ValueError: an offset that is no number"
    loop.close()


def test_a_table_that_cannot_be_taken_up_holds_no_other_up(store: Store) -> None:
    def make(record: TableRecord) -> Table:
        if record.spec.topic == "a-broken":
            raise RegistryUnavailable("The registry does not answer.")
        return Table(record.spec)

    loop = looked_after(store, make)
    assert until(loop, store, "b-sound", TableState.RUNNING) == ""
    assert "The registry does not answer" in until(loop, store, "a-broken", TableState.DEGRADED)
    loop.close()


@pytest.mark.parametrize("trouble", ["suspended", "failing", "no Kafka"])
def test_a_table_in_trouble_is_verified(store: Store, trouble: str) -> None:
    """That is when somebody wants to know."""
    kafka, verifier = Kafka(), Verifier()
    kafka.answers = trouble != "no Kafka"
    failing = RegistryUnavailable("The registry does not answer.") if trouble == "failing" else None
    loop = looked_after(store, lambda record: Table(record.spec, failing), kafka, verifier)
    if trouble == "suspended":
        store.suspend("b-sound", "it has lost records", {})
    request = store.ask("b-sound", "verify", {"deep": False})

    def answered() -> bool:
        loop.tick()
        return store.request(request).state != "waiting"

    wait_for("the verification", answered, 20)
    assert store.request(request).state == "done"
    assert [known.spec.topic for known in verifier.asked] == ["b-sound"]
    loop.close()
