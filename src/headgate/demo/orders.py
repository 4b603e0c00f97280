"""What the orders world shows beside its figures: engines that agree, a schema that changes, and the past."""

import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from urllib.parse import unquote, urlsplit

from headgate.datagen import produce
from headgate.demo.evolved import FIELD, EvolvedOrders
from headgate.demo.ports import Headgate, Screen, type_command
from headgate.demo.readers import Answer, missing_readers, outside_answers
from headgate.embedded.runtime import Runtime
from headgate.errors import TerminalError
from headgate.sql.types import quote
from headgate.worlds import Expected

MORE_ORDERS = 500
POLL_SECONDS = 0.5
WAIT_SECONDS = 180.0


class Orders:
    """The orders world once it has its figures."""

    def __init__(self, expected: Expected, headgate: Headgate, screen: Screen, data: Path, seed: int) -> None:
        self._expected, self._headgate, self._screen = expected, headgate, screen
        self._data, self._seed = data, seed
        status = headgate.get("status")
        self._iceberg: str = status["addresses"]["iceberg"]
        self._cluster: str = status["cluster"]

    def show(self) -> None:
        self._ask_engines()
        self._travel(self._change_schema())

    # -- engines

    def _ask_engines(self) -> None:
        self._screen.step("The same question to several engines: they read the same Parquet files")
        missing = missing_readers()
        if missing:
            self._screen.say(
                f"  Spark alone: {', '.join(missing)} not installed (pip install 'headgate[readers]')"
            )
        outside = {} if missing else outside_answers(self._iceberg, self._cluster, self._folder())
        wanted = self._expected.tables["completed_orders"]
        answers: dict[str, Callable[[], Answer]] = {"Spark (headgate query)": self._by_spark, **outside}
        rows = {engine: ask() for engine, ask in answers.items()}
        rows["plain Python, from the seed"] = (
            len(wanted),
            len({row["customer_id"] for row in wanted}),
            sum((row["amount"] for row in wanted), Decimal(0)),
        )
        self._screen.table(
            ("COMPLETED ORDERS", "ORDERS", "CUSTOMERS", "PAID"),
            [
                (engine, f"{n:,}", f"{customers:,}", f"{paid:,}")
                for engine, (n, customers, paid) in rows.items()
            ],
        )
        if len(set(rows.values())) > 1:
            raise TerminalError("The engines' answers differ.")
        self._screen.say("  All answers are equal.")

    def _by_spark(self) -> Answer:
        (row,) = self._headgate.query(
            "SELECT count(*) AS n, count(DISTINCT customer_id) AS customers, sum(amount) AS paid "
            "FROM completed_orders"
        )
        return int(row["n"]), int(row["customers"]), Decimal(row["paid"])

    def _folder(self) -> str:
        """Where the table's files are, the Delta log among them."""
        location = self._headgate.get("tables", "completed_orders")["detail"]["location"]
        return unquote(urlsplit(location).path)

    # -- a schema that changes

    def _change_schema(self) -> int:
        """More orders, whose payments have a field more; how many payments there are before them."""
        before = int(self._count("payments"))
        scenario = EvolvedOrders(self._seed + 1)
        self._screen.step(
            f"A schema changes: {MORE_ORDERS} orders more, whose payments have a field '{FIELD}'"
        )
        runtime = Runtime.load(self._data)
        written = produce(scenario, runtime.kafka_access, runtime.registry_access, limit=MORE_ORDERS)
        wanted = before + written["payments"]
        with self._screen.progress("payments: waiting for the new ones") as shown:
            deadline = time.monotonic() + WAIT_SECONDS
            while (rows := self._headgate.get("tables", "payments")["rows"]) != wanted:
                if time.monotonic() > deadline:
                    raise TerminalError(f"The table payments has {rows:,} of {wanted:,} rows.")
                shown.update("payments: waiting for the new ones", (rows or before) - before, wanted - before)
                time.sleep(POLL_SECONDS)
        self._query(f"SELECT {FIELD}, count(*) AS payments FROM payments GROUP BY {FIELD} ORDER BY {FIELD}")
        self._screen.say(
            "  Nothing was reconfigured: the table has the column, and rows from before have NULL."
        )
        return before

    # -- the past

    def _travel(self, before: int) -> None:
        self._screen.step("The past is there still, by snapshot")
        snapshots = self._headgate.query(
            "SELECT snapshot_id, summary['total-records'] AS total "
            f"FROM {quote(self._cluster)}.payments.snapshots ORDER BY committed_at"
        )
        then = [row["snapshot_id"] for row in snapshots if int(row["total"]) == before]
        if not then:
            raise TerminalError(f"No snapshot of payments has {before:,} rows.")
        self._query(f"SELECT count(*) AS payments FROM payments VERSION AS OF {then[-1]}")
        found = self._count(f"payments VERSION AS OF {then[-1]}")
        if found != before:
            raise TerminalError(f"The snapshot {then[-1]} has {found:,} rows, not {before:,}.")

    def _count(self, table: str) -> int:
        return int(self._headgate.query(f"SELECT count(*) AS n FROM {table}")[0]["n"])

    def _query(self, sql: str) -> None:
        type_command(("query", sql), self._headgate, self._screen)
