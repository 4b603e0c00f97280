"""One outside catalog is followed, with all that may go wrong in it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headgate.errors import CatalogUnavailable, NotPublishable, OutsideRefused, OutsideUnavailable
from headgate.model import TableFormat, TableSpec
from headgate.publication import worker as worker_module
from headgate.publication.worker import Worker
from headgate.store import Integrations, Store
from tests.support.outside import MemoryCatalog, MovingTables, table

BOTH = (TableFormat.ICEBERG, TableFormat.DELTA)


class Scene:
    """A store, an integration, a catalog, a worker; the clock is the test's."""

    def __init__(
        self, store: Store, clock: Any, kind: str = "glue", names: dict[str, str] | None = None
    ) -> None:
        self.store, self.clock = store, clock
        self.integrations = Integrations(store.engine)
        formats = {"unity": TableFormat.DELTA}
        options: dict[str, Any] = {"names": names or {}}
        self.integrations.add("lake", kind, formats.get(kind, TableFormat.ICEBERG), options)
        self.catalog, self.tables = MemoryCatalog(), MovingTables()
        self.worker = Worker(self.integrations, self.tables, lambda _: self.catalog, store.tables)

    def enable(self, *topics: str, formats: tuple[TableFormat, ...] = (TableFormat.ICEBERG,)) -> None:
        for topic in topics:
            self.store.enable_table(TableSpec(topic, formats=formats))

    def round(self) -> bool:
        return self.worker.round(self.integrations.get("lake"))

    def state(self) -> tuple[str, str]:
        found = self.integrations.get("lake")
        return found.state.value, found.reason

    def stands(self) -> dict[str, tuple[str | None, str]]:
        return {
            one.topic: (one.outside_name, one.state.value) for one in self.integrations.publications("lake")
        }

    def reason(self, topic: str) -> str:
        return self.integrations.publications("lake", topic)[0].reason


class Clock:
    now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(worker_module, "time", clock)
    return clock


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store.open(f"sqlite:///{tmp_path / 'control.db'}")
    yield store
    store.close()


@pytest.fixture
def scene(store: Store, clock: Clock) -> Scene:
    return Scene(store, clock)


def test_it_is_probed_at_once_and_again_after_a_while(scene: Scene, clock: Clock) -> None:
    scene.catalog.trouble = OutsideUnavailable("it does not answer")
    scene.round()
    assert scene.state() == ("Failed", "trying again: it does not answer")
    scene.catalog.trouble = None
    clock.now += 100
    scene.round()
    scene.round()
    assert (scene.state(), scene.catalog.prepared) == (("Connected", ""), 1)
    scene.catalog.trouble = OutsideRefused("it knows us no more")
    scene.round()
    assert scene.state()[0] == "Connected"
    clock.now += worker_module.VERIFY_SECONDS
    scene.round()
    assert scene.state() == ("Failed", "trying again: it knows us no more")


def test_unity_is_pending_until_its_first_delta_table(store: Store, clock: Clock) -> None:
    scene = Scene(store, clock, "unity")
    scene.enable("orders")
    scene.round()
    assert scene.state() == ("Pending", "waiting for the first table with format delta")
    assert scene.catalog.prepared == 0


def test_tables_of_its_format_are_published_and_others_do_not_apply(scene: Scene) -> None:
    scene.enable("only-delta", formats=(TableFormat.DELTA,))
    scene.enable("orders")
    scene.round()
    assert scene.stands() == {"only-delta": (None, "Not applicable"), "orders": (None, "Pending")}
    assert scene.reason("only-delta") == "the catalog takes iceberg tables, this one is delta"
    assert scene.reason("orders") == "waiting for the table, which is Pending: waiting for the engine"

    scene.tables.put(table("orders"))
    scene.round()
    assert scene.state() == ("Connected", "")
    assert scene.stands()["orders"] == ("orders", "Synced")


def test_each_new_state_is_shown_and_no_other_is_put(scene: Scene) -> None:
    scene.enable("orders")
    for number in (1, 1, 2, 2, 9):
        scene.tables.put(table("orders", number))
        scene.round()
    assert scene.catalog.puts == 3
    assert scene.catalog.entries["orders"].sequence == 9


