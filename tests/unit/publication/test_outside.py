"""An entry goes forward only, and what others made is left alone."""

from dataclasses import replace

import pytest

from headgate.errors import NotPublishable, OutsideMoved
from headgate.publication import outside
from headgate.publication.outside import Entry, PublishedTable, guard, is_newer, show, withdraw
from tests.support.outside import MemoryCatalog, MovingTables, table


def shown(catalog: MemoryCatalog, tables: MovingTables, known: tuple[str, ...] = ()) -> list[PublishedTable]:
    """What was intended to be shown."""
    intended: list[PublishedTable] = []
    show(catalog, "orders", lambda: tables.read("orders"), known, intended.append)
    return intended


def test_an_entry_is_made_and_then_moved() -> None:
    catalog, tables = MemoryCatalog(), MovingTables()
    for number in (1, 2, 40):
        tables.put(table(number=number))
        assert len(shown(catalog, tables)) == 1
        assert catalog.entries["orders"].metadata_location == table(number=number).metadata_location


def test_nothing_is_done_when_it_shows_the_table_already() -> None:
    catalog, tables = MemoryCatalog(), MovingTables()
    tables.put(table())
    shown(catalog, tables)

    assert shown(catalog, tables) == []
    assert catalog.puts == 1


def test_a_table_that_is_gone_is_not_shown() -> None:
    catalog = MemoryCatalog()
    assert show(catalog, "orders", lambda: None, (), lambda _: None) is None
    assert catalog.entries == {}


def test_the_table_is_read_after_the_entry() -> None:
    """So it is at least as new as what the entry shows, whoever put that there."""
    catalog, tables = MemoryCatalog(), MovingTables()
    tables.put(table(number=1))
    shown(catalog, tables)
    looks: list[int] = []
    tables.before_reading = lambda _: looks.append(catalog.looks)
    tables.put(table(number=2))
    before = catalog.looks

    shown(catalog, tables)

    assert looks == [before + 1]


def test_who_was_stopped_meanwhile_does_not_put_an_old_pointer_over_a_newer_one() -> None:
    catalog, tables = MemoryCatalog(), MovingTables()
    tables.put(table(number=1))
    shown(catalog, tables)
    others = MovingTables({"orders": table(number=9)})

    def somebody_else_is_faster(_: PublishedTable) -> None:
        shown(catalog, others)

    tables.put(table(number=5))
    with pytest.raises(OutsideMoved):
        show(catalog, "orders", lambda: tables.read("orders"), (), somebody_else_is_faster)
    assert catalog.entries["orders"].metadata_location == table(number=9).metadata_location


def test_an_entry_that_is_newer_than_what_was_read_stays() -> None:
    catalog, tables = MemoryCatalog(), MovingTables()
    shown(catalog, MovingTables({"orders": table(number=9)}))
    tables.put(table(number=5))

    with pytest.raises(OutsideMoved, match="newer"):
        shown(catalog, tables)
    assert catalog.entries["orders"].metadata_location == table(number=9).metadata_location


@pytest.mark.parametrize(
    ("sequence", "number", "expected"),
    [
        (7, 12, True),  # more snapshots
        (5, 9, True),  # as many, and the metadata changed since: a column, a property
        (5, 8, False),
        (5, 3, False),
        (4, 20, False),  # fewer snapshots, whatever the number
    ],
)
def test_what_is_newer(sequence: int, number: int, expected: bool) -> None:
    ours = replace(table(number=8), sequence=5, former=())
    there = Entry(ours.uuid, "m", f"s3://lake/x/metadata/{number:05d}-a.metadata.json", sequence)
    assert is_newer(there, ours) is expected


def test_what_the_table_remembers_is_older_whatever_its_numbers_say() -> None:
    ours = table(number=8)
    assert not is_newer(Entry(ours.uuid, "m", ours.former[0], sequence=99), ours)


def test_another_table_of_the_same_name_is_not_compared() -> None:
    assert not is_newer(Entry("another", "m", "00099-a.metadata.json", 99), table())


def test_a_table_made_again_takes_the_entry_of_the_one_before() -> None:
    catalog, tables = MemoryCatalog(), MovingTables()
    tables.put(table(number=9))
    shown(catalog, tables)
    again = table(number=1, uuid="another", former=())
    tables.put(again)

    shown(catalog, tables, known=(table().uuid,))

    assert catalog.entries["orders"].uuid == "another"


@pytest.mark.parametrize("uuid", [None, "somebody-elses"])
def test_what_others_made_is_neither_changed_nor_removed(uuid: str | None) -> None:
    theirs = Entry(uuid, None)
    catalog, tables = MemoryCatalog({"orders": theirs}), MovingTables({"orders": table()})

    with pytest.raises(NotPublishable, match="did not make it"):
        shown(catalog, tables)
    assert not withdraw(catalog, "orders", [table().uuid])
    assert catalog.entries == {"orders": theirs}


def test_ours_is_removed_once() -> None:
    catalog, tables = MemoryCatalog(), MovingTables({"orders": table()})
    shown(catalog, tables)

    assert withdraw(catalog, "orders", [table().uuid])
    assert not withdraw(catalog, "orders", [table().uuid])
    assert catalog.entries == {}


def test_a_change_that_was_decided_on_long_ago_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("headgate.publication.outside.time.monotonic", lambda: now)
    check = guard(now)
    now += outside.STALE_SECONDS
    check()
    now += 1
    with pytest.raises(OutsideMoved, match="16 s ago"):
        check()
