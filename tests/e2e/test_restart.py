"""All of Headgate killed at once and started again on the same folder; then stopped without a trace."""

import json
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from headgate.datagen import GeneratorSpec
from headgate.embedded.process import group_members, kill_group
from headgate.embedded.run_file import RUN_FILE
from tests.e2e.commands import groups_of, headgate, refusal
from tests.e2e.feed import Feed
from tests.support.generators import check_story
from tests.support.services import wait_for
from tests.support.stack import Stack

ROWS = 60
STORY = GeneratorSpec("sales", rate=100.0, prefix="restart.")


@dataclass(frozen=True)
class Before:
    """What there was before the kill."""

    feed: Feed
    schema_id: int
    position: dict[str, Any]
    addresses: dict[str, str]


def generator(stack: Stack) -> dict[str, Any]:
    """The only one."""
    [shown] = stack.json("datagen", "list")
    return dict(shown)


def kill_all(stack: Stack) -> None:
    """The supervisor first, so that it cannot start anything again, nor say good-bye to anybody."""
    run = json.loads((stack.data / RUN_FILE).read_text())
    assert run["supervisor"]["pid"] == stack.popen.pid
    groups = groups_of(stack.data)
    assert set(groups) == {"broker", "server", "engine", "datagen"}
    stack.popen.kill()
    for group in groups.values():
        assert kill_group(group)
    stack.stop()
    assert (stack.data / RUN_FILE).exists(), "nobody was there to remove it"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("restart") / "data"


@pytest.fixture(scope="module")
def before(data: Path) -> Before:
    """Records in a table, and a few more that the engine may or may not have written when all are killed."""
    with Stack(data) as stack:
        feed = Feed(stack.runtime, "restart.rows")
        feed.send(ROWS)
        stack.run("table", "enable", feed.topic, "--freshness", "1s")
        stack.run("table", "sync", feed.topic, "--timeout", "120s")
        shown = stack.json("table", "show", feed.topic)
        feed.send(ROWS)
        schema_id = feed.schema_id()
        stack.run("datagen", "start", "sales", "--rate", "100", "--prefix", STORY.prefix)
        wait_for("made-up data", lambda: generator(stack)["records"] > 0)
        kill_all(stack)
    return Before(feed, schema_id, shown["position"], stack.runtime.addresses)


@pytest.fixture(scope="module")
def revived(data: Path, before: Before) -> Iterator[Stack]:
    # The query driver starts behind READY, while the tables are looked at: `down` has all four to end.
    with Stack(data, None, HEADGATE_QUERY__START="eager", HEADGATE_QUERY__MEMORY="1g") as stack:
        yield stack


def test_it_says_that_nothing_runs_after_the_kill(data: Path, before: Before) -> None:
    assert f"No Headgate runs on the data folder {data}." in refusal(headgate("status", "--data", str(data)))


def test_nothing_is_lost_and_nothing_is_there_twice(before: Before, revived: Stack) -> None:
    assert revived.runtime.addresses == before.addresses, "what the system chose is kept"
    topic = before.feed.topic
    revived.run("table", "sync", topic, "--timeout", "180s")
    assert before.feed.check() == 2 * ROWS
    assert revived.json("table", "show", topic)["position"]["cluster"] == before.position["cluster"]


def test_schemas_keep_their_ids(before: Before, revived: Stack) -> None:
    assert before.feed.schema_id() == before.schema_id
    other = Feed(revived.runtime, "restart.other")
    assert other.schema_id() == before.schema_id, "the same schema is the same id, whatever the subject"


def test_made_up_data_goes_on_where_it_was(revived: Stack) -> None:
    known = generator(revived)["records"]
    wait_for("more", lambda: generator(revived)["records"] > known + 100)
    said = revived.run("datagen", "stop", "sales").stdout
    assert said == f"generator sales is stopped after {generator(revived)['records']} records\n"
    check_story(revived.runtime.kafka, STORY, generator(revived)["records"])


def test_it_goes_on_with_new_records(before: Before, revived: Stack) -> None:
    before.feed.send(ROWS)
    revived.run("table", "sync", before.feed.topic, "--timeout", "180s")
    assert before.feed.check() == 3 * ROWS
    revived.verify(before.feed.topic)


def test_down_leaves_nothing(data: Path, revived: Stack) -> None:
    wait_for("the query driver", lambda: revived.store.process("query").state == "ready")
    groups = groups_of(data)
    assert set(groups) == {"broker", "server", "engine", "query"}
    assert all(group_members(group) for group in groups.values())
    ports = [int(address.rpartition(":")[2].partition("/")[0]) for address in addresses(revived)]
    assert len(set(ports)) == 2
    assert all(listens(port) for port in ports)

    done = headgate("down", "--data", str(data))

    assert (done.returncode, done.stdout) == (0, b"stopped\n"), done.stderr
    assert revived.popen.wait(timeout=10) == 0
    assert [name for name, group in groups.items() if group_members(group)] == []
    assert not any(listens(port) for port in ports)
    assert groups_of(data) == {}
    assert not (data / RUN_FILE).exists()


def test_a_second_down_says_that_nothing_runs(data: Path, revived: Stack) -> None:
    wait_for("the end", lambda: revived.popen.poll() is not None, 10)
    assert f"No Headgate runs on the data folder {data}." in refusal(headgate("down", "--data", str(data)))


def addresses(stack: Stack) -> list[str]:
    found = stack.runtime.addresses
    return [found["kafka"], found["api"].removesuffix("/api/v1")]


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