def test_two_topics_of_one_name_the_older_has_it(scene: Scene) -> None:
    scene.enable("shop.orders", "shop-orders")
    for topic in ("shop.orders", "shop-orders"):
        scene.tables.put(table(topic))
    scene.round()

    assert scene.stands() == {"shop.orders": ("shop_orders", "Synced"), "shop-orders": (None, "Failed")}
    assert "and so is the table of topic 'shop.orders'" in scene.reason("shop-orders")
    assert "--table-name shop-orders=" in scene.reason("shop-orders")

    scene.store.remove_table("shop.orders")
    scene.clock.now += 100
    scene.round()
    assert scene.stands() == {"shop-orders": ("shop_orders", "Synced")}
    assert scene.catalog.entries["shop_orders"].uuid == table("shop-orders").uuid


def test_a_name_that_was_chosen(store: Store, clock: Clock) -> None:
    scene = Scene(store, clock, names={"shop-orders": "other"})
    scene.enable("shop.orders", "shop-orders")
    for topic in ("shop.orders", "shop-orders"):
        scene.tables.put(table(topic))
    scene.round()
    assert scene.stands() == {"shop-orders": ("other", "Synced"), "shop.orders": ("shop_orders", "Synced")}


def test_a_catalog_that_is_down_is_asked_ever_less_often_and_caught_up_with(scene: Scene) -> None:
    scene.enable("orders")
    scene.tables.put(table("orders", 1))
    scene.round()
    scene.catalog.trouble = OutsideUnavailable("no answer.")
    scene.tables.put(table("orders", 2))
    waits, last = [], scene.clock.now
    for _ in range(400):
        scene.clock.now += 0.5
        before = scene.catalog.prepared, scene.integrations.get("lake").updated_at
        scene.round()
        if scene.integrations.get("lake").updated_at != before[1]:
            waits.append(scene.clock.now - last)
            last = scene.clock.now
    assert scene.state() == ("Failed", "trying again: no answer.")
    assert scene.stands() == {"orders": ("orders", "Pending")}
    assert waits[1:7] == [1, 2, 4, 8, 16, 32]
    assert max(waits) == 60

    scene.catalog.trouble = None
    scene.tables.put(table("orders", 30))
    scene.clock.now += 60
    scene.round()
    assert scene.state() == ("Connected", "")
    assert scene.catalog.entries["orders"].sequence == 30


def test_what_is_up_to_date_stays_synced_while_the_catalog_is_down(scene: Scene) -> None:
    scene.enable("orders", "new")
    scene.tables.put(table("orders", 1))
    scene.round()
    scene.catalog.trouble = OutsideUnavailable("no answer.")
    scene.tables.put(table("new"))
    scene.round()
    assert scene.stands() == {"new": ("new", "Pending"), "orders": ("orders", "Synced")}


def test_asking_for_it_ends_the_wait(scene: Scene) -> None:
    scene.enable("orders")
    scene.tables.put(table("orders"))
    scene.catalog.trouble = OutsideRefused("not you.")
    scene.round()
    assert scene.state() == ("Failed", "trying again: not you.")
    scene.catalog.trouble = None
    scene.round()
    assert scene.state()[0] == "Failed"

    scene.integrations.retry("lake")
    scene.round()
    assert scene.state() == ("Connected", "")


def test_one_table_that_fails_does_not_hold_up_the_others(scene: Scene) -> None:
    scene.enable("bad", "good")
    for topic in ("bad", "good"):
        scene.tables.put(table(topic))
    scene.catalog.refuses = {"bad": NotPublishable("no such type.")}
    scene.round()
    assert scene.stands() == {"bad": ("bad", "Failed"), "good": ("good", "Synced")}
    assert scene.reason("bad") == "no such type."
    # The place may be what is missing: it is looked for again.
    assert scene.catalog.prepared == 2
    assert scene.state() == ("Connected", "")

    scene.clock.now += 2
    scene.round()  # refused again, for the same reason
    assert scene.stands()["bad"] == ("bad", "Failed")
    scene.catalog.refuses = {}
    scene.clock.now += 60
    scene.round()
    assert scene.stands()["bad"] == ("bad", "Synced")


