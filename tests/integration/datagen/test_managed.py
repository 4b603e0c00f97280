"""Managed generators on a real broker: killed at random they lose nothing and repeat nothing."""

import os
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from headgate.datagen import GeneratorSpec
from headgate.datagen.formats import Format
from headgate.embedded.broker import Broker
from headgate.kafka import Topics
from headgate.store import GeneratorRecord, Generators, GeneratorState
from tests.integration.server.conftest import Served
from tests.support.generators import check_story
from tests.support.services import Process, wait_for

KILLS = 8 if os.environ.get("HEADGATE_SOAK") == "1" else 2


@pytest.fixture
def generators(served: Served) -> Iterator[Generators]:
    generators = Generators(served.store.engine)
    yield generators
    for record in generators.all():
        generators.stop(record.name)
        generators.report(record.id, GeneratorState.STOPPED)
        generators.forget(record.name)


@contextmanager
def worker(served: Served, broker: Broker, folder: Path) -> Iterator[Process]:
    environment = {"HEADGATE_KAFKA__BOOTSTRAP": broker.bootstrap}
    with Process("headgate.generators", served.data, folder / "worker.log", **environment) as process:
        yield process


def written(generators: Generators, name: str) -> int:
    return generators.get(name).records


def grown(generators: Generators, before: int) -> bool:
    return written(generators, "story") > before


def ended(generators: Generators, name: str) -> GeneratorRecord | None:
    record = generators.get(name)
    return record if record.is_at_rest else None


def test_killed_at_random_it_repeats_and_loses_nothing(
    served: Served, broker: Broker, generators: Generators, prefix: str, tmp_path: Path
) -> None:
    spec = GeneratorSpec("orders", seed=12, limit=KILLS * 1_500, rate=2_500.0, prefix=prefix)
    generators.start("story", spec.to_dict())
    chance = random.Random(5)
    for _ in range(KILLS):
        before = written(generators, "story")
        with worker(served, broker, tmp_path) as process:
            wait_for("more records", partial(grown, generators, before))
            time.sleep(chance.random())
            process.kill()
    with worker(served, broker, tmp_path):
        record = wait_for("the end", lambda: ended(generators, "story"))
    assert (record.state, record.reason) == (GeneratorState.COMPLETED, "")
    assert record.records == sum(1 for _ in spec.made().records(spec.limit))
    check_story(broker.bootstrap, spec, record.records)


def test_one_that_is_stopped_goes_on_and_several_run_at_once(
    served: Served, broker: Broker, generators: Generators, prefix: str, tmp_path: Path
) -> None:
    slow = GeneratorSpec("sales", rate=200.0, prefix=f"{prefix}slow-", format=Format.AVRO)
    quick = GeneratorSpec("hotels", limit=200, prefix=f"{prefix}quick-", late_share=0.1)
    generators.start("slow", slow.to_dict())
    generators.start("quick", quick.to_dict())
    with worker(served, broker, tmp_path):
        done = wait_for("the quick one", lambda: ended(generators, "quick"))
        assert done.state is GeneratorState.COMPLETED
        check_story(broker.bootstrap, quick, done.records)
        wait_for("records", lambda: written(generators, "slow") > 100)
        assert generators.get("slow").state is GeneratorState.RUNNING
        generators.stop("slow")
        stopped = wait_for("the stop", lambda: ended(generators, "slow"))
        check_story(broker.bootstrap, slow, stopped.records)
        generators.start("slow", slow.to_dict())
        wait_for("it to go on", lambda: written(generators, "slow") > stopped.records + 100)
        assert generators.get("slow").rate > 0
    # The worker has ended, and it is wanted still.
    record = generators.get("slow")
    assert (record.state, record.is_wanted) == (GeneratorState.STOPPED, True)
    check_story(broker.bootstrap, slow, record.records)


def test_what_the_control_state_has_missed_the_broker_knows(
    served: Served, broker: Broker, generators: Generators, prefix: str, tmp_path: Path
) -> None:
    spec = GeneratorSpec("sales", limit=300, prefix=prefix)
    generators.start("story", spec.to_dict())
    with worker(served, broker, tmp_path):
        record = wait_for("the end", lambda: ended(generators, "story"))
    # As after a crash between the transaction and the word of it.
    generators.progress(record.id, 17, 0.0)
    generators.report(record.id, GeneratorState.FAILED, "it was killed")
    generators.start("story", spec.to_dict())
    with worker(served, broker, tmp_path):
        again = wait_for("the end", lambda: ended(generators, "story"))
    assert (again.state, again.records) == (GeneratorState.COMPLETED, record.records)
    check_story(broker.bootstrap, spec, record.records)


def test_a_topic_that_would_lose_records_fails_it_with_the_reason(
    served: Served, broker: Broker, generators: Generators, prefix: str, tmp_path: Path
) -> None:
    Topics(broker.bootstrap).create(f"{prefix}sales")
    generators.start("story", GeneratorSpec("sales", prefix=prefix).to_dict())
    with worker(served, broker, tmp_path):
        record = wait_for("the end", lambda: ended(generators, "story"))
    assert record.state is GeneratorState.FAILED
    assert "retention.ms=-1" in record.reason
    assert record.records == 0
