"""A data folder has one owner."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from headgate.embedded.folder import PIDS_FILE, DataFolder
from headgate.embedded.process import Identity
from headgate.embedded.run_file import RUN_FILE
from headgate.errors import DataFolderInUse


def test_it_is_held_until_the_block_ends(tmp_path: Path) -> None:
    with (
        DataFolder.taken(tmp_path),
        pytest.raises(DataFolderInUse, match=f"pid {os.getpid()}"),
        DataFolder.taken(tmp_path),
    ):
        pass

    with DataFolder.taken(tmp_path):
        pass


def test_a_stale_run_file_is_removed_at_both_ends(tmp_path: Path) -> None:
    run = tmp_path / RUN_FILE
    run.write_text("{}")

    with DataFolder.taken(tmp_path):
        assert not run.exists()
        run.write_text("{}")

    assert not run.exists()


def test_a_stranger_with_a_remembered_pid_is_left_alone(tmp_path: Path) -> None:
    stranger = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    try:
        leftover = Identity(stranger.pid, "another start")
        (tmp_path / PIDS_FILE).write_text(json.dumps({"engine": leftover.to_dict()}))

        with DataFolder.taken(tmp_path):
            assert json.loads((tmp_path / PIDS_FILE).read_text()) == {}

        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()
