"""Names for snapshots: expiry keeps what they name, and readers travel to them."""

from typing import Any

import pytest

from headgate.errors import InvalidRequest
from headgate.maintain import tags
from headgate.maintain.expire import expirable
from headgate.maintain.tags import tag, untag
from scripts.readers import pyiceberg_on
from tests.integration.maintain.upkeep import Upkeep

LATER = 2**53


def numbers(upkeep: Upkeep, version: str) -> list[int]:
    """As of a version, in Spark and in PyIceberg."""
    rows = upkeep.actions.spark.sql(f"select n from {upkeep.sql} version as of '{version}'").collect()
    table = pyiceberg_on(upkeep.drive.runtime.iceberg).load_table(("local", upkeep.drive.topic))
    snapshot = table.snapshot_by_name(version)
    assert snapshot is not None
    again = table.scan(snapshot_id=snapshot.snapshot_id).to_arrow()["n"].to_pylist()
    assert sorted(again) == sorted(row.n for row in rows)
    return sorted(again)


def test_what_a_tag_names_is_kept_and_travelled_to(upkeep: Upkeep) -> None:
    drive = upkeep.drive
    materializer = upkeep.batches(2)
    lake, topic = drive.lake, drive.topic
    first = tag(lake, upkeep.table, topic, "end-of-day")
    assert first.kept_until is None
    # The writer goes on: a tag is no commit of its own to it.
    upkeep.batch(materializer)
    assert tag(lake, upkeep.table, topic, "end-of-day", first.snapshot_id) == first
    with pytest.raises(InvalidRequest, match="a tag 'end-of-day' already"):
        tag(lake, upkeep.table, topic, "end-of-day")
    upkeep.compact()
    expired = upkeep.expire()
    assert expired.held_by == ["end-of-day"]
    assert numbers(upkeep, "end-of-day") == list(range(10))
    upkeep.check()
    assert untag(lake, upkeep.table, topic, "end-of-day").snapshot_id == first.snapshot_id
    assert upkeep.expire().held_by == []
    assert upkeep.table.snapshot(int(first.snapshot_id)) is None
    upkeep.check_restart()


def test_a_tag_that_was_kept_for_its_time_is_let_go(upkeep: Upkeep, monkeypatch: pytest.MonkeyPatch) -> None:
    materializer = upkeep.batches(1)
    lake, topic = upkeep.drive.lake, upkeep.drive.topic
    old = str(upkeep.table.currentSnapshot().snapshotId())
    upkeep.batch(materializer)
    upkeep.batch(materializer)

    class Later:
        """A tag is kept from now on, however old its snapshot is by then."""

        @staticmethod
        def time() -> float:
            return upkeep.table.snapshot(int(old)).timestampMillis() / 1000 + 3600  # type: ignore[no-any-return]

    with monkeypatch.context() as patched:
        patched.setattr(tags, "time", Later)
        kept = tag(lake, upkeep.table, topic, "an-hour", old, 3600)
    made = upkeep.table.snapshot(int(old)).timestampMillis()
    assert kept.kept_until == made + 2 * 3600 * 1000
    assert upkeep.expire().held_by == ["an-hour"]
    tag(lake, upkeep.table, topic, "a-moment", old, 0.001)
    untag(lake, upkeep.table, topic, "an-hour")
    # Nothing but that tag is left to expire.
    assert expirable(upkeep.table, LATER, 1) == 1
    assert upkeep.expire().held_by == []
    assert upkeep.table.snapshot(int(old)) is None
    upkeep.check_restart()


@pytest.mark.parametrize(
    ("name", "snapshot", "said"),
    [
        ("main", None, "the table's own"),
        ("headgate-position", None, "the table's own"),
        ("12", None, "cannot be the name"),
        ("fine", "99", "has no snapshot 99"),
        ("fine", "yesterday", "is no snapshot's id"),
    ],
    ids=["main", "position", "digits", "no-such", "no-id"],
)
def test_what_cannot_be_tagged_is_refused(upkeep: Upkeep, name: str, snapshot: Any, said: str) -> None:
    upkeep.batches(1)
    with pytest.raises(InvalidRequest, match=said):
        tag(upkeep.drive.lake, upkeep.table, upkeep.drive.topic, name, snapshot)
    with pytest.raises(InvalidRequest):
        untag(upkeep.drive.lake, upkeep.table, upkeep.drive.topic, name)
    assert set(upkeep.table.refs()) == {"main"}
