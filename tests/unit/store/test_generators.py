"""Records of managed generators."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from headgate.errors import AlreadyExists, InvalidRequest, NotFound
from headgate.store import Generators, GeneratorState, Store

SPEC = {"scenario": "orders", "seed": 1}


@pytest.fixture
def generators(tmp_path: Path) -> Iterator[Generators]:
    store = Store.open(f"sqlite:///{tmp_path / 'control.db'}")
    yield Generators(store.engine)
    store.close()


def test_a_generator_is_wanted_from_its_start_to_its_stop(generators: Generators) -> None:
    generators.start("orders", SPEC)
    record = generators.get("orders")
    assert (record.state, record.records, record.is_wanted) == (GeneratorState.PENDING, 0, True)
    generators.report(record.id, GeneratorState.RUNNING)
    generators.progress(record.id, 40, 12.5)
    record = generators.get("orders")
    assert (record.state, record.records, record.rate) == (GeneratorState.RUNNING, 40, 12.5)
    generators.stop("orders")
    record = generators.get("orders")
    assert (record.is_wanted, record.is_at_rest) == (False, False)
    generators.report(record.id, GeneratorState.STOPPED)
    record = generators.get("orders")
    assert (record.is_at_rest, record.records, record.rate) == (True, 40, 0.0)


def test_one_of_the_same_specification_goes_on_where_it_was(generators: Generators) -> None:
    generators.start("orders", SPEC)
    first = generators.get("orders")
    generators.progress(first.id, 40, 1.0)
    generators.start("orders", SPEC)
    for state in (GeneratorState.STOPPED, GeneratorState.FAILED):
        generators.stop("orders")
        generators.report(first.id, state, "for a reason")
        generators.start("orders", SPEC)
        again = generators.get("orders")
        assert (again.id, again.records, again.state) == (first.id, 40, GeneratorState.PENDING)
        assert (again.is_wanted, again.reason) == (True, "")


def test_another_specification_needs_another_name(generators: Generators) -> None:
    generators.start("orders", SPEC)
    with pytest.raises(AlreadyExists, match="something else"):
        generators.start("orders", SPEC | {"seed": 2})
    generators.report(generators.get("orders").id, GeneratorState.COMPLETED)
    with pytest.raises(AlreadyExists, match="all of its records"):
        generators.start("orders", SPEC)
    assert generators.get("orders").is_at_rest


def test_what_may_write_still_is_not_forgotten(generators: Generators) -> None:
    generators.start("orders", SPEC)
    with pytest.raises(InvalidRequest, match="may write still"):
        generators.forget("orders")
    first = generators.get("orders")
    # A worker that was ended leaves it stopped, and wanted: it goes on.
    generators.report(first.id, GeneratorState.STOPPED)
    assert not generators.get("orders").is_at_rest
    generators.stop("orders")
    generators.forget("orders")
    generators.start("orders", SPEC)
    assert generators.get("orders").id != first.id
    generators.report(first.id, GeneratorState.FAILED, "late word of the one before")
    assert generators.get("orders").state is GeneratorState.PENDING


def test_names_that_nobody_has_are_not_found(generators: Generators) -> None:
    for call in (generators.get, generators.stop, generators.forget):
        with pytest.raises(NotFound, match="no generator 'none'"):
            call("none")
    with pytest.raises(InvalidRequest, match="cannot name"):
        generators.start("a b", SPEC)
    assert generators.all() == []
