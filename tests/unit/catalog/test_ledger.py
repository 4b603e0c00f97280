"""The catalog's database: everything of a move happens, or nothing does."""

import sqlite3
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from headgate.catalog.errors import CatalogError
from headgate.catalog.idempotency import LIFETIME_SECONDS, Once, Outcome
from headgate.catalog.ledger import KeyTaken, Ledger, LostRace, Move, Unconfirmed
from headgate.catalog.locations import Footprint
from headgate.catalog.names import Identifier

A, B = Identifier(("db",), "a"), Identifier(("db",), "b")

ICEBERGS_TABLES = """
CREATE TABLE iceberg_tables (
  catalog_name TEXT NOT NULL, table_namespace TEXT NOT NULL, table_name TEXT NOT NULL,
  metadata_location TEXT, previous_metadata_location TEXT, iceberg_type TEXT,
  PRIMARY KEY (catalog_name, table_namespace, table_name));
CREATE TABLE iceberg_namespace_properties (
  catalog_name TEXT NOT NULL, namespace TEXT NOT NULL, property_key TEXT, property_value TEXT,
  PRIMARY KEY (catalog_name, namespace, property_key));
INSERT INTO iceberg_namespace_properties VALUES ('headgate', 'db', 'exists', 'true');
"""


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """As JdbcCatalog leaves it, with the namespace `db`."""
    path = tmp_path / "catalog.db"
    connection = sqlite3.connect(path)
    connection.executescript(ICEBERGS_TABLES)
    connection.close()
    return path


@pytest.fixture
def ledger(database: Path) -> Iterator[Ledger]:
    opened = Ledger(database)
    yield opened
    opened.close()


def move(identifier: Identifier, old: str | None, new: str, *batches: str, at: str | None = None) -> Move:
    place = Footprint(at or f"file:///w/db/{identifier.name}")
    return Move(identifier, old, new, f"uuid-{identifier.name}", place, batches)


def key(fingerprint: str = "f") -> Once:
    return Once(str(uuid.uuid4()), fingerprint)


def where(ledger: Ledger, identifier: Identifier) -> str | None:
    found = ledger.pointer(identifier)
    return None if found is None else found.metadata_location


@pytest.fixture
def two_tables(ledger: Ledger) -> Ledger:
    ledger.move([move(A, None, "a0"), move(B, None, "b0")], None, Outcome(204))
    return ledger


def test_pointers_move_together(two_tables: Ledger) -> None:
    two_tables.move([move(A, "a0", "a1"), move(B, "b0", "b1")], None, Outcome(204))
    assert (where(two_tables, A), where(two_tables, B)) == ("a1", "b1")


def test_one_lost_race_moves_nothing(two_tables: Ledger) -> None:
    once = key()
    with pytest.raises(LostRace):
        two_tables.move([move(A, "a0", "a1", "batch"), move(B, "stale", "b1")], once, Outcome(204))
    assert (where(two_tables, A), where(two_tables, B)) == ("a0", "b0")
    assert two_tables.committed_batches("uuid-a", ["batch"]) == frozenset()
    assert two_tables.outcome(once) is None


def test_a_table_that_is_there_is_not_created_again(two_tables: Ledger) -> None:
    with pytest.raises(LostRace):
        two_tables.move([move(A, None, "a9")], None, Outcome(200))
    assert where(two_tables, A) == "a0"


def test_a_table_needs_its_namespace(ledger: Ledger) -> None:
    with pytest.raises(CatalogError) as caught:
        ledger.move([move(Identifier(("d",), "a"), None, "a0")], None, Outcome(200))
    assert (caught.value.status, caught.value.kind) == (404, "NoSuchNamespaceException")


def test_batches_are_remembered_per_table(two_tables: Ledger) -> None:
    two_tables.move([move(A, "a0", "a1", "x", "y")], None, Outcome(200))
    assert two_tables.committed_batches("uuid-a", ["x", "z"]) == {"x"}
    assert two_tables.committed_batches("uuid-b", ["x"]) == frozenset()


def test_a_batch_that_another_process_just_committed_is_unknown_and_moves_nothing(two_tables: Ledger) -> None:
    two_tables.move([move(A, "a0", "a1", "x")], None, Outcome(200))
    with pytest.raises(CatalogError) as caught:
        two_tables.move([move(A, "a1", "a2", "x")], None, Outcome(200))
    assert (caught.value.status, caught.value.kind) == (500, "CommitStateUnknownException")
    assert where(two_tables, A) == "a1"


def test_an_outcome_is_found_again_after_a_restart(database: Path) -> None:
    once = key()
    first = Ledger(database)
    first.move([move(A, None, "a0")], once, Outcome(200, "a0"))
    first.close()
    second = Ledger(database)
    assert second.outcome(once) == Outcome(200, "a0")
    second.close()


def test_a_key_is_taken_once(two_tables: Ledger) -> None:
    once = key()
    two_tables.move([move(A, "a0", "a1")], once, Outcome(200, "a1"))
    with pytest.raises(KeyTaken):
        two_tables.move([move(A, "a1", "a2")], once, Outcome(200, "a2"))
    assert where(two_tables, A) == "a1"


def test_a_key_of_another_request_is_refused(two_tables: Ledger) -> None:
    once = key("one thing")
    two_tables.record(once, Outcome(204))
    with pytest.raises(CatalogError) as caught:
        two_tables.outcome(Once(once.key, "another thing"))
    assert caught.value.status == 422


