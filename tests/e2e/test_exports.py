"""A week of sales as a user asks for it: deduplicated, flat, masked, a table, a file by schedule, and a mail.

The file is, to its last byte, what plain Python computes from the generator's seed.
"""

import csv
import io
import os
import random
import shutil
import signal
import subprocess
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from datetime import UTC, datetime
from hashlib import sha256
from hmac import digest
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import duckdb
import httpx
import pandas as pd
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pytest
import sqlalchemy as sa
import yaml

from headgate.datagen.sales import Sales
from headgate.embedded.secrets import EXPORT_KEY, secret
from headgate.export.links import Links
from headgate.store import Exports, RunState
from tests.conftest import PEPPER
from tests.support.services import wait_for
from tests.support.stack import Stack
from tests.support.there import There, take_away

ROOT = Path(__file__).parents[2]
SOAK = os.environ.get("HEADGATE_SOAK") == "1"
EVENTS = 60_000 if SOAK else 3_000
SEED = 7
NAME = "sales-week"
ZONE = ZoneInfo("Europe/Amsterdam")
TO = ["partner@example.org", "desk@example.org"]
COLUMNS = (
    "event_id",
    "step",
    "stand",
    "happened_at",
    "sku",
    "title",
    "order_id",
    "quantity",
    "total",
    "customer_id",
    "email",
    "phone",
    "country",
)
# Comma, double quotes, UTF-8, from the first line; what each column is.
CSV_FILTER = "Text - txt - csv (StarCalc):44,34,76,1,{}"
# The story begins on the first of January 2025, a Wednesday: its week is over on the sixth.
EXPORT: dict[str, Any] = {
    "sql": f"SELECT {', '.join(COLUMNS)} FROM clean_sales WHERE happened_at >= :from AND happened_at < :to",
    "schedule": "0 6 6 1 *",
    "zone": ZONE.key,
    "order_by": ["event_id"],
    "columns": list(COLUMNS),
    "personal": ["customer_id"],
    "masks": {"customer_id": {"mask": "token", "secret": "pepper"}},
    "compression": "none",
    "folder": "partners/acme",
    "mail": {"to": TO, "attach_up_to": 0},
}
KILLS = ("export-taken", "export-recorded", "export-moved", "export-mailed")
ALL_KILLS = (
    "export-chosen",
    "export-held",
    "export-writing",
    "export-written",
    "export-manifest",
    "export-told",
)


