"""`headgate table compact`, `expire`, `clean` and `delete`, as a user types them, while the table goes on."""

from pathlib import Path

from tests.e2e.commands import refused, shown
from tests.e2e.feed import Feed
from tests.support.stack import Stack

TOPIC = "e2e.maintained"


def test_a_table_is_packed_expired_cleaned_and_erased_from(stack: Stack) -> None:
    feed = Feed(stack.runtime, TOPIC, partitions=2)
    stack.run("table", "enable", TOPIC, "--partition", "none")
    for _ in range(3):
        feed.send(4)
        stack.run("table", "sync", TOPIC, "--timeout", "120s")
    packed = stack.json("table", "compact", TOPIC)
    assert packed["files_before"] >= 3 > packed["files_after"]
    assert feed.check() == 12

    expired = stack.json("table", "expire", TOPIC, "--older-than", "0s", "--keep-last", "1")
    assert expired["snapshots_before"] > expired["snapshots_after"] == 1
    # What was packed is removed; nothing is left over.
    assert stack.json("table", "clean", TOPIC, "--older-than", "0s", "--force")["orphans_removed"] == 0
    feed.send(4)
    stack.run("table", "sync", TOPIC, "--timeout", "120s")
    assert feed.check() == 16

    assert "--yes" in refused(stack, "table", "delete", TOPIC, "--where", "id = 3")
    wrong = "cannot be understood"
    waiting = (f"{TOPIC}: ",)
    said = refused(stack, "table", "delete", TOPIC, "--where", "nobody = 3", "--yes", meanwhile=waiting)
    assert wrong in said
    assert feed.check() == 16
    erased = stack.json("table", "delete", TOPIC, "--where", "id = 3 or id >= 14", "--yes")
    assert erased["rows_erased"] == 3

    feed.send(4)
    stack.run("table", "sync", TOPIC, "--timeout", "120s")
    assert feed.check(lambda sent: sent.value is not None and sent.value["id"] not in (3, 14, 15)) == 17
    assert not stack.json("table", "verify", TOPIC, "--deep")["damaged"]
    folder = Path("/" + str(shown(stack, TOPIC)["detail"]["location"]).removeprefix("file:").lstrip("/"))
    data = next((folder / "data").rglob("*.parquet"))
    moved = data.rename(data.with_suffix(".moved"))
    damaged = stack.run("table", "verify", TOPIC, code=1).stdout
    assert f"damaged: files: {data.relative_to(folder)}: is not there" in damaged
    assert f"{TOPIC} is damaged" in damaged
    moved.rename(data)
    assert f"{TOPIC} is whole" in stack.run("table", "verify", TOPIC).stdout
    events = [event["kind"] for event in shown(stack, TOPIC)["events"]]
    assert {"compact done", "expire done", "clean done", "erase done", "erase failed"} <= set(events)
    stack.run("table", "disable", TOPIC, "--purge", "--yes")
