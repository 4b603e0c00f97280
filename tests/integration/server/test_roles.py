"""What roles open over HTTP, with a real broker, registry and catalog behind the server."""

import base64
import json
import os
import subprocess
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import httpx
import pytest
import schemathesis
from confluent_kafka import Producer
from hypothesis import HealthCheck, Phase, given, settings

from headgate.access.credentials import Credentials
from headgate.access.roles import Grant
from headgate.embedded.broker import Broker
from headgate.store import Statements
from tests.integration.server.conftest import Served
from tests.support.stack import HEADGATE

SCHEMA = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
ROLES = ("reader", "writer", "admin")
# Of each route, in `make test` and in a soak.
EXAMPLES = 50 if os.environ.get("HEADGATE_SOAK") == "1" else 2
# What asks Kafka for any number of partitions, or a store at any address; whose failures lock this address
# out in the end; what does not end. Queries need a driver, and there is none here.
ELSEWHERE = {
    ("post", "/api/v1/topics"),
    ("post", "/api/v1/storage"),
    ("post", "/api/v1/session"),
    ("get", "/api/v1/live"),
}


@dataclass(frozen=True)
class Shop:
    """Topics that grants cover and those that they do not, and what it takes to log in."""

    served: Served
    prefix: str

    @property
    def orders(self) -> str:
        return f"{self.prefix}.shop.orders"

    @property
    def salaries(self) -> str:
        return f"{self.prefix}.hr.salaries"

    def client(self, role: str, *grants: str) -> tuple[str, str]:
        """Id and secret of one with this role on the shop's topics, or with these grants."""
        given = [Grant.parse(text) for text in grants] or [Grant.parse(f"{role}:local:{self.prefix}.shop.*")]
        made, key = Credentials(self.served.store.engine).create(f"{role}-{uuid.uuid4().hex}", given)
        return made.client_id, key

    def http(self, login: tuple[str, str]) -> httpx.Client:
        return httpx.Client(base_url=self.served.runtime.console, auth=login, trust_env=False, timeout=60)

    def run(self, login: tuple[str, str], *arguments: str) -> "subprocess.CompletedProcess[str]":
        """A command as somebody elsewhere types it."""
        known = {
            "HEADGATE_URL": self.served.runtime.console.rstrip("/"),
            "HEADGATE_CLIENT_ID": login[0],
            "HEADGATE_CLIENT_SECRET": login[1],
        }
        left = {name: value for name, value in os.environ.items() if not name.startswith("HEADGATE_")}
        return subprocess.run(
            [HEADGATE, *arguments], env=left | known, capture_output=True, text=True, timeout=120, check=False
        )


@pytest.fixture(scope="module")
def shop(served: Served, broker: Broker) -> Iterator[Shop]:
    shop = Shop(served, f"roles-{uuid.uuid4().hex[:8]}")
    admin = shop.http(shop.client("admin", "admin"))
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for topic in (shop.orders, shop.salaries):
        assert admin.post("/api/v1/topics", json={"name": topic, "partitions": 1}).status_code == 201
        body = {"schema": json.dumps(SCHEMA)}
        registered = admin.post(f"/registry/subjects/{topic}-value/versions", json=body)
        assert registered.status_code == 200, registered.text
        prefix = b"\x00" + registered.json()["id"].to_bytes(4, "big")
        for number in range(3):
            producer.produce(topic, prefix + bytes([2 * number]))
        assert admin.post("/api/v1/tables", json={"topic": topic}).status_code == 201
    assert producer.flush(30) == 0
    yield shop
    for topic in (shop.orders, shop.salaries):
        # There is no engine that would carry out a request.
        served.store.remove_table(topic)
        admin.delete(f"/api/v1/topics/{topic}")
        for permanent in (False, True):
            admin.delete(f"/registry/subjects/{topic}-value", params={"permanent": permanent})
    admin.close()


def test_a_reader_sees_its_topics_and_changes_nothing(shop: Shop) -> None:
    with shop.http(shop.client("reader")) as http:
        assert [topic["name"] for topic in http.get("/api/v1/topics").json()] == [shop.orders]
        shown = http.get(f"/api/v1/topics/{shop.orders}").json()
        assert shown["offsets"] == [{"partition": 0, "earliest": 0, "end": 3}]
        for topic in (shop.salaries, f"{shop.prefix}.hr.nobody"):
            for path in (f"topics/{topic}", f"topics/{topic}/records", f"tables/{topic}"):
                assert http.get(f"/api/v1/{path}").status_code == 404
        assert http.delete(f"/api/v1/topics/{shop.orders}").status_code == 403
        assert http.post(f"/api/v1/tables/{shop.orders}/suspend").status_code == 403


