"""Asks SELECTs as the server does, of queries that run in the tests' own session; reads what comes."""

import json
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from headgate.adhoc.history import HistoryWriter
from headgate.adhoc.queries import Queries, Query
from headgate.config import Statements as StatementSettings
from headgate.errors import ConfigError
from headgate.query.sessions import LakeSessions
from headgate.statements.declared import DeclaredTables
from headgate.statements.execute import Executor
from headgate.statements.tables import TopicTables
from headgate.store import SqlObjects, Statements, Store
from headgate.store.queries import QueryHistory
from tests.integration.statements.bench import Bench
from tests.support.services import wait_for

SNAPSHOT = {"sql.snapshot.mode": "now"}


def secret(name: str) -> str:
    raise ConfigError(f"There is no secret '{name}'.")


class Asking:
    """`checkpoints` is where live queries keep theirs while they run."""

    def __init__(self, bench: Bench, spark: SparkSession, folder: Path) -> None:
        self.store = Store.open(f"sqlite:///{folder / 'asking.db'}")
        tables = DeclaredTables(SqlObjects(self.store.engine), TopicTables(bench.topics, bench.schemas))
        statements = Statements(self.store.engine)
        self.executor = Executor(tables, statements, bench.topics, bench.schemas, secret)
        self.checkpoints = folder / "adhoc"
        settings = StatementSettings(interval=0.1, tasks=2)
        self.queries = Queries(
            spark,
            bench.access,
            bench.schemas,
            secret,
            self.checkpoints.as_uri(),
            settings,
            LakeSessions(spark, "local"),
            {},
            HistoryWriter(QueryHistory(self.store.engine), "asking", 3600, 1000),
        )
        self._spark = spark

    def close(self) -> None:
        self.queries.close()
        self.store.close()

    def ask(self, sql: str, settings: Mapping[str, str] | None = None) -> Query:
        asked, _ = self.executor.ask(sql, settings or {})
        return self.queries.start(asked)

    def reader(self, sql: str, settings: Mapping[str, str] | None = None) -> "Reader":
        return Reader(self.queries, self.ask(sql, settings))

    def whole(self, sql: str, settings: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
        """All lines of a query that ends."""
        found = self.reader(sql, settings)
        wait_for("the end", lambda: found.ended)
        assert found.lines[-1]["op"] in ("end", "error")
        return found.lines

    def snapshot(self, sql: str) -> list[tuple[Any, ...]]:
        *rows, end = self.whole(sql, SNAPSHOT)
        assert (end["op"], end.get("state")) == ("end", "Completed"), end
        assert {line["op"] for line in rows} <= {"insert"}
        return [tuple(line["row"].values()) for line in rows]

    def is_nothing_left(self) -> bool:
        """No query, no thread of one, no stream of Spark's, no file."""
        threads = [thread for thread in threading.enumerate() if thread.name.startswith("query-")]
        files = list(self.checkpoints.iterdir()) if self.checkpoints.exists() else []
        active = [q for q in self._spark.streams.active if "headgate-statement" in (q.name or "")]
        return not (self.queries.all() or threads or files or active)


class Reader:
    """Reads in a thread of its own, until the end or until it leaves."""

    def __init__(self, queries: Queries, query: Query) -> None:
        self.lines: list[dict[str, Any]] = []
        self.ended = False
        self.query = queries.read(query.id)
        self._queries = queries
        self._gone = threading.Event()
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        for piece in self.query.results.pieces():
            if self._gone.is_set():
                break
            self.lines += [json.loads(line) for line in (piece or b"").splitlines()]
        self._queries.leave(self.query)
        self.ended = True

    def leave(self) -> None:
        self._gone.set()
        self._queries.leave(self.query)
        self._thread.join()

    def rows(self, key: Callable[[dict[str, Any]], Any] | None = None) -> list[tuple[Any, ...]]:
        """What the lines come to; `key` tells rows that replace each other."""
        failed = [line for line in self.lines if line["op"] == "error"]
        assert not failed, failed
        found: dict[Any, tuple[Any, ...]] = {}
        for number, line in enumerate(self.lines):
            if line["op"] == "end":
                continue
            place = number if key is None else key(line["row"])
            if line["op"] == "delete":
                found.pop(place, None)
            else:
                found[place] = tuple(line["row"].values())
        return list(found.values())
