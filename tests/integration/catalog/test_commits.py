"""Commits: requirements, races, several tables at once, and what is left on disk."""

import gzip
import json
import os
import random
import sqlite3
import threading
import time
import uuid
from pathlib import Path
from urllib.parse import urlparse

import pytest

from headgate.jvm import Jvm
from tests.integration.catalog.raw import RawTable, added_id, set_properties
from tests.integration.catalog.serving import Service

THREADS = 8
COMMITS = 50 if os.environ.get("HEADGATE_SOAK") else 15


def metadata_files(table: RawTable) -> set[str]:
    folder = Path(urlparse(table.metadata()["location"]).path) / "metadata"
    return {path.name for path in folder.glob("*.metadata.json")}


def known_metadata_files(table: RawTable) -> set[str]:
    loaded = table.load()
    log = [entry["metadata-file"] for entry in loaded["metadata"].get("metadata-log", [])]
    return {location.rpartition("/")[2] for location in (*log, loaded["metadata-location"])}


def test_a_commit_moves_the_pointer_and_says_so(table: RawTable) -> None:
    created = table.create()
    body = table.append()
    answer = table.commit(body)
    assert table.head() == added_id(body)
    assert answer["metadata"]["refs"]["main"]["snapshot-id"] == added_id(body)
    assert answer["metadata-location"] == table.load()["metadata-location"]
    assert created["metadata-location"].rpartition("/")[2].startswith("00000-")
    assert answer["metadata-location"].rpartition("/")[2].startswith("00001-")


def test_a_requirement_that_no_longer_holds_is_a_conflict(table: RawTable) -> None:
    table.create()
    stale = table.append()
    table.commit(table.append())
    before = metadata_files(table)
    error = table.commit(stale, 409)["error"]
    assert error["type"] == "CommitFailedException"
    assert added_id(stale) not in table.history()
    assert metadata_files(table) == before


def test_a_sequence_number_of_the_past_is_a_conflict(table: RawTable) -> None:
    table.create()
    table.commit(table.append())
    stale = table.append(asserting=False)
    table.commit(table.append())
    assert table.commit(stale, 409)["error"]["type"] == "CommitFailedException"


def test_an_update_without_changes_writes_nothing(table: RawTable) -> None:
    created = table.create()
    answer = table.commit({"requirements": [], "updates": []})
    assert answer["metadata-location"] == created["metadata-location"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"requirements": [], "updates": [{"action": "fly"}]}, 400),
        ({"requirements": [{"type": "assert-mood"}], "updates": []}, 400),
        ({"requirements": [{"type": "assert-create"}], "updates": []}, 409),
        ({"requirements": [{"type": "assert-table-uuid", "uuid": str(uuid.uuid4())}], "updates": []}, 409),
        ({"requirements": [], "updates": [{"action": "set-current-schema", "schema-id": 77}]}, 400),
    ],
)
def test_commits_that_cannot_be(table: RawTable, body: dict[str, object], status: int) -> None:
    name = f"{table.name}-{uuid.uuid4().hex[:6]}"
    table = RawTable(table.service, "db", name.replace("/", ""))
    table.create()
    assert table.commit(body, status)["error"]["code"] == status


def test_a_table_that_is_not_there(table: RawTable) -> None:
    assert table.commit(set_properties(a="b"), 404)["error"]["type"] == "NoSuchTableException"


def test_old_metadata_files_go_when_the_table_asks_for_it(table: RawTable) -> None:
    keep_two = {
        "write.metadata.delete-after-commit.enabled": "true",
        "write.metadata.previous-versions-max": "2",
    }
    table.create(**keep_two)
    for number in range(6):
        table.commit(set_properties(n=str(number)))
    assert metadata_files(table) == known_metadata_files(table)
    assert len(metadata_files(table)) == 3


def test_metadata_goes_where_and_how_the_table_asks_for_it(table: RawTable) -> None:
    elsewhere = f"{table.service.warehouse.as_uri()}/elsewhere"
    table.create(**{"write.metadata.path": elsewhere, "write.metadata.compression-codec": "gzip"})
    location = table.commit(set_properties(a="b"))["metadata-location"]
    assert location.startswith(f"{elsewhere}/00001-")
    assert location.endswith(".gz.metadata.json")
    text = gzip.decompress(Path(urlparse(location).path).read_bytes())
    assert json.loads(text)["properties"]["a"] == "b"