def test_records_are_shown_to_who_may_read_their_topic(shop: Shop) -> None:
    with shop.http(shop.client("reader")) as http:
        answer = http.get(f"/api/v1/topics/{shop.orders}/records", params={"limit": 2})
        lines = [json.loads(line) for line in answer.text.splitlines()]
        assert [line["op"] for line in lines] == ["insert", "insert", "end"]
        assert [line["row"]["value"] for line in lines[:2]] == [{"id": 0}, {"id": 1}]


def test_the_registry_shows_the_subjects_of_ones_topics(shop: Shop) -> None:
    with shop.http(shop.client("reader")) as http, shop.http(shop.client("writer")) as writer:
        assert http.get("/registry/subjects").json() == [f"{shop.orders}-value"]
        assert {one["subject"] for one in http.get("/registry/schemas").json()} == {f"{shop.orders}-value"}
        shown = http.get(f"/registry/subjects/{shop.orders}-value/versions/latest").json()
        assert http.get(f"/registry/schemas/ids/{shown['id']}").status_code == 200
        hidden = http.get(f"/registry/subjects/{shop.salaries}-value/versions")
        absent = http.get(f"/registry/subjects/{shop.prefix}.hr.nobody-value/versions")
        assert (hidden.status_code, hidden.json()["error_code"]) == (404, 40401)
        assert absent.text == hidden.text.replace(shop.salaries, f"{shop.prefix}.hr.nobody")
        body = {"schema": json.dumps(SCHEMA)}
        path = f"/registry/subjects/{shop.orders}-value"
        assert http.post(path, json=body).status_code == 200
        assert http.post(f"{path}/versions", json=body).status_code == 403
        assert writer.post(f"{path}/versions", json=body).status_code == 200
        assert writer.delete(path, params={"permanent": "true"}).status_code == 403
        assert writer.put("/registry/config", json={"compatibility": "NONE"}).status_code == 403
        made_of = {"references": [{"name": "x", "subject": f"{shop.salaries}-value", "version": 1}]}
        assert writer.post(f"{path}/versions", json=body | made_of).status_code == 404


def test_a_schema_of_others_is_not_told_by_its_id(shop: Shop) -> None:
    own = {"type": "record", "name": "Salary", "fields": [{"name": "euros", "type": "long"}]}
    with shop.http(shop.client("admin", "admin")) as admin, shop.http(shop.client("reader")) as reader:
        subject = f"{shop.salaries}-key"
        made = admin.post(f"/registry/subjects/{subject}/versions", json={"schema": json.dumps(own)}).json()
        try:
            for path in (f"ids/{made['id']}", f"ids/{made['id']}/schema", f"guids/{made['guid']}"):
                assert admin.get(f"/registry/schemas/{path}").status_code == 200
                assert reader.get(f"/registry/schemas/{path}").status_code == 404
            for path in (f"ids/{made['id']}/versions", f"ids/{made['id']}/subjects"):
                assert reader.get(f"/registry/schemas/{path}").status_code == 404
        finally:
            for permanent in (False, True):
                admin.delete(f"/registry/subjects/{subject}", params={"permanent": permanent})


@pytest.mark.parametrize(
    ("role", "sql", "status"),
    [
        ("reader", "DESCRIBE `{orders}`; EXPLAIN SELECT id FROM `{orders}`", 200),
        ("reader", "SHOW CREATE TABLE `{orders}`", 200),
        ("reader", "DESCRIBE `{salaries}`", 404),
        ("reader", "EXPLAIN SELECT id FROM `{salaries}`", 400),
        ("reader", "SELECT id FROM `{orders}`", 200),
        ("reader", "SELECT o.id FROM `{orders}` o JOIN `{salaries}` s ON o.id = s.id", 400),
        ("reader", "INSERT INTO `{orders}` SELECT id FROM `{orders}`", 403),
        ("reader", "CREATE TABLE `{prefix}.shop.x` (a INT)", 403),
        ("reader", "CREATE VIEW `{prefix}.shop.v` AS SELECT id FROM `{orders}`", 403),
        ("writer", "CREATE TABLE `{prefix}.hr.x` (a INT)", 403),
        ("writer", "INSERT INTO `{salaries}` SELECT id FROM `{orders}`", 404),
        ("writer", "INSERT INTO `{orders}` SELECT id FROM `{salaries}`", 400),
        ("writer", "CREATE TABLE `{prefix}.shop.y` AS SELECT id FROM `{salaries}`", 400),
        ("writer", "CREATE VIEW `{prefix}.shop.v` AS SELECT id FROM `{salaries}`", 400),
        ("writer", "ALTER TABLE `{salaries}` SET ('value.format' = 'json')", 404),
        ("writer", "DROP TABLE `{orders}`", 403),
        ("writer", "DROP TABLE `{salaries}`", 404),
        ("writer", "DROP TABLE IF EXISTS `{salaries}`; DROP VIEW IF EXISTS `{salaries}`", 200),
        (
            "writer",
            "SET '{take}' = 'no'; CREATE TABLE `{prefix}.shop.z` AS {all}",
            404,
        ),
    ],
)
def test_sql_reads_and_writes_what_its_caller_may(shop: Shop, role: str, sql: str, status: int) -> None:
    names = {"prefix": shop.prefix, "orders": shop.orders, "salaries": shop.salaries}
    names |= {"all": f"SELECT id FROM `{shop.orders}`", "take": "sql.tables.initial-offset-from"}
    with shop.http(shop.client(role)) as http:
        answer = http.post("/api/v1/sql", json={"sql": sql.format(**names)})
    assert answer.status_code == status, answer.text
    with shop.http(shop.client("admin", "admin")) as admin:
        assert admin.get(f"/api/v1/topics/{shop.salaries}").status_code == 200
        assert [s for s in admin.get("/api/v1/statements").json() if shop.prefix in s["name"]] == []


