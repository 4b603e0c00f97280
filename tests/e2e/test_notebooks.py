"""Spark Connect for notebooks: where it is asked for, with its token, and nothing of ours in reach."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.support.stack import Stack

CANARY = "a-canary-of-notebooks"


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    settings = {
        "HEADGATE_CONNECT__ENABLED": "true",
        "HEADGATE_CONNECT__MEMORY": "1g",
        "HEADGATE_SECRETS__CANARY": CANARY,
        "AWS_SECRET_ACCESS_KEY": CANARY,
        # As somebody has it who works with Spark Connect: Headgate's own drivers are none of it.
        "SPARK_REMOTE": "sc://localhost:1",
        "SPARK_CONNECT_MODE_ENABLED": "1",
    }
    with Stack(tmp_path_factory.mktemp("notebooks") / "data", None, **settings) as stack:
        yield stack


@contextmanager
def session(stack: Stack, token: str) -> Iterator[SparkSession]:
    # Spark's client sets it for this process and all that it starts.
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
        # Spark's client knows where to go by this alone.
        url = f"{stack.runtime.spark_connect}/;token={token}"
        made: SparkSession = SparkSession.builder.remote(url).create()
        try:
            yield made
        finally:
            made.stop()


def test_a_notebook_has_what_it_needs_and_nothing_of_ours(serving: Stack) -> None:
    assert serving.json("status")["addresses"]["spark_connect"] == serving.runtime.spark_connect
    token = serving.run("connect", "token").stdout.strip()
    with session(serving, token) as spark:
        spark.sql("CREATE NAMESPACE lake.notes")
        spark.sql("CREATE TABLE lake.notes.t USING iceberg AS SELECT 1 AS n")
        assert [row.n for row in spark.table("lake.notes.t").collect()] == [1]
        assert ("notes",) in [tuple(row) for row in spark.sql("SHOW NAMESPACES").collect()]
        with pytest.raises(PySparkException):
            spark.sql("CREATE TABLE lake.local.t (n INT) USING iceberg")
        keys = [(serving.data / "secrets" / name).read_text() for name in ("engine", "operator")]
        shown = str(spark.sql("SET -v").collect())
        assert not [key for key in (*keys, CANARY) if key in shown]
        java = spark.sql("SELECT reflect('java.lang.System', 'getenv')").collect()
        assert not [key for key in (*keys, CANARY) if key in str(java)]
    folder = serving.data / "connect"
    assert {file.stat().st_mode & 0o077 for file in (folder, *folder.iterdir())} == {0}


def test_another_token_opens_nothing(serving: Stack) -> None:
    # In a process of its own, ended at once: Spark's client says goodbye to a server for minutes.
    asked = (
        "import os, sys\n"
        "from pyspark.sql import SparkSession\n"
        "try:\n"
        "    SparkSession.builder.remote(sys.argv[1]).create().sql('SELECT 1').collect()\n"
        "except Exception as error:\n"
        "    print(error, flush=True)\n"
        "    os._exit(3)\n"
        "os._exit(0)\n"
    )
    command = [sys.executable, "-c", asked, f"{serving.runtime.spark_connect}/;token=another"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 3, done.stderr
    assert "authenticat" in done.stdout.lower(), done.stdout


def test_the_token_is_not_shown_by_a_log(serving: Stack) -> None:
    token = Path(serving.data / "connect" / "token").read_text()
    logs = [file for file in (serving.data / "logs").iterdir() if token in file.read_text(errors="replace")]
    assert not logs
