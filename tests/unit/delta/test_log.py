"""The files of a log: commits made once, checkpoints, the old end cut off."""

import json
import uuid
from pathlib import Path
from typing import Any

import pytest

from headgate.delta.actions import (
    add_action,
    commit_info,
    log_path,
    mark_actions,
    protocol_action,
    remove_action,
    with_vector,
)
from headgate.delta.checkpoint import from_parquet, to_parquet
from headgate.delta.files import LocalFiles, files_at
from headgate.delta.log import CHECKPOINT_EVERY, NEWEST_CHECKPOINTS, DeltaLog, checkpoint_name, commit_name
from headgate.delta.state import LogState, Mirrored
from headgate.delta.vectors import encoded, file_name
from headgate.errors import InvalidRequest, MirrorStopped, StaleLog

TABLE = "5f0c5f3c-3f5d-4c4d-9d26-6d0c2f0e1a11"
FIRST = {
    "metaData": {
        "id": TABLE,
        "name": "t",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": "{}",
        "partitionColumns": [],
        "configuration": {"a": "b"},
        "createdTime": 1,
    }
}


def mark(snapshot: int) -> Mirrored:
    return Mirrored(TABLE, 1, f"m{snapshot}.json", snapshot, 0)


def vector(name: str, rows: int) -> dict[str, Any]:
    folder = "_delta_vectors" + encoded(uuid.uuid5(uuid.UUID(TABLE), name))
    return {"storageType": "u", "pathOrInlineDv": folder, "offset": 1, "sizeInBytes": 4, "cardinality": rows}


def added(path: str, rows: int = 10) -> dict[str, Any]:
    stats = json.dumps({"numRecords": rows, "tightBounds": True}, separators=(",", ":"))
    return add_action(path, {"file-size-in-bytes": 5}, stats, 1, True, (0, 1))


