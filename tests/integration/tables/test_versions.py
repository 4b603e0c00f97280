"""SCD type 2: every version of a row, from when to when it held, as the database had it."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from headgate.model import Deletes, TableMode
from tests.integration.tables.drive import Drive
from tests.integration.tables.test_change_events import Watched
from tests.support.debezium import Message
from tests.support.debezium_forms import Database, Form


def history(messages: list[Message]) -> Counter[tuple[Any, ...]]:
    """(key, valid from, valid to) of every version, by a replay of the events. No version ends before it
    began, and the one that replaces it begins where it ended."""
    found: list[list[Any]] = []
    present: dict[Any, list[Any]] = {}
    for message in messages:
        event = message.event
        if event is None:
            continue
        at = datetime.fromtimestamp(event["source"]["ts_us"] // 10**6, UTC).replace(
            microsecond=event["source"]["ts_us"] % 10**6
        )
        if event["op"] == "t":
            for version in present.values():
                version[2] = max(at, version[1])
            present = {}
            continue
        key = (event["after"] or event["before"])["id"]
        if key in present:
            version = present.pop(key)
            version[2] = at = max(at, version[1])
        if event["op"] != "d":
            version = [key, at, None]
            found.append(version)
            present[key] = version
    return Counter(tuple(version) for version in found)


@pytest.mark.parametrize("deletes", [Deletes.DELETION_VECTORS, Deletes.COPY_ON_WRITE])
def test_every_version_is_there_once(drive: Drive, deletes: Deletes) -> None:
    watched = Watched(drive, Database.POSTGRES, Form.AVRO, seed=11)
    drive.spec = replace(drive.spec, mode=TableMode.SCD2, deletes=deletes)
    table = drive.materializer()
    for _ in range(2):
        # In the middle of a batch, and between two, the clock of the database is put back.
        watched.send(watched.source.run(15, truncates=True))
        watched.source.put_clock_back()
        watched.send(watched.source.run(10))
        watched.source.put_clock_back()
        drive.run_all(table)
        check(drive, watched)
    # What comes again makes no version more, also when the index is made anew.
    drive.index.clear()
    again = drive.materializer()
    watched.send(watched.source.messages)
    drive.run_all(again)
    check(drive, watched)


def check(drive: Drive, watched: Watched) -> None:
    rows = drive.rows()
    found = Counter((row["id"], row["valid_from"], row["valid_to"]) for row in rows)
    assert found == history(watched.source.messages)
    present = sorted(row["id"] for row in rows if row["valid_to"] is None)
    assert present == sorted(watched.source.state)
