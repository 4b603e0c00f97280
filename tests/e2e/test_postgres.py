"""All of Headgate with its state in Postgres."""

from pathlib import Path

import pytest

from tests.e2e.feed import Feed
from tests.support.postgres import PASSWORD, postgres
from tests.support.stack import Stack


def test_the_main_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with postgres() as url:
        shared = {
            "HEADGATE_STORE__URL": url.replace(f":{PASSWORD}", ""),
            "HEADGATE_CATALOG__DATABASE": url.replace(f":{PASSWORD}", ""),
        }
        # The test opens the control state itself, too.
        monkeypatch.setenv("PGPASSWORD", PASSWORD)
        with Stack(tmp_path / "data", None, **shared) as stack:
            feed = Feed(stack.runtime, "pg.readings", partitions=2)
            stack.run("table", "enable", feed.topic, "--formats", "iceberg,delta")
            feed.send(20)
            stack.run("table", "sync", feed.topic, "--timeout", "120s")
            feed.send(20)
            stack.run("table", "sync", feed.topic, "--timeout", "120s")
            assert feed.check() == 40
            stack.run(
                "sql",
                "-e",
                "SET 'client.statement-name' = 'counting';"
                "CREATE TABLE readings_counted WITH ('changelog.mode' = 'retract') AS "
                f"SELECT COUNT(*) AS readings FROM `{feed.topic}`",
            )
            assert [one["name"] for one in stack.json("statement", "list")] == ["counting"]
            # Which topics take rows back is a question to the database.
            refused = stack.run("table", "enable", "readings_counted", code=1)
            assert "'retract'" in refused.stderr
            stack.run("statement", "delete", "counting")
            stack.run("table", "disable", feed.topic, "--purge", "--yes")
        files = [file for file in tmp_path.rglob("*") if file.is_file()]
        assert not [file for file in files if PASSWORD.encode() in file.read_bytes()]
        assert not list(tmp_path.rglob("*.db"))