class Log:
    """A log that is written by hand."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = DeltaLog(LocalFiles(folder), "t")
        self.state = LogState()

    def commit(self, snapshot: int, *actions: dict[str, Any]) -> None:
        first = [protocol_action((), True), FIRST] if self.state.version < 0 else []
        head = commit_info("WRITE", 1000 + snapshot, mark(snapshot), "0")
        self.log.commit(self.state, [head, *first, *mark_actions(mark(snapshot), 1), *actions])
        self.log.checkpoint_if_due(self.state)

    def names(self) -> list[str]:
        return sorted(one.name for one in (self.folder / "_delta_log").iterdir())


def shown(state: LogState | None) -> Any:
    """All that a state says, but for what a checkpoint does not keep: whether rows changed in a commit."""
    assert state is not None
    files = [{**said, "dataChange": None} for said in (*state.files.values(), *state.gone.values())]
    rest = (state.version, state.timestamp, state.protocol, state.metadata, state.domains, state.rows)
    return rest, state.transactions, files


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path)


def test_what_is_written_is_read(log: Log) -> None:
    for number in range(3):
        log.commit(number, added(f"f{number}"))
    log.commit(3, remove_action(log.state.files["f0"], 5, True))
    found = DeltaLog(LocalFiles(log.folder), "t").load()
    assert found is not None
    assert found == log.state
    assert (found.version, found.rows, sorted(found.files)) == (3, 20, ["f1", "f2"])
    assert found.mirrored == mark(3)
    assert found.timestamp == 1003


def test_a_version_is_made_once(log: Log) -> None:
    log.commit(0, added("f0"))
    other = Log(log.folder)
    other.state = DeltaLog(LocalFiles(log.folder), "t").load() or LogState()
    log.commit(1, added("f1"))
    before = (log.folder / commit_name(1)).read_bytes()
    with pytest.raises(StaleLog):
        other.commit(2, added("f2"))
    assert (log.folder / commit_name(1)).read_bytes() == before
    assert not [name for name in log.names() if name.endswith(".tmp")]


def test_vectors_replace_each_other(log: Log) -> None:
    log.commit(0, added("f0"))
    for number, rows in ((1, 3), (2, 5)):
        before = log.state.files["f0"]
        gone = remove_action(before, 5, True)
        log.commit(number, gone, with_vector(before, vector(f"v{number}", rows), f"d{number}", True))
    assert log.state.rows == 5
    assert '"tightBounds":false' in log.state.files["f0"]["stats"]
    found = log.log.load()
    assert found == log.state
    # Two logical files of one path are gone.
    assert len(log.state.gone) == 2


def test_checkpoints_hold_everything(log: Log) -> None:
    log.commit(0, added("f0"), added("f1"))
    log.commit(1, remove_action(log.state.files["f0"], 10**13, True))
    log.commit(2, with_vector(log.state.files["f1"], vector("v", 4), "d", True))
    actions = log.state.actions(0)
    assert from_parquet(to_parquet(actions)) == actions
    # A tombstone that is too old is forgotten.
    assert any("remove" in action for action in actions)
    assert not any("remove" in action for action in log.state.actions(10**13 + 1))


def test_a_log_is_read_from_its_newest_checkpoint(log: Log) -> None:
    for number in range(CHECKPOINT_EVERY + 3):
        log.commit(number, added(f"f{number}"))
    (log.folder / commit_name(1)).unlink()
    assert shown(log.log.load()) == shown(log.state)
    assert json.loads((log.folder / "_delta_log/_last_checkpoint").read_text())["version"] == CHECKPOINT_EVERY
    # A hint that says nothing, or what is not so, is none.
    for hint in ("{}", "nonsense", '{"version":999}'):
        (log.folder / "_delta_log/_last_checkpoint").write_text(hint)
        assert shown(log.log.load()) == shown(log.state)


def test_checkpoints_in_between_go(log: Log) -> None:
    for number in range(CHECKPOINT_EVERY * 8 + 1):
        log.commit(number, added("f") if not number else {"txn": {"appId": "x", "version": number}})
    kept = [name for name in log.names() if "checkpoint.parquet" in name]
    assert len(kept) == NEWEST_CHECKPOINTS + 1
    assert log.log.state_at(CHECKPOINT_EVERY * 3 + 5).version == CHECKPOINT_EVERY * 3 + 5


def test_the_old_end_is_cut_off_where_snapshots_are_gone(log: Log) -> None:
    names = {}
    log.commit(0, added("f0"))
    for number in range(1, 6):
        before = log.state.files["f0"]
        names[number] = file_name(uuid.uuid5(uuid.UUID(TABLE), f"v{number}"))
        log.log.write_vectors(names[number], b"\x01")
        gone = remove_action(before, 5, True)
        log.commit(number, gone, with_vector(before, vector(f"v{number}", number), None, True))
    first = log.log.first_shown(log.state, {3, 4, 5})
    assert first == 3
    assert log.log.truncate(log.state, first) == 3
    assert shown(DeltaLog(LocalFiles(log.folder), "t").load()) == shown(log.state)
    assert not (log.folder / commit_name(2)).exists()
    assert (log.folder / checkpoint_name(3)).exists()
    left = sorted(one.name for one in (log.folder / "_delta_vectors").iterdir())
    assert left == sorted(names[number] for number in (3, 4, 5))
    assert log.log.state_at(4).rows == 6
    # An abandoned snapshot in between takes the versions before it along.
    assert log.log.first_shown(log.state, {3, 5}) == 5
    assert log.log.truncate(log.state, 3) == 0


def test_another_writer_is_noticed(log: Log) -> None:
    log.commit(0, added("f0"))
    foreign = {"commitInfo": {"engineInfo": "Other/1.0", "operation": "WRITE"}}
    (log.folder / commit_name(1)).write_text(json.dumps(foreign) + "\n" + json.dumps(added("x")) + "\n")
    with pytest.raises(MirrorStopped, match=r"Version 1 .* was written by Other/1.0.*--rebuild"):
        log.log.load()


@pytest.mark.parametrize("damage", ["gap", "text", "checkpoint", "gone"])
def test_damage_is_noticed_and_named(log: Log, damage: str) -> None:
    for number in range(CHECKPOINT_EVERY + 4):
        log.commit(number, added(f"f{number}"))
    last = CHECKPOINT_EVERY + 3
    match damage:
        case "gap":
            (log.folder / commit_name(last - 1)).unlink()
        case "text":
            (log.folder / commit_name(last)).write_text("{")
        case "checkpoint":
            (log.folder / checkpoint_name(CHECKPOINT_EVERY)).write_bytes(b"PAR1")
        case "gone":
            (log.folder / commit_name(last)).unlink()
            with pytest.raises(MirrorStopped, match="damaged"):
                log.commit(99, added("more"))
            return
    with pytest.raises(MirrorStopped, match=r"damaged.*--rebuild"):
        log.log.load()


def test_a_log_is_removed_whole(log: Log) -> None:
    log.commit(0, added("f0"))
    log.log.write_vectors("deletion_vector_x.bin", b"\x01")
    log.log.remove()
    assert log.names() == []
    assert log.log.load() is None


def test_paths_are_escaped_once() -> None:
    assert log_path("data/c=a%2Fb c/ü#.parquet") == "data/c=a%252Fb%20c/%C3%BC%23.parquet"


def test_a_log_lies_on_a_disk_or_in_s3() -> None:
    assert isinstance(files_at("file:///tmp/x"), LocalFiles)
    assert isinstance(files_at("/tmp/x"), LocalFiles)
    with pytest.raises(InvalidRequest, match="no access to S3"):
        files_at("s3://bucket/x")
    with pytest.raises(InvalidRequest, match="cannot be kept at gs://bucket"):
        files_at("gs://bucket/x")
