"""Exports over the API: who may, what is refused, what is shown and counted."""

import time
from typing import Any

import pytest
import sqlalchemy as sa
from fastapi.testclient import TestClient

from headgate.config import load_settings
from headgate.embedded.runtime import Runtime
from headgate.embedded.secrets import EXPORT_KEY, secret
from headgate.errors import InvalidRequest
from headgate.export.definition import parse_options
from headgate.export.links import Links
from headgate.export.service import Scheduler
from headgate.server.api.exports import ExportDesk
from headgate.store import Exports, RunState, Store

SALES: dict[str, Any] = {
    "name": "weekly",
    "sql": "SELECT * FROM sales WHERE at >= :from AND at < :to",
    "zone": "Europe/Oslo",
}
EXPORTS = "/api/v1/exports"


def made(client: TestClient, **said: Any) -> Any:
    return client.post(EXPORTS, json=SALES | said)


def test_the_life_of_an_export(client: TestClient, store: Store) -> None:
    shown = made(client)
    assert shown.status_code == 201, shown.text
    assert shown.json()["spec"] == {key: value for key, value in SALES.items() if key != "name"}
    assert (shown.json()["schedule"], shown.json()["next"][11:19]) == ("0 6 * * 1", "06:00:00")
    assert made(client).status_code == 409
    assert client.post(f"{EXPORTS}/weekly/pause").json()["next"] is None
    changed = client.put(f"{EXPORTS}/weekly", json={"sql": SALES["sql"], "format": "jsonl"}).json()
    assert changed["spec"] == {"sql": SALES["sql"], "format": "jsonl"}
    assert (changed["zone"], changed["state"]) == ("UTC", "paused")
    assert client.post(f"{EXPORTS}/weekly/resume").json()["state"] == "active"
    (listed,) = client.get(EXPORTS).json()
    assert (listed["name"], listed["last_run"]) == ("weekly", None)
    assert client.delete(f"{EXPORTS}/weekly").status_code == 204
    assert client.get(f"{EXPORTS}/weekly").status_code == 404
    entries = client.get("/api/v1/audit").json()
    assert entries[0]["action"] == f"DELETE {EXPORTS}/weekly"
    assert entries[0]["things"] == ["export weekly"]


def test_another_schedule_begins_when_it_is_said(client: TestClient, store: Store) -> None:
    made(client, zone="UTC")
    exports, weeks = Exports(store.engine), 3
    since = time.time() - weeks * 7 * 86_400
    with store.engine.begin() as connection:
        connection.execute(sa.text("UPDATE exports SET scheduled_until = :at"), {"at": since})
    often = {"sql": SALES["sql"], "schedule": "*/5 * * * *"}
    assert client.put(f"{EXPORTS}/weekly", json=often).status_code == 200
    # What the schedule before has missed is made up for, and no five minutes of these weeks.
    assert len(exports.runs("weekly")) == weeks
    Scheduler(exports).look()
    assert len(exports.runs("weekly")) <= weeks + 1
    assert client.put(f"{EXPORTS}/other", json=often).status_code == 404


def test_whom_no_mail_reaches_is_seen_in_the_overview(client: TestClient, store: Store) -> None:
    made(client)
    run = client.post(f"{EXPORTS}/weekly/run").json()["id"]
    exports = Exports(store.engine)
    for tries in range(3):
        assert exports.untold(3) == [], tries
        assert exports.take("one", 60) is not None
        assert exports.note(run, "one", RunState.WRITTEN, {})
        assert exports.retry(run, "one", "The mail server does not answer.", 0.0)
    assert [one.id for one in exports.untold(3)] == [run]
    (need,) = [one for one in client.get("/api/v1/status").json()["attention"] if one["kind"] == "export"]
    assert (need["name"], need["reason"]) == ("weekly", "The mail server does not answer.")


def test_a_run_is_about_the_last_period_or_what_is_said(client: TestClient) -> None:
    made(client)
    last = client.post(f"{EXPORTS}/weekly/run").json()
    assert (last["from"][11:], last["state"], last["made_by"]) == (
        "00:00:00" + last["from"][-6:],
        "Waiting",
        "request",
    )
    said = client.post(f"{EXPORTS}/weekly/run", json={"from": "2026-03-29", "to": "2026-03-30T00:00"}).json()
    assert (said["from"], said["to"]) == ("2026-03-29T00:00:00+01:00", "2026-03-30T00:00:00+02:00")
    assert [run["id"] for run in client.get(f"{EXPORTS}/weekly/runs").json()] == [said["id"], last["id"]]
    for wrong in ({"from": "2026-03-30"}, {"from": "2026-03-30", "to": "2026-03-29"}):
        assert client.post(f"{EXPORTS}/weekly/run", json=wrong).status_code == 400


