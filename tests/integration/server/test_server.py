"""The server process: everything behind one port, and its end."""

import os
import signal
import uuid
from pathlib import Path

import httpx
import pytest

from headgate.embedded.broker import Broker
from headgate.embedded.process import group_members, kill_group
from headgate.kafka.topics import Topics
from tests.integration.server.conftest import Served, serve


@pytest.fixture
def http(served: Served) -> httpx.Client:
    return httpx.Client(base_url=served.runtime.console, trust_env=False)


def test_all_parts_answer_on_one_port(served: Served, http: httpx.Client) -> None:
    with http:
        health = http.get("/healthz").json()
        assert health["checks"] == dict.fromkeys(("store", "jvm", "registry", "catalog"), "ok")
        assert health["instance"] == "test"
        assert isinstance(http.get("/registry/subjects").json(), list)
        assert "endpoints" in http.get("/iceberg/v1/config").json()
        assert "headgate_process_up" in http.get("/metrics").text
        assert "Headgate" in http.get("/").text

    beat = served.store.process("server")
    assert (beat.state, beat.instance, beat.pid) == ("ready", "test", served.process.pid)


def test_errors_of_each_part_are_in_its_own_words(http: httpx.Client) -> None:
    with http:
        registry = http.get("/registry/subjects/nope/versions")
        iceberg = http.get("/iceberg/v1/namespaces/nope")
        api = http.get("/api/v1/tables/nope")

    assert registry.json()["error_code"] == 40401
    assert iceberg.json()["error"]["type"] == "NoSuchNamespaceException"
    assert api.json()["error"] == "NotFound"
    assert {registry.status_code, iceberg.status_code, api.status_code} == {404}


def test_topics_come_and_go(http: httpx.Client, broker: Broker) -> None:
    name = f"api.{uuid.uuid4()}"
    with http:
        made = http.post(
            "/api/v1/topics", json={"name": name, "partitions": 2, "config": {"retention.ms": "60000"}}
        )
        assert made.status_code == 201
        assert Topics(broker.bootstrap).describe(name).id == made.json()["id"]
        assert http.post("/api/v1/topics", json={"name": name}).status_code == 409
        shown = http.get(f"/api/v1/topics/{name}").json()
        assert (shown["partitions"], shown["config"]) == ([0, 1], {"retention.ms": "60000"})
        assert name in [topic["name"] for topic in http.get("/api/v1/topics").json()]
        assert http.delete(f"/api/v1/topics/{name}").status_code == 204
        assert http.get(f"/api/v1/topics/{name}").status_code == 404


def test_a_table_needs_a_topic_that_is_there(http: httpx.Client, served: Served, broker: Broker) -> None:
    name = f"api.{uuid.uuid4()}"
    with http:
        missing = http.post("/api/v1/tables", json={"topic": name})
        assert (missing.status_code, missing.json()["error"]) == (404, "NotFound")

        Topics(broker.bootstrap).create(name, partitions=2)
        wrong = http.post("/api/v1/tables", json={"topic": name, "from": "7:1"})
        assert (wrong.status_code, wrong.json()["message"]) == (400, f"Topic '{name}' has no partition 7.")
        assert name not in [record.spec.topic for record in served.store.tables()]

        made = http.post("/api/v1/tables", json={"topic": name, "from": "0:0", "freshness": "3s"})
        assert (made.status_code, made.json()["state"]) == (201, "Pending")
        assert http.post("/api/v1/tables", json={"topic": name}).status_code == 409
    assert served.store.table(name).spec.freshness_seconds == 3


def test_a_topic_is_read_in_one_way_while_it_is_a_table(http: httpx.Client, served: Served) -> None:
    name = f"api.{uuid.uuid4()}"

    def said(sql: str) -> httpx.Response:
        return http.post("/api/v1/sql", json={"sql": sql})

    with http:
        said(f"CREATE TABLE `{name}` (a INT) WITH ('changelog.mode' = 'retract')").raise_for_status()
        refused = http.post("/api/v1/tables", json={"topic": name})
        assert (refused.status_code, refused.json()["error"]) == (400, "InvalidRequest")
        assert "upsert table" in refused.json()["remedy"]

        to_append = f"ALTER TABLE `{name}` SET ('changelog.mode' = 'append')"
        assert said(to_append).json()["outcomes"][0]["warnings"]
        assert http.post("/api/v1/tables", json={"topic": name}).status_code == 201
        back = said(to_append.replace("append", "retract"))
        assert (back.status_code, back.json()["error"]) == (400, "InvalidRequest")
        assert f"headgate table disable {name} --purge" in back.json()["remedy"]
        # What is so already is not altered, and other options can be.
        assert said(f"{to_append}; ALTER TABLE `{name}` SET ('kafka.retention.time' = '1 h')").is_success
        served.store.remove_table(name)
        assert said(to_append.replace("append", "retract")).is_success


def test_a_server_whose_jvm_is_gone_ends_so_that_it_can_be_started_anew(
    tmp_path: Path, broker: Broker
) -> None:
    served = serve(tmp_path, broker.bootstrap)
    pid = served.process.pid
    try:
        (java,) = (member for member in group_members(pid) if member != pid)
        os.kill(java, signal.SIGKILL)

        assert served.process.wait(timeout=30) == 1
    finally:
        kill_group(pid)
        served.process.wait()
        served.store.close()