def test_what_one_may_not_read_is_unknown_to_sql(shop: Shop) -> None:
    """Word by word the same answer as for a topic that is not there."""
    absent = f"{shop.prefix}.hr.nobody"
    with shop.http(shop.client("writer")) as http:
        for sql in (
            "SELECT id FROM `{}`",
            "DESCRIBE `{}`",
            "SHOW CREATE TABLE `{}`",
            "INSERT INTO `{}` SELECT 1",
            "CREATE TABLE `{}` (a INT)",
            "ALTER TABLE `{}` SET ('value.format' = 'json')",
            "DROP TABLE `{}`",
            "DROP VIEW `{}`",
        ):
            hidden, missing = (
                http.post("/api/v1/sql", json={"sql": sql.format(topic)}) for topic in (shop.salaries, absent)
            )
            assert hidden.status_code == missing.status_code, sql
            assert hidden.text.replace(shop.salaries, absent) == missing.text, sql
        shown = http.post("/api/v1/sql", json={"sql": "SHOW TABLES"}).json()["outcomes"][0]["rows"]
        assert shown == [[shop.orders]]


def test_a_writer_runs_statements_over_what_it_reads_into_what_it_writes(shop: Shop) -> None:
    target, name = f"{shop.prefix}.shop.copy", f"copy-{shop.prefix}"
    create = f"CREATE TABLE `{target}` AS SELECT id FROM `{shop.orders}`"
    script = f"SET 'client.statement-name' = '{name}'; {create}"
    with shop.http(shop.client("writer")) as writer, shop.http(shop.client("reader")) as reader:
        made = writer.post("/api/v1/sql", json={"sql": script})
        assert made.status_code == 200, made.text
        other = shop.http(shop.client("reader", f"reader:local:{shop.orders}"))
        with other:
            assert other.get("/api/v1/statements").json() == []
            assert other.get(f"/api/v1/statements/{name}").status_code == 404
        assert [one["name"] for one in reader.get("/api/v1/statements").json()] == [name]
        assert reader.post(f"/api/v1/statements/{name}/stop").status_code == 403
        assert writer.post(f"/api/v1/statements/{name}/stop").status_code == 202
        reset = writer.post(f"/api/v1/statements/{name}/reset", json={"from": "earliest"})
        assert reset.status_code == 403
        other_target = f"{shop.prefix}.shop.other"
        again = f"CREATE TABLE `{other_target}` AS SELECT id FROM `{shop.orders}`"
        taken = f"SET 'sql.tables.initial-offset-from' = '{name}'; {again}"
        grants = (f"writer:local:{shop.orders}", f"writer:local:{other_target}")
        with shop.http(shop.client("writer", *grants)) as narrow:
            refused = narrow.post("/api/v1/sql", json={"sql": taken})
            assert (refused.status_code, "There is no statement" in refused.text) == (404, True)
        assert writer.delete(f"/api/v1/statements/{name}").status_code == 202
        assert reader.post("/api/v1/sql", json={"sql": f"DROP TABLE `{target}`"}).status_code == 403
    with shop.http(shop.client("admin")) as admin:
        deleted = admin.get(f"/api/v1/statements/{name}").json()
        assert deleted["desired"] == "deleted"
        # There is no engine here that would carry it out.
        Statements(shop.served.store.engine).remove(deleted["id"])
        assert admin.post("/api/v1/sql", json={"sql": f"DROP TABLE `{target}`"}).status_code == 200


