"""A small world on a running Headgate: what a changed file changes, what is kept, and what is taken away."""

from pathlib import Path
from typing import Any

from tests.e2e.feed import Feed
from tests.support.ledger import read_duckdb
from tests.support.services import wait_for
from tests.support.stack import Stack
from tests.support.worlds import apply_up_to, goes_on

FEED, TOPIC = "desired.in", "desired.first"
WORLD = f"""
world: first
topics:
  {FEED}: {{options: {{key.fields: text}}}}
statements:
  first:
    sql: |
      CREATE TABLE `{TOPIC}` AS SELECT id, text FROM (
        SELECT *, ROW_NUMBER() OVER (PARTITION BY text ORDER BY `at`) AS nth FROM `{FEED}`
      ) WHERE nth = 1
tables:
  {TOPIC}: {{freshness: 1s}}
"""
LOUDER = WORLD.replace("SELECT id, text", "SELECT id, UPPER(text) AS text")


def rows(stack: Stack) -> list[tuple[int, str]]:
    return sorted((row["id"], row["text"]) for row in read_duckdb(stack.runtime.iceberg, "local", TOPIC))


def wait_for_rows(stack: Stack, count: int) -> list[tuple[int, str]]:
    def are_there() -> bool:
        return int(stack.store.table(TOPIC).status.detail.get("rows") or 0) >= count

    wait_for(f"{count} rows", are_there)
    return rows(stack)


def changes(stack: Stack, file: Path, *more: str) -> list[tuple[str, str]]:
    """What a plan would do."""
    steps: list[dict[str, Any]] = stack.json("plan", str(file), *more)["steps"]
    return [(step["action"], f"{step['kind']} {step['name']}") for step in steps]


def test_a_changed_file_changes_what_runs_and_what_it_names_no_more_is_pruned(
    stack: Stack, tmp_path: Path
) -> None:
    feed, file = Feed(stack.runtime, FEED, partitions=1), tmp_path / "first.yaml"
    feed.send_texts(["a", "b", "a"])
    file.write_text(WORLD)
    assert TOPIC in stack.run("apply", str(file)).stdout
    assert wait_for_rows(stack, 2) == [(0, "a"), (1, "b")]

    # Another SQL: a successor that knows what came before, after somebody has agreed.
    file.write_text(LOUDER)
    refused = stack.run("apply", str(file), code=1).stderr
    assert "the new one takes over where it stands, and its state is rebuilt" in refused
    assert "Say --yes to mean it." in refused
    assert changes(stack, file) == [("change", "statements first")]
    # Killed while one hands over to the other, it goes on to the same end.
    killed = apply_up_to(stack, "[1/1]", str(file), "--yes")
    killed.kill()
    killed.communicate()
    wait_for("the killed apply to be left", lambda: goes_on(stack, str(file), "--yes"))
    assert changes(stack, file) == []
    mine = [one for one in stack.json("statement", "list") if one["name"].startswith("first")]
    assert [(one["name"], one["state"]) for one in mine] == [("first.v2", "Running")]
    feed.send_texts(["b", "c"])
    assert wait_for_rows(stack, 3) == [(0, "a"), (1, "b"), (4, "C")]

    # What is dumped is what runs.
    dumped = tmp_path / "dumped.yaml"
    dumped.write_text(stack.run("dump", "--world", "first").stdout)
    assert changes(stack, dumped) == []

    # What was altered by hand is shown, and goes back.
    stack.run("table", "alter", TOPIC, "--freshness", "9s")
    (step,) = stack.json("plan", str(file))["steps"]
    assert step["changes"] == [{"field": "freshness", "before": 9.0, "after": 1.0}]
    stack.run("apply", str(file))
    assert changes(stack, file) == []

    # What a world has made is nobody else's.
    other = tmp_path / "other.yaml"
    other.write_text(f"world: other\ntables:\n  {TOPIC}: {{freshness: 2s}}\n")
    assert (
        f"other.yaml:3: table {TOPIC} belongs to world 'first'."
        in stack.run("plan", str(other), code=1).stderr
    )

    # Pruned are readers before what they read, and data only when it was said.
    file.write_text("world: first\n")
    assert changes(stack, file) == []
    stack.run("apply", str(file), "--prune", code=1)
    gone = [("remove", f"tables {TOPIC}"), ("remove", "statements first")]
    assert changes(stack, file, "--prune") == gone
    stack.run("apply", str(file), "--prune", "--yes")
    assert rows(stack) == [(0, "a"), (1, "b"), (4, "C")]
    # The table is the lake's now, and nobody's.
    stack.run("table", "enable", TOPIC)
    stack.run("table", "disable", TOPIC, "--purge", "--yes")
    assert changes(stack, file, "--prune", "--delete-data") == [("remove", f"topics {TOPIC}")]
    stack.run("apply", str(file), "--prune", "--delete-data", "--yes")
    assert TOPIC not in {topic["name"] for topic in stack.json("topic", "list")}
    assert FEED in {topic["name"] for topic in stack.json("topic", "list")}