def test_a_staged_table_begins_with_its_first_commit(table: RawTable) -> None:
    schema = {"type": "struct", "fields": [{"id": 1, "name": "id", "required": False, "type": "long"}]}
    staged = table.service.post(
        "/namespaces/db/tables", {"name": table.name, "schema": schema, "stage-create": True}
    )
    table.service.get(table.path, 404)
    metadata = staged["metadata"]
    updates = [
        {"action": "assign-uuid", "uuid": metadata["table-uuid"]},
        {"action": "upgrade-format-version", "format-version": 2},
        {"action": "add-schema", "schema": metadata["schemas"][0], "last-column-id": 1},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": metadata["partition-specs"][0]},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": metadata["sort-orders"][0]},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {"action": "set-location", "location": metadata["location"]},
    ]
    create = {"requirements": [{"type": "assert-create"}], "updates": updates}
    assert table.commit(create)["metadata"]["table-uuid"] == metadata["table-uuid"]
    assert table.commit(create, 409)["error"]["type"] == "CommitFailedException"
    both = {"requirements": [*create["requirements"], {"type": "assert-table-uuid", "uuid": "x"}]}
    assert table.commit({**create, **both}, 400)["error"]["code"] == 400


def test_files_stay_when_the_outcome_is_unknown(jvm: Jvm, folder: Path) -> None:
    """A deferred constraint fails at COMMIT, when nobody can say any more whether it was applied."""
    with Service(jvm, folder) as service:
        service.post("/namespaces", {"namespace": ["db"]})
        table = RawTable(service, "db", "t")
        table.create()
        connection = sqlite3.connect(service.database)
        connection.executescript(
            """
            CREATE TABLE parent (id INTEGER PRIMARY KEY);
            CREATE TABLE child (id INTEGER REFERENCES parent (id) DEFERRABLE INITIALLY DEFERRED);
            CREATE TRIGGER fail AFTER UPDATE ON iceberg_tables BEGIN INSERT INTO child VALUES (1); END;
            """
        )
        connection.close()
        error = table.commit(table.append(), 500)["error"]
        assert error["type"] == "CommitStateUnknownException"
        assert len(metadata_files(table)) == 2


def test_a_table_whose_metadata_is_gone_can_be_dropped(table: RawTable) -> None:
    location = table.create()["metadata-location"]
    Path(urlparse(location).path).unlink()
    assert table.service.get(table.path, 404)["error"]["type"] == "NotFoundException"
    assert table.service.http.delete(table.path, params={"purgeRequested": "true"}).status_code == 204
    assert table.service.http.head(table.path).status_code == 404


def test_a_table_is_registered_over_another(table: RawTable) -> None:
    service = table.service
    first = table.create()
    table.commit(set_properties(a="b"))
    back = {"name": table.name, "metadata-location": first["metadata-location"], "overwrite": True}
    assert service.post("/namespaces/db/register", back)["metadata"]["properties"].get("a") is None
    other = RawTable(service, "db", f"{table.name}-other")
    location = other.create()["metadata-location"]
    service.http.delete(other.path).raise_for_status()
    over = {"name": table.name, "metadata-location": location, "overwrite": True}
    service.post("/namespaces/db/register", {**over, "overwrite": False}, 409)
    service.post("/namespaces/db/register", over)
    assert table.load()["metadata-location"] == location
    again = {"name": other.name, "metadata-location": first["metadata-location"]}
    service.post("/namespaces/db/register", again)


@pytest.fixture
def pair(service: Service) -> tuple[RawTable, RawTable]:
    made = RawTable(service, "db", f"a-{uuid.uuid4().hex}"), RawTable(service, "db", f"b-{uuid.uuid4().hex}")
    for table in made:
        table.create()
    return made