def test_our_own_catalog_that_does_not_answer_says_nothing_of_theirs(scene: Scene) -> None:
    scene.enable("orders")
    scene.tables.put(table("orders"))
    scene.round()

    def away(_: str) -> None:
        raise CatalogUnavailable("ours is away")

    scene.tables.before_reading = away
    scene.round()
    assert scene.state() == ("Connected", "")
    assert scene.stands() == {"orders": ("orders", "Synced")}


@pytest.mark.parametrize("how", ["removed", "disabled", "purged", "other format"])
def test_a_table_that_is_not_wanted_there_is_taken_out(scene: Scene, how: str) -> None:
    scene.enable("orders", formats=BOTH)
    scene.tables.put(table("orders"))
    scene.round()
    match how:
        case "removed":
            scene.store.remove_table("orders")
        case "other format":
            scene.store.alter_table(TableSpec("orders", formats=(TableFormat.DELTA,)))
        case _:
            scene.store.set_desired("orders", how)
    scene.round()
    assert scene.catalog.entries == {}
    scene.round()
    left = {"orders": (None, "Not applicable")} if how == "other format" else {}
    assert scene.stands() == left


def test_it_is_taken_out_when_the_catalog_is_back(scene: Scene) -> None:
    scene.enable("orders")
    scene.tables.put(table("orders"))
    scene.round()
    scene.store.remove_table("orders")
    scene.catalog.trouble = OutsideUnavailable("no answer.")
    scene.round()
    assert list(scene.catalog.entries) == list(scene.stands()) == ["orders"]

    scene.catalog.trouble = None
    scene.clock.now += 60
    scene.round()
    assert (scene.catalog.entries, scene.stands()) == ({}, {})


def test_an_integration_that_is_removed_takes_its_entries_along(scene: Scene) -> None:
    scene.enable("orders", "others")
    scene.enable("only-delta", formats=(TableFormat.DELTA,))
    for topic in ("orders", "others"):
        scene.tables.put(table(topic))
    scene.round()
    scene.integrations.want_removed("lake")
    scene.catalog.trouble = OutsideUnavailable("no answer.")
    assert scene.round()
    assert scene.state()[0] == "Failed"

    scene.catalog.trouble = None
    scene.clock.now += 60
    assert not scene.round()
    assert scene.catalog.entries == {}
    assert scene.integrations.all() == []
    assert scene.integrations.publications() == []


def test_what_was_changed_there_is_put_right_at_the_next_look(scene: Scene) -> None:
    scene.enable("orders")
    scene.tables.put(table("orders"))
    scene.round()
    scene.catalog.entries.clear()
    scene.round()
    assert scene.catalog.entries == {}
    scene.clock.now += worker_module.VERIFY_SECONDS
    scene.round()
    assert list(scene.catalog.entries) == ["orders"]


def test_an_engine_that_died_after_the_entry_was_made_knows_it_for_its_own(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.enable("orders")
    scene.tables.put(table("orders"))

    class Died(BaseException):
        pass

    put = scene.catalog.put

    def and_die(*arguments: Any) -> None:
        put(*arguments)
        raise Died

    monkeypatch.setattr(scene.catalog, "put", and_die)
    with pytest.raises(Died):
        scene.round()
    monkeypatch.setattr(scene.catalog, "put", put)
    scene.store.remove_table("orders")
    scene.worker = Worker(scene.integrations, scene.tables, lambda _: scene.catalog, scene.store.tables)
    scene.round()
    assert (scene.catalog.entries, scene.stands()) == ({}, {})


@pytest.mark.parametrize(
    ("version", "warning"), [(2, ""), (3, "of format version 3, which Athena and Redshift do not read")]
)
def test_a_table_of_version_3_that_is_published_to_glue_is_warned_of_once(
    scene: Scene, version: int, warning: str
) -> None:
    scene.enable("orders")
    for number in (1, 2):
        scene.tables.put(table("orders", number, format_version=version))
        scene.round()
        assert scene.stands()["orders"] == ("orders", "Synced")
        assert scene.reason("orders") == warning
    events = [event["message"] for event in scene.store.events("orders", 10)]
    assert events.count(f"Synced in lake: {warning}" if warning else "Synced in lake") == 1
