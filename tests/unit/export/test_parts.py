"""Runs that are cut into parts: the same rows in the same parts, each under its name, all in one manifest."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headgate.errors import InvalidRequest
from headgate.export import run as run_module
from headgate.export.definition import parse_options
from headgate.export.files import even_blocks, name_in
from headgate.export.links import Links
from headgate.export.prune import prune
from headgate.store import RunState
from tests.unit.export.lake import sale
from tests.unit.export.test_service import SPEC, Killed, Place, place

__all__ = ["place"]
# Three blocks of rows and a bit, and fewer bytes than two of them have.
ROWS = 8_192 * 3 + 10
PART_BYTES = 1_200_000


@pytest.fixture(autouse=True)
def many(place: Place) -> None:
    place.rows.rows = [sale(number) for number in range(ROWS)]
    place.rows.size = 5_000


def parts_of(place: Place, **said: Any) -> list[dict[str, Any]]:
    run = place.ask(part_bytes=PART_BYTES, **said)
    place.work()
    done = place.exports.run(run.id)
    assert (done.state, done.reason) == (RunState.DONE, "")
    found: list[dict[str, Any]] = done.detail["parts"]
    return found


@pytest.mark.parametrize("said", [{}, {"compression": "gzip"}, {"format": "jsonl", "compression": "zstd"}])
def test_parts_do_not_depend_on_how_rows_come(place: Place, said: dict[str, Any]) -> None:
    parts = parts_of(place, mail=None, **said)
    assert [part["rows"] for part in parts] == [8_192 * 2, 8_192 + 10]
    names = [name_in(part) for part in parts]
    assert [name.partition(".part-")[2].partition(".")[0] for name in names] == ["0001", "0002"]
    manifest = json.loads(next(place.root.glob("*.manifest.json")).read_text())
    assert [(part["name"], part["sha256"]) for part in manifest["parts"]] == [
        (name, part["sha256"]) for name, part in zip(names, parts, strict=True)
    ]
    assert manifest["file"]["rows"] == ROWS
    place.rows.size = 8_191
    place.again()
    place.work()
    again = place.exports.runs("weekly")[0].detail["parts"]
    assert [part["sha256"] for part in again] == [part["sha256"] for part in parts]


def test_each_part_has_its_header_and_a_link_of_its_own(place: Place) -> None:
    parts = parts_of(place, mail={"to": ["a@example.org"], "attach_up_to": 0}, file_name="{part}-{from}")
    assert [name_in(part)[:5] for part in parts] == ["0001-", "0002-"]
    lines = [Path(part["file"]).read_text().splitlines() for part in parts]
    assert [rows[0] for rows in lines] == ["id,mail,town"] * 2
    assert [int(row.partition(",")[0]) for rows in lines for row in rows[1:]] == list(range(ROWS))
    (mail,) = place.mails.mails
    body = mail.get_body(("plain",))
    assert body is not None
    links = [line for line in body.get_content().splitlines() if line.startswith("http")]
    reader = Links("key of links", "https://h.example/")
    assert [reader.file_of(link.rpartition("/")[2])[1] for link in links] == [1, 2]
    assert "2 files" in mail["Subject"]


def test_small_parts_are_attached(place: Place) -> None:
    place.rows.rows = place.rows.rows[: 8_192 * 2]
    parts_of(place, mail={"to": ["a@example.org"]}, compression="gzip", masks={"mail": {"mask": "redact"}})
    (mail,) = place.mails.mails
    assert len(list(mail.iter_attachments())) == 1


@pytest.mark.parametrize("at", ["export-writing", "export-written", "export-recorded", "between"])
@pytest.mark.parametrize("sql", [SPEC["sql"], "SELECT *, rand() AS r FROM sales WHERE at < :to"])
def test_a_run_that_is_killed_has_each_part_once(
    place: Place, at: str, sql: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = place.ask(part_bytes=PART_BYTES, mail=None, sql=sql)

    def die(name: str) -> None:
        if name == at:
            raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(run_module, "failpoint", die)
        if at == "between":
            patched.setattr("headgate.export.folder.ExportFolder._sync", lambda _: die("between"))
        with pytest.raises(Killed):
            place.worker().work()
    if "rand" in sql:
        place.rows.rows = [sale(number + 1) for number in range(ROWS)]
    place.clock.now += 60
    place.work()
    done = place.exports.run(run.id)
    assert (done.state, done.reason) == (RunState.DONE, "")
    there = sorted(path.name for path in place.root.iterdir())
    expected = [name_in(part) for part in done.detail["parts"]]
    assert there == sorted([*expected, done.detail["manifest"]])


def test_parts_are_pruned_together(place: Place) -> None:
    parts_of(place, mail=None, keep_files=1)
    first = {path.name for path in place.root.iterdir()}
    place.again()
    place.work()
    options = parse_options(SPEC | {"keep_files": 1})
    prune(place.exports, lambda _: pytest.fail("nothing is left to prune"), "weekly", options)
    assert not first & {path.name for path in place.root.iterdir()}
    assert len(list(place.root.iterdir())) == 3


def test_rows_are_cut_into_even_blocks() -> None:
    batches = [pa.record_batch([pa.array(range(n), pa.int64())], names=["n"]) for n in (0, 3, 10, 1, 0)]
    assert [block.num_rows for block in even_blocks(batches, 4)] == [4, 4, 4, 2]
    assert list(even_blocks([], 4)) == []


def test_a_name_for_parts_needs_parts() -> None:
    with pytest.raises(InvalidRequest, match="there are no parts"):
        parse_options(SPEC | {"file_name": "{from}-{part}"})
