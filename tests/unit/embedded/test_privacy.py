import os
import resource
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from headgate.embedded.privacy import forget_settings, harmless, make_private
from headgate.errors import ConfigError


def modes(folder: Path) -> dict[str, int]:
    paths = [folder, *sorted(folder.rglob("*"))]
    return {path.name: stat.S_IMODE(path.lstat().st_mode) for path in paths if not path.is_symlink()}


def test_looser_folder_is_tightened_with_all_that_is_in_it(tmp_path: Path) -> None:
    data, outside = tmp_path / "data", tmp_path / "outside"
    (data / "warehouse").mkdir(parents=True)
    (data / "warehouse" / "part.parquet").write_text("rows")
    (data / "run").write_text("#!/bin/sh")
    outside.write_text("another's")
    (data / "link").symlink_to(outside)
    os.mkfifo(data / "pipe", 0o644)
    for path, mode in ((data, 0o755), (data / "warehouse", 0o777), (data / "run", 0o755), (outside, 0o644)):
        path.chmod(mode)
    make_private(data)
    assert modes(data) == {
        "data": 0o700,
        "warehouse": 0o700,
        "part.parquet": 0o600,
        "run": 0o700,
        "pipe": 0o600,
    }
    assert stat.S_IMODE(outside.stat().st_mode) == 0o644


def test_new_folder_is_its_owners(tmp_path: Path) -> None:
    make_private(tmp_path / "a" / "data")
    assert modes(tmp_path / "a" / "data") == {"data": 0o700}


def test_folder_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 12_345)
    with pytest.raises(ConfigError, match="belongs to the user"):
        make_private(tmp_path)


def test_programs_write_for_their_own_user_and_leave_no_core_file(tmp_path: Path) -> None:
    code = (
        "from headgate.embedded.privacy import keep_private; keep_private()\n"
        "import resource; from pathlib import Path\n"
        "Path('file').write_text('x'); Path('folder').mkdir()\n"
        "print(resource.getrlimit(resource.RLIMIT_CORE))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    limit = min(resource.getrlimit(resource.RLIMIT_CORE)[1] % 2**64, 1)
    assert done.stdout.strip() == f"({limit}, {limit})"
    assert {name: mode for name, mode in modes(tmp_path).items() if name in ("file", "folder")} == {
        "file": 0o600,
        "folder": 0o700,
    }


def test_settings_leave_the_environment_and_what_debugs_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("HEADGATE_"):
            monkeypatch.delenv(name)
    for name in ("HEADGATE_SECRETS__PEPPER", "HEADGATE_CLIENT_SECRET", "HEADGATE_FAILPOINTS"):
        monkeypatch.setenv(name, "x")
    forget_settings()
    assert [name for name in os.environ if name.startswith("HEADGATE_")] == ["HEADGATE_FAILPOINTS"]


def test_broker_gets_no_variable_that_could_be_secret() -> None:
    given = {
        "PATH": "/bin",
        "LC_ALL": "C",
        "AWS_SECRET_ACCESS_KEY": "x",
        "HEADGATE_SECRETS__A": "x",
        "PGPASSWORD": "x",
    }
    assert harmless(given) == {"PATH": "/bin", "LC_ALL": "C"}