def test_keys_expire_after_their_lifetime(two_tables: Ledger, database: Path) -> None:
    once = key()
    two_tables.record(once, Outcome(204))
    connection = sqlite3.connect(database)
    connection.execute("UPDATE headgate_idempotency SET created_at = created_at - ?", [LIFETIME_SECONDS])
    connection.commit()
    connection.close()
    assert two_tables.outcome(once) is None
    two_tables.record(once, Outcome(200))
    assert two_tables.outcome(once) == Outcome(200)


@pytest.mark.parametrize("place", ["file:///w/db/a", "file:///w/db/a/inner", "file:///w/db", "file:///w"])
def test_live_tables_do_not_lie_in_one_another(two_tables: Ledger, place: str) -> None:
    other = Identifier(("db",), "c")
    with pytest.raises(CatalogError) as caught:
        two_tables.move([move(other, None, "c0", at=place)], None, Outcome(200))
    assert caught.value.status == 409
    assert where(two_tables, other) is None


@pytest.mark.parametrize("place", ["file:///w/db/a2", "file:///w/db/c", "file:///w/d"])
def test_neighbours_are_no_overlap(two_tables: Ledger, place: str) -> None:
    other = Identifier(("db",), "c")
    two_tables.move([move(other, None, "c0", at=place)], None, Outcome(200))
    assert where(two_tables, other) == "c0"


def test_path_properties_do_not_reach_into_another_table(two_tables: Ledger) -> None:
    reaching = Move(A, "a0", "a1", "uuid-a", Footprint("file:///w/db/a", ("file:///w/db/b/data",)))
    with pytest.raises(CatalogError) as caught:
        two_tables.move([reaching], None, Outcome(200))
    assert caught.value.status == 409


def test_a_location_stays_used_until_the_table_is_purged(two_tables: Ledger) -> None:
    two_tables.drop(A, "uuid-a", purge=False, once=None)
    two_tables.drop(B, "uuid-b", purge=True, once=None)
    assert two_tables.location_was_used("file:///w/db/a")
    assert not two_tables.location_was_used("file:///w/db/b")


def test_a_dropped_table_may_come_back_to_its_own_location(two_tables: Ledger) -> None:
    two_tables.move([move(A, "a0", "a1", "x")], None, Outcome(200))
    two_tables.drop(A, "uuid-a", purge=False, once=None)
    two_tables.move([move(A, None, "a1")], None, Outcome(200))
    assert where(two_tables, A) == "a1"
    assert two_tables.committed_batches("uuid-a", ["x"]) == {"x"}


def test_one_table_does_not_have_two_names(two_tables: Ledger) -> None:
    alias = Move(Identifier(("db",), "alias"), None, "a0", "uuid-a", Footprint("file:///w/db/a"))
    with pytest.raises(CatalogError) as caught:
        two_tables.move([alias], None, Outcome(200))
    assert caught.value.status == 409


def test_renaming_checks_both_names(two_tables: Ledger) -> None:
    c = Identifier(("db",), "c")
    for source, target, status in ((c, A, 404), (A, B, 409), (A, Identifier(("none",), "a"), 404)):
        with pytest.raises(CatalogError) as caught:
            two_tables.rename(source, target, None)
        assert caught.value.status == status
    two_tables.rename(A, A, None)
    two_tables.rename(A, c, None)
    assert (where(two_tables, A), where(two_tables, c)) == (None, "a0")


def test_dropping_what_is_not_there_records_nothing(ledger: Ledger) -> None:
    once = key()
    with pytest.raises(CatalogError) as caught:
        ledger.drop(A, "uuid-a", purge=False, once=once)
    assert caught.value.status == 404
    assert ledger.outcome(once) is None


def test_a_commit_that_the_database_does_not_confirm_is_unknown(two_tables: Ledger, database: Path) -> None:
    """A deferred constraint fails at COMMIT, where a full disk or a broken one would too."""
    connection = sqlite3.connect(database)
    connection.executescript(
        """
        CREATE TABLE parent (id INTEGER PRIMARY KEY);
        CREATE TABLE child (id INTEGER REFERENCES parent (id) DEFERRABLE INITIALLY DEFERRED);
        CREATE TRIGGER fail AFTER UPDATE ON iceberg_tables BEGIN INSERT INTO child VALUES (1); END;
        """
    )
    connection.close()
    with pytest.raises(Unconfirmed) as caught:
        two_tables.move([move(A, "a0", "a1")], None, Outcome(200))
    assert (caught.value.status, caught.value.kind) == (500, "CommitStateUnknownException")
    assert where(two_tables, A) == "a0"


def test_a_table_displaced_by_another_gives_its_location_back(two_tables: Ledger) -> None:
    usurper = Move(A, "a0", "c0", "uuid-c", Footprint("file:///w/db/a"), displaces="uuid-a")
    two_tables.move([usurper], None, Outcome(200))
    assert where(two_tables, A) == "c0"


def test_two_processes_race_and_one_wins_each_time(database: Path) -> None:
    """Two ledgers share no lock: what keeps the count is the compare-and-swap alone."""
    ledgers_ = [Ledger(database), Ledger(database)]
    ledgers_[0].move([move(A, None, "0")], None, Outcome(200))

    def count(ledger: Ledger) -> None:
        for _ in range(25):
            while True:
                now = where(ledger, A)
                assert now is not None
                try:
                    ledger.move([move(A, now, str(int(now) + 1))], None, Outcome(200))
                    break
                except LostRace:
                    continue

    threads = [threading.Thread(target=count, args=(ledger,)) for ledger in ledgers_ * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert where(ledgers_[0], A) == "100"
    for ledger in ledgers_:
        ledger.close()
