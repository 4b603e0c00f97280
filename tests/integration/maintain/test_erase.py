"""Erased rows are in no file; a condition that is not one changes nothing."""

from pathlib import Path
from typing import Any

import fastavro
import pyarrow.parquet as pq
import pytest

from headgate.errors import InvalidRequest
from headgate.maintain.erase import Erased, erase
from headgate.model import EXPORT_TAG
from tests.integration.maintain.upkeep import TARGET, Upkeep

# A file that the engine may read and who asks for the erasure may not.
SCHEMA = Path(__file__).as_uri()
SECRET = "Ada Lovelace of London"


def holding(upkeep: Upkeep, value: str) -> list[Path]:
    """Files of the table that hold the value: as bytes, as a column's value, or as a bound in a manifest."""
    needle = value.encode()
    found = []
    for path in upkeep.folder.rglob("*"):
        if not path.is_file() or path.name.endswith(".crc"):
            continue
        texts: list[Any] = [path.read_bytes()]
        if path.suffix == ".parquet":
            texts.append(repr(pq.read_table(path).to_pylist()).encode())
        if path.suffix == ".avro":
            with path.open("rb") as file:
                # Bounds are cut after so many characters.
                texts.append(repr(list(fastavro.reader(file))).encode())
        if any(needle in text or needle[:12] in text for text in texts):
            found.append(path)
    return found


def run(upkeep: Upkeep, where: str, erase_id: str = "one") -> Erased:
    return erase(upkeep.actions, upkeep.table, upkeep.drive.topic, where, TARGET, erase_id)


def test_no_file_holds_an_erased_value(upkeep: Upkeep) -> None:
    materializer = upkeep.batches(1)
    # A file in which all rows match, one in which one does, and an old version that was deleted before.
    upkeep.batch(materializer, 2, SECRET)
    upkeep.batch(materializer, 1, SECRET)
    upkeep.delete("n = 7")
    materializer.forget()
    upkeep.batch(materializer)
    # A run of an export has read it, and would hold the snapshot.
    tag = f"{EXPORT_TAG}0123456789abcdef"
    upkeep.table.refresh()
    upkeep.table.manageSnapshots().createTag(tag, upkeep.table.currentSnapshot().snapshotId()).commit()
    assert holding(upkeep, SECRET)
    done = run(upkeep, f"name = '{SECRET}' -- by request")
    assert done.rows_erased == 2
    assert done.held_by == []
    upkeep.sent = [row for row in upkeep.sent if row["name"] != SECRET]
    assert holding(upkeep, SECRET) == []
    upkeep.check()
    # Asked again, as after an engine that died on the way: nothing more to erase, and nothing breaks.
    assert run(upkeep, f"name = '{SECRET}'").rows_erased == 0
    upkeep.check_restart()


REFUSED = [
    ("", "cannot be read"),
    ("name =", "cannot be read"),
    ("n = 1) or (n = 2", "cannot be read"),
    ("n = 1; drop table x", "cannot be read"),
    ("nobody = 1", "cannot be understood"),
    ("n + 1", "cannot be understood"),
    ("count(n) > 1", "cannot be understood"),
    ("n in (select n from {table})", "subquery"),
    ("exists (select 1)", "subquery"),
    ("rand() < n", "another answer"),
    ("reflect('java.lang.System', 'getenv', name) = ''", "routine .*reflect"),
    ("IDENTIFIER('try_reflect')('java.lang.System', 'getenv', name) = ''", "routine .*try_reflect"),
    (f"from_avro(to_binary(name), '', map('avroSchemaUrl', '{SCHEMA}')) = n", "routine .*from_avro"),
    ("n in (select length(value) from text.`/no/such/file`)", "subquery"),
    ("_pos = 1", "more than the table's columns"),
    ("true", "no column"),
    ("n = 1 as x", "more than a condition"),
    ("name = 5", "Nothing is erased"),
]


def test_what_is_no_condition_is_refused(upkeep: Upkeep) -> None:
    upkeep.batches(1)
    head = upkeep.table.currentSnapshot().snapshotId()
    for where, said in REFUSED:
        with pytest.raises(InvalidRequest, match=said):
            run(upkeep, where.format(table=upkeep.sql))
        assert upkeep.table.currentSnapshot().snapshotId() == head, where
    # What looks odd and is one.
    assert run(upkeep, "n = 1 /* one */ or\n`name` like 'x;%'").rows_erased == 1