def test_several_tables_change_together(service: Service, pair: tuple[RawTable, RawTable]) -> None:
    bodies = [table.append() for table in pair]
    changes = [table.identified(body) for table, body in zip(pair, bodies, strict=True)]
    service.post("/transactions/commit", {"table-changes": changes}, 204)
    assert [table.head() for table in pair] == [added_id(body) for body in bodies]


def test_one_failing_requirement_changes_no_table(service: Service, pair: tuple[RawTable, RawTable]) -> None:
    stale = pair[1].append()
    pair[1].commit(pair[1].append())
    before = [table.load() for table in pair]
    changes = [pair[0].identified(pair[0].append()), pair[1].identified(stale)]
    error = service.post("/transactions/commit", {"table-changes": changes}, 409)["error"]
    assert error["type"] == "CommitFailedException"
    assert [table.load() for table in pair] == before
    assert [metadata_files(table) for table in pair] == [known_metadata_files(table) for table in pair]


@pytest.mark.parametrize(
    ("changes", "status"),
    [("missing", 404), ("twice", 400), ("anonymous", 400), ("nothing", 400), ("absent", 400)],
)
def test_transactions_that_cannot_be(
    service: Service, pair: tuple[RawTable, RawTable], changes: str, status: int
) -> None:
    one = pair[0].identified(set_properties(a="b"))
    bodies = {
        "missing": {
            "table-changes": [one, RawTable(service, "db", "none").identified(set_properties(a="b"))]
        },
        "twice": {"table-changes": [one, one]},
        "anonymous": {"table-changes": [set_properties(a="b")]},
        "nothing": {"table-changes": []},
        "absent": {},
    }
    before = pair[0].load()
    service.post("/transactions/commit", bodies[changes], status)
    assert pair[0].load() == before


@pytest.fixture
def twins(jvm: Jvm, service: Service) -> tuple[Service, Service]:
    """Two catalogs on one database, without a lock in common: as two processes would be."""
    return service, Service(jvm, service.folder)


@pytest.mark.soak
def test_acknowledged_commits_of_many_writers_are_all_in_the_history(
    table: RawTable, twins: tuple[Service, Service]
) -> None:
    table.create()
    acknowledged: list[int] = []
    failures: list[BaseException] = []

    def write(service: Service) -> None:
        mine = RawTable(service, "db", table.name)
        try:
            for _ in range(COMMITS):
                while True:
                    body = mine.append()
                    answer = service.http.post(mine.path, json=body)
                    assert answer.status_code in (200, 409), answer.text
                    if answer.status_code == 200:
                        acknowledged.append(added_id(body))
                        break
                    time.sleep(random.uniform(0, 0.3))  # as clients do after a conflict
        except Exception as error:  # noqa: BLE001 a thread cannot fail the test by itself
            failures.append(error)

    with twins[1] as other:
        services = [twins[0], other] * (THREADS // 2)
        threads = [threading.Thread(target=write, args=(service,)) for service in services]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert failures == []
    assert len(acknowledged) == THREADS * COMMITS
    assert sorted(table.history()) == sorted(acknowledged)
    assert metadata_files(table) >= known_metadata_files(table)
    assert len(metadata_files(table)) == THREADS * COMMITS + 1  # none of those that lost a race is left


def test_a_race_between_transactions_leaves_no_half(
    pair: tuple[RawTable, RawTable], twins: tuple[Service, Service]
) -> None:
    """Every writer marks both tables in one transaction: whoever comes last, both bear the same mark."""
    failures: list[BaseException] = []

    def mark(service: Service, name: str) -> None:
        try:
            for number in range(8):
                body = set_properties(mark=f"{name}-{number}")
                changes = [table.identified(body) for table in pair]
                service.post("/transactions/commit", {"table-changes": changes}, 204)
        except Exception as error:  # noqa: BLE001 a thread cannot fail the test by itself
            failures.append(error)

    with twins[1] as other:
        threads = [
            threading.Thread(target=mark, args=(s, str(i))) for i, s in enumerate([*twins[:1], other] * 2)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert failures == []
    marks = {table.metadata()["properties"]["mark"] for table in pair}
    assert len(marks) == 1
    assert [len(metadata_files(table)) for table in pair] == [33, 33]
