"""Two servers on one Postgres: what one acknowledged the other knows, and of two rivals one wins."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import pytest

from headgate.access.roles import Grant
from headgate.jvm import Jvm
from headgate.store import Store
from headgate.store.queries import QueryFilter, QueryHistory, QueryRecord, QueryState
from tests.integration.catalog.raw import SCHEMA, RawTable, set_properties
from tests.integration.catalog.serving import Service
from tests.support.postgres import postgres

WRITERS, COMMITS = 4, 10


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with postgres() as url:
        yield url


@pytest.fixture(scope="module")
def servers(jvm: Jvm, url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Service]]:
    """They share the warehouse and the database, and nothing in memory."""
    folder = tmp_path_factory.mktemp("shared")
    with ExitStack() as opened:
        found = [opened.enter_context(Service(jvm, folder, database=url)) for _ in range(2)]
        found[0].post("/namespaces", {"namespace": ["db"]})
        yield found


def together(act: Callable[..., Any], *arguments: tuple[Any, ...]) -> list[Any]:
    """The same act with each of the arguments, at the same time."""
    with ThreadPoolExecutor(len(arguments)) as pool:
        return [future.result() for future in [pool.submit(act, *some) for some in arguments]]


def create(server: Service, body: dict[str, Any]) -> int:
    return server.http.post("/namespaces/db/tables", json=body).status_code


def test_every_acknowledged_commit_is_there(servers: list[Service]) -> None:
    RawTable(servers[0], "db", "contended").create()
    tables = [RawTable(servers[number % 2], "db", "contended") for number in range(WRITERS)]

    def write(number: int) -> list[str]:
        acknowledged: list[str] = []
        while len(acknowledged) < COMMITS:
            name = f"w{number}-{len(acknowledged)}"
            table = tables[number]
            answer = table.service.http.post(table.path, json=set_properties(**{name: "yes"}))
            assert answer.status_code in (200, 409), answer.text
            if answer.is_success:
                acknowledged.append(name)
        return acknowledged

    done = together(write, *((number,) for number in range(WRITERS)))
    for server in servers:
        said = RawTable(server, "db", "contended").load()["metadata"]["properties"]
        assert {name for names in done for name in names} <= said.keys()


def test_of_two_that_create_one_wins(servers: list[Service]) -> None:
    for number in range(5):
        body = {"name": f"raced{number}", "schema": SCHEMA}
        assert sorted(together(create, *((server, body) for server in servers))) == [200, 409]


def test_of_two_that_want_a_place_one_gets_it(servers: list[Service]) -> None:
    """Other names, and one inside the other: no row of theirs collides."""
    root = servers[0].warehouse.as_uri()
    for number in range(5):
        bodies = [
            {"name": f"outer{number}", "schema": SCHEMA, "location": f"{root}/place{number}"},
            {"name": f"inner{number}", "schema": SCHEMA, "location": f"{root}/place{number}/in"},
        ]
        assert sorted(together(create, *zip(servers, bodies, strict=True))) == [200, 409]


def test_one_key_is_done_once(servers: list[Service]) -> None:
    table = RawTable(servers[0], "db", "once")
    table.create()

    def send(server: Service, key: str) -> int:
        body = set_properties(**{key: "yes"})
        return server.http.post(table.path, json=body, headers={"Idempotency-Key": key}).status_code

    for number in range(5):
        key = f"0190a1b2-0000-7000-8000-00000000000{number}"
        assert together(send, *((server, key) for server in servers)) == [200, 200]
    # Each was applied once: the first metadata and five more.
    assert len(table.load()["metadata"]["metadata-log"]) == 5


def test_a_revocation_holds_on_both(servers: list[Service]) -> None:
    made, secret = servers[0].doors.credentials.create("shared", [Grant.parse("reader")])
    assert servers[1].doors.credentials.verify(made.client_id, secret) is not None
    servers[0].doors.credentials.revoke("shared")
    assert servers[1].doors.credentials.verify(made.client_id, secret) is None


def test_several_open_an_empty_database_at_once() -> None:
    with postgres() as url:
        for store in together(Store.open, *[(url,)] * 4):
            assert store.tables() == []
            store.close()


def test_the_query_history_is_kept_as_in_sqlite(url: str) -> None:
    store = Store.open(url)
    history = QueryHistory(store.engine)
    for number in range(4):
        instance = "killed" if number == 0 else "now"
        history.begin(
            QueryRecord(f"q{number}", "lake", "SELECT 'Sète'", "hg1", "ada", instance, started_at=number)
        )
    history.end("q1", QueryState.FINISHED, 2.5, tables=[{"table": "local.a"}], figures={"rows": 2**40})
    assert history.get("q1", "now").figures == {"rows": 2**40}
    failed = history.list(QueryFilter(state=QueryState.FAILED), "now", 10)
    assert [one.id for one in failed] == ["q0"]
    assert history.abandon("now") == 1
    older = history.list(QueryFilter(owner="hg1", before="q2"), "now", 10)
    assert [one.id for one in older] == ["q1", "q0"]
    history.forget(older_than=0.5, most=2)
    assert [one.id for one in history.list(QueryFilter(), "now", 10)] == ["q3", "q2"]
    store.close()