@pytest.fixture(scope="module")
def world(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """The sales world of the examples with an export, and its events in the table."""
    before = There.on(stack)
    folder = tmp_path_factory.mktemp("sales")
    shutil.copytree(ROOT / "examples" / "sales", folder / "sales")
    wanted = yaml.safe_load((ROOT / "examples" / "sales.yaml").read_text())
    wanted["exports"] = {NAME: EXPORT}
    (folder / "sales.yaml").write_text(yaml.safe_dump(wanted))
    stack.run("apply", str(folder / "sales.yaml"), "--yes")
    assert "nothing to do" in stack.run("plan", str(folder / "sales.yaml")).stdout.lower()
    stack.run("datagen", "sales", "--limit", str(EVENTS), "--seed", str(SEED))
    wait_for("the sales in the table", lambda: rows_of(stack) == EVENTS, 240)
    yield stack
    # The stack is others' too: they make a sales world of their own.
    for export in stack.json("export", "list"):
        stack.run("export", "remove", export["name"])
    take_away(stack, before)


def rows_of(stack: Stack) -> int:
    record = next((one for one in stack.store.tables() if one.spec.topic == "clean_sales"), None)
    return 0 if record is None else int(record.status.detail.get("rows") or 0)


def expected_bytes() -> bytes:
    """The file, in plain Python."""
    events = {record.value["event_id"]: record.value for record in Sales(SEED).records(EVENTS)}
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    writer.writerow(COLUMNS)
    for event_id in sorted(events):
        writer.writerow(map(neutral, plain_row(events[event_id])))
    return out.getvalue().encode()


def plain_row(event: dict[str, Any]) -> list[Any]:
    order, customer = event["order"] or {}, event["customer"]
    at = datetime.fromtimestamp(event["happened_at"] / 1000, UTC).astimezone(ZONE)
    hidden = digest(PEPPER.encode(), f"token:{customer['customer_id']}".encode(), "sha256")
    mail = customer["contact"]["email"]
    name, _, domain = mail.rpartition("@")
    phone = customer["contact"]["phone"]
    return [
        event["event_id"],
        event["step"],
        event["stand"],
        at.isoformat(timespec="microseconds"),
        event["product"]["sku"],
        event["product"]["title"],
        order.get("order_id"),
        order.get("quantity"),
        order.get("total"),
        urlsafe_b64encode(hidden).decode()[:16],
        f"{name[0]}{'*' * (len(name) - 2)}{name[-1]}@{domain}",
        phone and "".join("*" if c.isdigit() else c for c in phone[:-2]) + phone[-2:],
        customer["country"],
    ]


def neutral(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@") else value


def ended(stack: Stack, name: str, run_id: str, seconds: float) -> dict[str, Any]:
    """A run at its end, however it ended."""

    def look() -> dict[str, Any] | None:
        run = Exports(stack.store.engine).run(run_id)
        return None if run.ended_at is None else next(r for r in runs(stack, name) if r["id"] == run_id)

    found: dict[str, Any] = wait_for(f"run {run_id} of {name}", look, seconds)
    return found


def runs(stack: Stack, name: str = NAME) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = stack.json("export", "history", name)
    return found


def mails_of(stack: Stack, run: dict[str, Any]) -> list[Any]:
    return [mail for mail in stack.mails.mails if run["id"] in str(mail["Message-ID"])]


def test_a_missed_week_of_sales_is_exported_by_its_schedule_and_mailed(world: Stack) -> None:
    # As if Headgate had not run since: the times of two Januaries were missed.
    since = datetime(2025, 1, 5, tzinfo=UTC).timestamp()
    with world.store.engine.begin() as connection:
        connection.execute(sa.text("UPDATE exports SET scheduled_until = :at"), {"at": since})
    exports = Exports(world.store.engine)
    wait_for("two runs", lambda: [one.state for one in exports.runs(NAME)] == [RunState.DONE] * 2, 240)
    nothing, week = sorted(runs(world), key=lambda run: -run["rows"], reverse=True)
    assert (week["from"], week["to"]) == ("2024-12-30T00:00:00+01:00", "2025-01-06T00:00:00+01:00")
    assert (week["made_by"], week["rows"], nothing["rows"]) == ("schedule", EVENTS, 0)
    file = Path(week["file"])
    assert file == world.data / "exports/partners/acme/sales-week_2024-12-30_2025-01-06.csv"
    assert file.read_bytes() == expected_bytes()
    check_readers(file)
    check_manifest(file, week)
    check_mail(world, week)


def check_readers(file: Path) -> None:
    """Others read the rows that Python's reader reads."""
    rows = list(csv.reader(io.StringIO(file.read_text(), newline="")))[1:]
    texts = arrow_csv.ConvertOptions(
        column_types=dict.fromkeys(COLUMNS, pa.string()), strings_can_be_null=False
    )
    by_arrow = arrow_csv.read_csv(file, convert_options=texts)
    assert [list(row.values()) for row in by_arrow.to_pylist()] == rows
    by_pandas = pd.read_csv(file, dtype=str, keep_default_na=False)
    assert (list(by_pandas.columns), by_pandas.to_numpy().tolist()) == (list(COLUMNS), rows)
    connection = duckdb.connect()
    by_duckdb = connection.execute("SELECT * FROM read_csv(?, all_varchar = true)", [str(file)]).fetchall()
    assert [[value or "" for value in row] for row in by_duckdb] == rows
    connection.close()


def check_manifest(file: Path, run: dict[str, Any]) -> None:
    manifest = yaml.safe_load((file.parent / f"{file.name}.manifest.json").read_text())
    content = file.read_bytes()
    said = manifest["file"]
    assert (said["rows"], said["bytes"]) == (EVENTS, len(content))
    assert said["sha256"] == run["sha256"] == sha256(content).hexdigest()
    assert manifest["masked"] == {"customer_id": "token"}
    assert list(manifest["snapshots"]) == ["local.clean_sales"]
    assert manifest["repeatable"] is True
    # `email` and `phone` were masked by the statement, which their names do not tell.
    assert ["by its name" in warning for warning in manifest["warnings"]] == [True, True]


def check_mail(stack: Stack, run: dict[str, Any]) -> None:
    (mail,) = mails_of(stack, run)
    assert mail["Message-ID"] == run["message_id"]
    assert mail["To"] == ", ".join(TO)
    assert run["told"] == dict.fromkeys(TO, "sent")
    text = mail.get_body(("plain",)).get_content()
    (link,) = [line for line in text.splitlines() if line.startswith("http")]
    answer = httpx.get(link, trust_env=False, verify=False)
    assert (answer.status_code, answer.content) == (200, expected_bytes())
    assert "attachment" in answer.headers["content-disposition"]
    (event,) = [e for e in stack.store.events(f"export {NAME}") if e["kind"] == "link opened"]
    assert run["id"] in event["message"]
    key = secret(stack.data, EXPORT_KEY)
    expired = Links(key, stack.runtime.console).make(run["id"], -1)
    for wrong in (expired, link[:-2] + "xx"):
        assert httpx.get(wrong, trust_env=False, verify=False).status_code == 401


def test_what_is_masked_is_nowhere(world: Stack, tmp_path: Path) -> None:
    # Spark's own words would repeat the value that is no number.
    failing = EXPORT | {"sql": "SELECT event_id, CAST(customer_id AS BIGINT) AS customer_id FROM clean_sales"}
    failing |= {"columns": ["event_id", "customer_id"], "retries": 0}
    (tmp_path / "failing.yaml").write_text(yaml.safe_dump(failing))
    world.run("export", "create", "failing", "--definition", str(tmp_path / "failing.yaml"))
    told = len(world.mails.taken)
    failed = world.run("export", "run", "failing", code=1)
    assert "The query fails at its rows: CAST_INVALID_INPUT" in failed.stderr
    assert len(world.mails.taken) == told + 1
    customers = {record.value["customer"]["customer_id"] for record in Sales(SEED).records(200)}
    mails = {record.value["customer"]["contact"]["email"] for record in Sales(SEED).records(200)}
    places = [*(world.data / "exports").rglob("*"), *(world.data / "logs").glob("*.log")]
    texts = [path.read_bytes() for path in places if path.is_file()]
    texts += [content for _, content in world.mails.taken]
    texts += [failed.stderr.encode(), repr(world.store.events("export failing")).encode()]
    for asked in (["history", NAME], ["show", NAME], ["history", "failing"], ["list"]):
        texts += [world.run("export", *asked, "--json").stdout.encode()]
    api, events = f"{world.runtime.api}/exports/{NAME}/runs", world.store.events(f"export {NAME}")
    texts += [httpx.get(api, trust_env=False, verify=False).content, repr(events).encode()]
    assert len(texts) > 12
    for canary in (*customers, *mails, PEPPER):
        assert not [text for text in texts if canary.encode() in text], canary
    world.run("export", "remove", "failing")


def test_a_column_that_is_personal_does_not_leave_unmasked(world: Stack) -> None:
    made = world.json("export", "create", "bare", "--sql", "SELECT event_id, customer_id FROM clean_sales")
    assert made["schedule"] == "0 6 * * 1"
    answer = httpx.put(
        f"{world.runtime.api}/exports/bare",
        json={**made["spec"], "personal": ["customer_id"]},
        trust_env=False,
        verify=False,
    )
    assert answer.status_code == 200, answer.text
    done = world.run("export", "run", "bare", code=1)
    assert "column 'customer_id' is personal and would leave unmasked" in done.stderr
    changed = httpx.put(
        f"{world.runtime.api}/exports/bare",
        json={"sql": "SELECT no_such_column FROM clean_sales"},
        trust_env=False,
        verify=False,
    )
    assert changed.status_code == 200, changed.text
    assert "UNRESOLVED_COLUMN" in world.run("export", "run", "bare", code=1).stderr
    assert not list((world.data / "exports").glob("bare*"))
    world.run("export", "remove", "bare")


def test_commands_show_exports_and_hold_their_schedules(world: Stack) -> None:
    (line,) = [line for line in world.run("export", "list").stdout.splitlines() if line.startswith(NAME)]
    assert line.split()[1] == "active"
    shown = world.run("export", "show", NAME).stdout
    assert "0 6 6 1 *" in shown
    assert "FROM clean_sales" in shown
    world.run("export", "pause", NAME)
    assert world.json("export", "show", NAME)["next"] is None
    assert "runs next at" in world.run("export", "resume", NAME).stdout


def test_a_test_mail_says_what_the_server_said(world: Stack) -> None:
    before = len(world.mails.taken)
    found = world.json("export", "test", NAME, "--to", "me@example.org")
    assert found == {"to": ["me@example.org"], "refused": {}}
    assert [recipients for recipients, _ in world.mails.taken[before:]] == [["me@example.org"]]
    world.mails.refusals = {"gone@example.org": "550 nobody here"}
    done = world.run("export", "test", NAME, "--to", "gone@example.org", code=1)
    assert "refuses mail for gone@example.org: 550 nobody here" in done.stderr


def test_a_spreadsheet_reads_the_rows_of_both_formats(world: Stack, tmp_path: Path) -> None:
    office = shutil.which("soffice")
    if office is None:
        pytest.skip("there is no LibreOffice on this machine")
    book = Path(definition_run(world, "book", tmp_path, format="xlsx")["file"])
    plain = Path(next(run for run in runs(world) if run["rows"])["file"])
    events = {record.value["event_id"]: record.value for record in Sales(SEED).records(EVENTS)}
    expected = [plain_row(events[event_id]) for event_id in sorted(events)]
    texts = [["" if value is None else str(value) for value in row] for row in expected]
    assert converted(office, book, tmp_path) == [list(COLUMNS), *texts]
    neutralized = [[neutral(value) for value in row] for row in texts]
    assert (
        converted(
            office,
            plain,
            tmp_path,
            "--infilter=" + CSV_FILTER.format("/".join(f"{n}/2" for n in range(1, len(COLUMNS) + 1))),
        )[1:]
        == neutralized
    )
    by_pandas = pd.read_excel(book, dtype=str, keep_default_na=False)
    assert [row[:6] for row in by_pandas.to_numpy().tolist()] == [row[:6] for row in texts]
    world.run("export", "remove", "book")


def definition_run(stack: Stack, name: str, folder: Path, **said: Any) -> dict[str, Any]:
    """A run about the week of an export that is the week's but for what is said."""
    wanted = {**EXPORT, "mail": None, **said}
    (folder / f"{name}.yaml").write_text(yaml.safe_dump(wanted))
    stack.run("export", "create", name, "--definition", str(folder / f"{name}.yaml"))
    done: dict[str, Any] = stack.json("export", "run", name, "--from", "2024-12-30", "--to", "2025-01-06")
    return done


def converted(office: str, file: Path, folder: Path, *options: str) -> list[list[str]]:
    """The rows of a file as LibreOffice reads them, cells as they are shown."""
    out = folder / "converted"
    command = [office, f"-env:UserInstallation=file://{folder}/office", "--headless", *options]
    command += ["--convert-to", "csv:" + CSV_FILTER.format(""), "--outdir", str(out), str(file)]
    subprocess.run(command, check=True, capture_output=True, timeout=600)
    with (out / f"{file.stem}.csv").open(newline="") as content:
        return list(csv.reader(content))


@pytest.mark.soak
def test_memory_does_not_follow_the_rows(world: Stack) -> None:
    """Each event many times over; both runs by the same process."""
    few, many = (17, 334) if SOAK else (10, 50)
    peaks = []
    for times in (few, many):
        sql = f"SELECT * FROM clean_sales LATERAL VIEW explode(sequence(1, {times})) AS n"
        world.run(
            "export", "create", f"times{times}", "--sql", sql, "--zone", ZONE.key, "--compression", "gzip"
        )
        asked = world.json("export", "run", f"times{times}", "--no-wait")
        done = ended(world, f"times{times}", asked["id"], 3_600)
        assert (done["state"], done["rows"]) == ("Done", EVENTS * times)
        status = Path(f"/proc/{world.store.process('export').pid}/status").read_text()
        peaks.append(int(status.partition("VmHWM:")[2].split()[0]))
        world.run("export", "remove", f"times{times}")
    print(f"memory: {peaks} KiB at {[EVENTS * times for times in (few, many)]} rows")
    assert peaks[1] <= 1.2 * peaks[0], peaks


@pytest.mark.soak
def test_a_killed_run_ends_with_one_file_of_the_same_bytes_and_one_message_id(world: Stack) -> None:
    expected = expected_bytes()
    places = [*KILLS, *ALL_KILLS] * 2 if SOAK else list(KILLS)
    for place in places:
        run = killed_at(world, place)
        # Another mail only where the kill fell between the server's word and our record of it.
        check_killed(world, run, expected, 2 if place == "export-mailed" else 1, place)
    chance, times = random.Random(SEED), 10 if SOAK else 1
    for number in range(times):
        run, mails = killed_at_random(world, chance)
        check_killed(world, run, expected, mails, f"random {number}")
    print(f"killed {len(places)} times at its steps and {times} times at random")


def check_killed(stack: Stack, run: dict[str, Any], expected: bytes, count: int, place: str) -> None:
    file = Path(run["file"])
    assert file.read_bytes() == expected, place
    same = [one.name for one in file.parent.iterdir() if one.name.startswith((file.name, f".{file.name}"))]
    assert sorted(same) == [file.name, f"{file.name}.manifest.json"], place
    mails = mails_of(stack, run)
    assert len({str(mail["Message-ID"]) for mail in mails}) == 1, place
    assert len(mails) == count, place


def killed_at_random(stack: Stack, chance: random.Random) -> tuple[dict[str, Any], int]:
    """A run whose process is killed at any time while it goes on, and how many mails there are to be."""
    exports = Exports(stack.store.engine)
    while True:
        wait_for("the process of exports", lambda: stack.store.process("export").state == "ready", 120)
        pid = stack.store.process("export").pid
        assert pid is not None
        asked = stack.json("export", "run", NAME, "--from", "2024-12-30", "--to", "2025-01-06", "--no-wait")
        wait_for("the run", lambda run=asked["id"]: exports.run(run).started_at, 60)  # type: ignore[misc]
        time.sleep(chance.uniform(0.0, longest_of(exports)))
        missed = exports.run(asked["id"]).ended_at is not None
        if not missed:
            os.kill(pid, signal.SIGKILL)
            # What the mail server had in hand is taken; who goes on takes longer to start.
            time.sleep(0.3)
            at_kill = exports.run(asked["id"])
            unrecorded = bool(mails_of(stack, asked)) and not at_kill.detail.get("told")
        run = ended(stack, NAME, asked["id"], 240)
        assert run["state"] == "Done", run
        if not missed:
            return run, 1 + unrecorded


def longest_of(exports: Exports) -> float:
    """Seconds that the runs took which were not killed."""
    took = [
        run.ended_at - run.started_at
        for run in exports.runs(NAME)
        if run.ended_at and run.started_at and run.slot.startswith("schedule")
    ]
    return max(took)


def killed_at(stack: Stack, place: str) -> dict[str, Any]:
    """A run of the story's week whose process is killed at a place, once, and that comes to its end."""
    folder = Path(stack.data.parent / "failpoints")
    folder.mkdir(exist_ok=True)
    (folder / place).touch()
    before = stack.store.process("export").instance
    asked = stack.json("export", "run", NAME, "--from", "2024-12-30", "--to", "2025-01-06", "--no-wait")
    run = ended(stack, NAME, asked["id"], 240)
    assert run["state"] == "Done", run
    assert not (folder / place).exists(), f"it was not killed at {place}"
    assert stack.store.process("export").instance != before, place
    return run


def test_what_is_new_since_the_run_before_is_exported_once(world: Stack, tmp_path: Path) -> None:
    """The last of this file: it adds to the table."""
    sql = f"SELECT {', '.join(COLUMNS)} FROM clean_sales"
    first = definition_run(world, "news", tmp_path, sql=sql, incremental="clean_sales", file_name="{run}")
    again = world.json("export", "run", "news")
    assert [run["rows"] for run in (first, again)] == [EVENTS, 0]
    world.run("datagen", "sales", "--limit", "500", "--seed", str(SEED + 1))
    events = {record.value["event_id"] for record in Sales(SEED).records(EVENTS)}
    added = {record.value["event_id"] for record in Sales(SEED + 1).records(500)} - events
    names: list[str] = []
    deadline = time.monotonic() + 240
    while len(names) < len(added) and time.monotonic() < deadline:
        run = world.json("export", "run", "news")
        with Path(run["file"]).open(newline="") as content:
            names += [row["event_id"] for row in csv.DictReader(content)]
    assert sorted(names) == sorted(added)
    world.run("export", "remove", "news")