def test_commands_work_from_elsewhere_with_a_readers_credential(shop: Shop) -> None:
    login = shop.client("reader")
    listed = shop.run(login, "topic", "list", "--json")
    names = [topic["name"] for topic in json.loads(listed.stdout)]
    assert shop.orders in names
    assert shop.salaries not in names
    described = json.loads(shop.run(login, "topic", "describe", shop.orders, "--json").stdout)
    assert (described["partitions"][0]["end"], described["table"]) == (3, "Pending")
    read = shop.run(login, "topic", "consume", shop.orders, "--limit", "3", "--json")
    assert [json.loads(line)["value"]["id"] for line in read.stdout.splitlines()] == [0, 1, 2]
    reading: list[list[str]] = [
        ["status", "--json"],
        ["table", "list"],
        ["table", "show", shop.orders],
        ["statement", "list"],
        ["sql", "-e", f"DESCRIBE `{shop.orders}`"],
    ]
    for arguments in reading:
        done = shop.run(login, *arguments)
        assert (done.returncode, shop.salaries in done.stdout) == (0, False), (arguments, done.stderr)
    changing: list[list[str]] = [
        ["table", "suspend", shop.orders],
        ["topic", "delete", shop.orders, "--yes"],
        ["credentials", "list"],
        ["audit"],
    ]
    for arguments in changing:
        done = shop.run(login, *arguments)
        assert (done.returncode, "it takes the role" in done.stderr) == (1, True), (arguments, done.stderr)
    missing = shop.run(login, "table", "show", shop.salaries)
    assert (missing.returncode, "There is no table" in missing.stderr) == (1, True)


def test_commits_of_other_clients_are_in_the_trail(shop: Shop) -> None:
    login = shop.client("writer", "writer:sandbox*")
    with shop.http(login) as http, shop.http(shop.client("admin", "admin")) as admin:
        token = http.post("/iceberg/v1/oauth/tokens", data={"grant_type": "client_credentials"}).json()
        space = f"sandbox{uuid.uuid4().hex[:8]}"
        with httpx.Client(
            base_url=shop.served.runtime.console,
            headers={"Authorization": f"Bearer {token['access_token']}"},
            trust_env=False,
        ) as client:
            assert client.post("/iceberg/v1/namespaces", json={"namespace": [space]}).status_code == 200
            wanted = {"name": "t", "schema": {"type": "struct", "fields": []}}
            made = client.post(f"/iceberg/v1/namespaces/{space}/tables", json=wanted)
            assert made.status_code == 200, made.text
            table = f"/iceberg/v1/namespaces/{space}/tables/t"
            change = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "b"}}]}
            assert client.post(table, json=change).status_code == 200
            assert client.get(table).status_code == 200
            assert client.delete(table).status_code == 204
        deadline = time.monotonic() + 20
        entries: list[dict[str, Any]] = []
        while len(entries) < 5 and time.monotonic() < deadline:
            entries = admin.get("/api/v1/audit", params={"who": login[0]}).json()
            time.sleep(0.1)
        assert [(entry["action"], entry["things"]) for entry in reversed(entries)] == [
            ("POST /iceberg/v1/oauth/tokens", []),
            ("POST /iceberg/v1/namespaces", []),
            (f"POST /iceberg/v1/namespaces/{space}/tables", [f"namespace {space}"]),
            (f"POST {table}", [f"table {space}.t"]),
            (f"DELETE {table}", [f"table {space}.t"]),
        ]
        assert token["access_token"] not in json.dumps(entries)


@pytest.mark.soak
@pytest.mark.parametrize("role", ["nobody", *ROLES, "reader of all", "admin of all"])
def test_whatever_is_asked_by_the_description_is_answered_without_a_500(shop: Shop, role: str) -> None:
    """Values of all kinds, for every route, as each role."""
    headers = {"Authorization": "Bearer nobody"}
    if role != "nobody":
        kind, _, everywhere = role.partition(" ")
        client_id, key = shop.client(kind, *((kind,) if everywhere else ()))
        shown = base64.b64encode(f"{client_id}:{key}".encode()).decode()
        headers = {"Authorization": f"Basic {shown}"}
    root = shop.served.runtime.console.rstrip("/")
    with shop.http(shop.client("reader")) as http:
        description = http.get("/api/v1/openapi.json").json()
    description["paths"] = {
        path: {method: one for method, one in methods.items() if (method, path) not in ELSEWHERE}
        for path, methods in description["paths"].items()
        if path.startswith("/api/v1/") and not path.startswith("/api/v1/queries")
    }
    asked = 0
    for result in schemathesis.openapi.from_dict(description).get_all_operations():
        operation = cast(Any, result).ok()

        @given(case=operation.as_strategy())
        @settings(
            max_examples=EXAMPLES,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        def ask(case: Any) -> None:
            nonlocal asked
            answer = case.call(base_url=root, headers=headers, timeout=90)
            asked += 1
            assert answer.status_code < 500, (case.as_curl_command(), answer.text)

        ask()
    assert asked >= 40