@pytest.mark.parametrize(
    ("said", "word"),
    [
        ({"name": "a b"}, "cannot name an export"),
        ({"sql": "DELETE FROM sales"}, "no query"),
        ({"zone": "Mars/Base"}, "no time zone"),
        ({"schedule": "0 6 * *"}, "has 4 fields"),
        ({"folder": "../up"}, "no folder below"),
        ({"folder": "/etc"}, "no folder below"),
        ({"file_name": "{export}"}, "each run needs"),
        ({"file_name": "../{run}"}, "is no name"),
        ({"masks": {"a": {"mask": "hash"}}}, "needs the name of a `secret`"),
        ({"masks": {"a": {"mask": "hash", "secret": "unknown"}}}, "no secret 'unknown'"),
        ({"mail": {"to": ["nobody"]}}, "no mail address"),
        ({"mail": {"to": ["a@example.org\nBcc: b@example.org"]}}, "no mail address"),
        ({"mail": {"to": ["a@example.org"]}}, "no mail server"),
        ({"csv": {"delimiter": '"'}}, "delimiter"),
        ({"format": "parquet", "compression": "gzip"}, "compressed inside"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_kept(
    client: TestClient, said: dict[str, Any], word: str
) -> None:
    answer = made(client, **said)
    assert answer.status_code in (400, 422)
    assert word in answer.text
    assert client.get(EXPORTS).json() == []


def test_a_catalog_of_ones_own_is_told_no_key_of_ours(store: Store, tmp_path: Any) -> None:
    settings = load_settings(
        environment={"HEADGATE_CATALOG__URI": "https://catalog.example"}, data=tmp_path / "other"
    )
    desk = ExportDesk(Runtime.of(settings, server_port=1, connect_port=1, broker_port=1), store)
    with pytest.raises(InvalidRequest, match="embedded catalog"):
        desk.create("weekly", parse_options({"sql": SALES["sql"]}))


def finished(store: Store, client: TestClient, file: Any) -> str:
    made(client)
    run_id = str(client.post(f"{EXPORTS}/weekly/run").json()["id"])
    exports = Exports(store.engine)
    assert exports.take("me", 60) is not None
    detail = {"file": str(file), "rows": 2, "bytes": 4, "seconds": 0.5}
    assert exports.end(run_id, "me", RunState.DONE, "", detail)
    return run_id


def test_a_link_opens_its_file_without_a_credential_until_it_expires(
    client: TestClient, store: Store, runtime: Runtime, tmp_path: Any
) -> None:
    file = tmp_path / "sales.csv"
    file.write_bytes(b"a,b\r\n")
    run_id = finished(store, client, file)
    links = Links(secret(runtime.data, EXPORT_KEY), "http://127.0.0.1:8080")
    link = links.make(run_id, 60)
    answer = client.get(link, headers={"Authorization": "Bearer of nothing"})
    assert (answer.status_code, answer.content) == (200, file.read_bytes())
    assert answer.headers["content-type"].startswith("text/csv")
    assert "opened" in store.events("export weekly")[0]["kind"]
    for wrong in (
        links.make(run_id, -1),
        link[:-1],
        link.replace(run_id, "0" * 16),
        links.make(run_id, 60, 2),
    ):
        assert client.get(wrong).status_code in (401, 404)
    # What is no link of a file is a page of the console.
    assert client.get(f"{link}/../{link}").content != file.read_bytes()
    file.unlink()
    assert client.get(link).status_code == 404
    client.delete(f"{EXPORTS}/weekly")
    assert client.get(link).status_code == 404


def test_an_admin_downloads_the_file_of_a_run_and_it_is_written_down(
    client: TestClient, store: Store, tmp_path: Any
) -> None:
    file = tmp_path / "sales.csv"
    file.write_bytes(b"a,b\r\n")
    path = f"{EXPORTS}/weekly/runs/{finished(store, client, file)}/file"
    answer = client.get(path)
    assert (answer.status_code, answer.content) == (200, file.read_bytes())
    assert answer.headers["content-disposition"] == 'attachment; filename="sales.csv"'
    assert answer.headers["cache-control"] == "no-store"
    assert store.events("export weekly")[0]["kind"] == "file downloaded"
    assert client.get("/api/v1/audit").json()[0]["action"] == f"GET {path}"
    made(client, name="another")
    for wrong in (path.replace("weekly", "another"), path.replace("/file", "0/file")):
        assert client.get(wrong).status_code == 404, wrong
    file.unlink()
    assert client.get(path).status_code == 404


def test_metrics_count_runs_and_show_the_last_file(client: TestClient, store: Store, tmp_path: Any) -> None:
    finished(store, client, tmp_path / "none")
    text = client.get("/metrics").text
    for line in (
        'headgate_export_runs{export="weekly",state="Done"} 1.0',
        'headgate_export_last_rows{export="weekly"} 2.0',
        'headgate_export_paused{export="weekly"} 0.0',
    ):
        assert line in text
