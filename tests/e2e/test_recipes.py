"""The recipes of the how-to page, run: only addresses, secrets and names are put in."""

import contextlib
import io
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from headgate.config import load_settings
from scripts.readers import duckdb_with
from tests.e2e.commands import shown
from tests.e2e.feed import Feed
from tests.support.pages import commands
from tests.support.recipes import COMMANDS, recipe
from tests.support.stack import Stack

TOPIC = "e2e.recipes-1"
ROWS = 7
Fill = Callable[[str], str]


@pytest.fixture(scope="module")
def fill(stack: Stack) -> Fill:
    """A recipe with what a user would put into it."""
    feed = Feed(stack.runtime, TOPIC, partitions=2)
    stack.run("table", "enable", TOPIC, "--formats", "iceberg,delta")
    feed.send(ROWS)
    stack.run("table", "sync", TOPIC, "--timeout", "120s")
    create, status = commands(recipe(*COMMANDS).splitlines())
    made = stack.json(*create[1:])
    assert stack.json(*(word for word in status[1:] if word != "--json"))["addresses"]["iceberg"]
    location = "/" + str(shown(stack, TOPIC)["detail"]["location"]).removeprefix("file:").lstrip("/")
    said = {
        "http://127.0.0.1:8080/iceberg": stack.runtime.iceberg,
        "CLIENT_ID": made["client_id"],
        "CLIENT_SECRET": made["client_secret"],
        "/data/warehouse/local/orders": location,
        '"orders"': f'"{TOPIC}"',
        "`orders`": f"`{TOPIC}`",
    }

    def put_in(text: str) -> str:
        # Options are named like what stands for their values, in DuckDB's secrets.
        for name in ("CLIENT_ID", "CLIENT_SECRET"):
            text = text.replace(f"{name} '{name}'", f"{name.lower()} '{said[name]}'")
        for old, new in said.items():
            text = text.replace(old, new)
        return text

    return put_in


def test_duckdb(fill: Fill) -> None:
    connection = duckdb_with("avro", "httpfs", "iceberg")
    text = fill(recipe("DuckDB", "sql"))
    # Extensions are loaded already: there may be nowhere to install them from.
    text = text.replace("INSTALL iceberg;", "")
    assert connection.execute(text).fetchall() == [(ROWS,)]
    connection.close()


@pytest.mark.parametrize("heading", ["PyIceberg", "pandas", "Delta"])
def test_python(fill: Fill, heading: str) -> None:
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(compile(fill(recipe(heading, "python")), heading, "exec"), {})
    assert said.getvalue() == f"{ROWS}\n"


def test_spark(fill: Fill, tmp_path: Path) -> None:
    """In a Spark that knows nothing of Headgate but what the recipe says."""
    settings = dict(line.split() for line in fill(recipe("Spark", "properties")).splitlines())
    (jar,) = load_settings(environment={}).jars_folder.glob("spark/iceberg-spark-runtime-*.jar")
    settings |= {"spark.jars": str(jar), "spark.master": "local[2]", "spark.ui.enabled": "false"}
    query = fill(recipe("Spark", "sql"))
    program = tmp_path / "recipe.py"
    program.write_text(
        "from pyspark.sql import SparkSession\n"
        "builder = SparkSession.builder\n"
        f"for key, value in {settings!r}.items():\n"
        "    builder = builder.config(key, value)\n"
        "session = builder.getOrCreate()\n"
        f"print('rows', session.sql({query!r}).first()[0])\n"
        "session.stop()\n"
    )
    done = subprocess.run(
        [sys.executable, str(program)], cwd=tmp_path, capture_output=True, text=True, timeout=180, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == f"rows {ROWS}"
