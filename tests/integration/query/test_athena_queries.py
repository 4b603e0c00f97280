"""The queries that users of Athena bring along, word by word but for names, ids and dates: what plain Python
computes, with their rights and by what the query driver lets through."""

import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headgate.access import LOCAL
from headgate.adhoc.reading import reading_of
from headgate.statements.asking import Asked
from tests.integration.query.conftest import NAMESPACE, Lake

TODAY = datetime.now(UTC).date()
DAYS_OF_ORDERS, DAYS_OF_SALES = 7, 45
A_DAY = TODAY - timedelta(days=3)
ORDERS = "order_id INT, amount DOUBLE, confirmation_code STRING, payment_method STRING, ts TIMESTAMP"
SALES = (
    "orderid INT, brand STRING, productname STRING, quantity INT, total_amount DOUBLE, orderdate TIMESTAMP"
)
CUSTOMERS = "customername STRING, total_amount DOUBLE, number_of_orders BIGINT, updated_at TIMESTAMP"
Rows = list[tuple[Any, ...]]


@dataclass(frozen=True)
class Shop:
    """Three tables and their rows; `snapshots` of the orders, the oldest first."""

    lake: Lake
    orders: Rows
    sales: Rows
    customers: Rows
    snapshots: Rows

    def ask(self, text: str) -> tuple[Rows, dict[str, Any]]:
        """The rows, and what was read for them. `<<cluster-id>>` is the cluster's name."""
        asked = Asked("lake", text.replace("<<cluster-id>>", NAMESPACE))
        with self.lake.sessions.query(asked, self.lake.catalog(LOCAL)) as frame:
            rows = [tuple(row) for row in frame.collect()]
            return rows, dict(reading_of(frame))

    def rows(self, text: str) -> Rows:
        return self.ask(text)[0]


def moment(chance: random.Random, day: date) -> datetime:
    return datetime.combine(day, time(), UTC) + timedelta(seconds=chance.randrange(86_400))


@pytest.fixture(scope="module")
def shop(lake: Lake, spark: SparkSession) -> Iterator[Shop]:
    chance = random.Random(7)
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    # Quarters: their sums are the same in any order.
    orders = [
        (n, chance.randrange(400, 9000) / 4, f"c{n}", chance.choice(("CREDIT_CARD", "UNKNOWN", None)), at)
        for day in range(DAYS_OF_ORDERS)
        for n in range(day * 300, day * 300 + 300)
        for at in [moment(chance, TODAY - timedelta(days=DAYS_OF_ORDERS - 1 - day))]
    ]
    sales = [
        (chance.randrange(900), f"brand {kind % 5}", f"product {kind}", chance.randrange(1, 5), of / 4, at)
        for day in range(DAYS_OF_SALES)
        for _ in range(60)
        for kind, of in [(chance.randrange(30), chance.randrange(100, 9000))]
        for at in [moment(chance, TODAY - timedelta(days=DAYS_OF_SALES - 1 - day))]
    ]
    customers = [
        (f"customer {n}", n * 12.25, n % 11, moment(chance, TODAY - timedelta(days=n % 30)))
        for n in range(80)
    ]

    def write(name: str, columns: str, partition: str, parts: list[Rows]) -> None:
        full = f"lake.{NAMESPACE}.{name}"
        session.sql(f"CREATE TABLE {full} ({columns}) USING iceberg {partition}")
        for part in parts:
            session.createDataFrame(part, columns).coalesce(1).writeTo(full).append()

    by_day = [[row for row in orders if row[0] // 300 == day] for day in range(DAYS_OF_ORDERS)]
    write("completed_orders", ORDERS, "PARTITIONED BY (days(ts))", by_day)
    write("product_sales", SALES, "PARTITIONED BY (days(orderdate))", [sales])
    write("thirty_day_customer_snapshot", CUSTOMERS, "", [customers])
    snapshots = session.sql(
        f"SELECT committed_at, snapshot_id, parent_id FROM lake.{NAMESPACE}.completed_orders.snapshots "
        "ORDER BY committed_at"
    )
    yield Shop(lake, orders, sales, customers, [tuple(row) for row in snapshots.collect()])
    for name in ("completed_orders", "product_sales", "thirty_day_customer_snapshot"):
        session.sql(f"DROP TABLE lake.{NAMESPACE}.{name} PURGE")


def test_a_first_look_shows_ten_rows(shop: Shop) -> None:
    found = shop.rows(
        """
        SELECT *
        FROM "AwsDataCatalog"."<<cluster-id>>"."completed_orders"
        LIMIT 10;
        """
    )
    assert len(found) == 10
    assert {row[0] for row in found} <= {row[0] for row in shop.orders}


def test_hourly_trends(shop: Shop) -> None:
    hours: dict[datetime, list[float]] = defaultdict(list)
    for _, amount, _, _, ts in shop.orders:
        hours[ts.replace(minute=0, second=0, microsecond=0)].append(amount)
    found = shop.rows(
        """
        SELECT
        date_trunc('hour', ts) AS window_start,
        date_trunc('hour', ts) + INTERVAL '1' hour AS window_end,
        COUNT(*) AS total_orders,
        SUM(amount) AS total_revenue
        FROM "AwsDataCatalog"."<<cluster-id>>"."completed_orders"
        GROUP BY date_trunc('hour', ts)
        ORDER BY window_start;
        """
    )
    assert [(a.astimezone(UTC), b.astimezone(UTC), n, s) for a, b, n, s in found] == [
        (hour, hour + timedelta(hours=1), len(of), sum(of)) for hour, of in sorted(hours.items())
    ]


def test_products_by_what_they_brought_in(shop: Shop) -> None:
    groups: dict[tuple[str, str], Rows] = defaultdict(list)
    for row in shop.sales:
        groups[row[1], row[2]].append(row)
    wanted = sorted(
        (
            (
                *product,
                len({row[0] for row in of}),
                sum(row[4] for row in of),
                sum(row[3] for row in of) / len(of),
            )
            for product, of in groups.items()
        ),
        key=lambda row: -row[3],
    )[:20]
    found = shop.rows(
        """
        SELECT
           brand,
           productname,
           COUNT(DISTINCT orderid) as order_count,
           SUM(total_amount) as total_revenue,
           AVG(quantity) as avg_quantity
        FROM "AwsDataCatalog"."<<cluster-id>>"."product_sales"
        GROUP BY brand, productname
        ORDER BY total_revenue DESC
        LIMIT 20;
        """
    )
    assert len({row[3] for row in wanted}) == 20, "no two sums alike: the order is one"
    assert [row[:4] for row in found] == [row[:4] for row in wanted]
    assert [row[4] for row in found] == pytest.approx([row[4] for row in wanted])


def test_customers_who_buy_often(shop: Shop) -> None:
    found = shop.rows(
        """
        SELECT
           customername,
           total_amount,
           number_of_orders,
           updated_at
        FROM "AwsDataCatalog"."<<cluster-id>>"."thirty_day_customer_snapshot"
        WHERE number_of_orders > 5
        ORDER BY total_amount DESC
        LIMIT 20;
        """
    )
    wanted = sorted((row for row in shop.customers if row[2] > 5), key=lambda row: -row[1])[:20]
    assert [(*row[:3], row[3].astimezone(UTC)) for row in found] == wanted


def test_methods_of_payment_with_those_that_have_none(shop: Shop) -> None:
    groups: dict[str | None, list[float]] = defaultdict(list)
    for _, amount, _, method, _ in shop.orders:
        groups[method].append(amount)
    found = shop.rows(
        """
        SELECT
           payment_method,
           COUNT(*) as order_count,
           SUM(amount) as total_revenue
        FROM "AwsDataCatalog"."<<cluster-id>>"."completed_orders"
        GROUP BY payment_method;
        """
    )
    assert {row[0]: row[1:] for row in found} == {method: (len(of), sum(of)) for method, of in groups.items()}
    assert None in groups


def test_the_table_as_it_was(shop: Shop) -> None:
    found = shop.rows(
        """
        SELECT
           made_current_at,
           snapshot_id,
           parent_id
        FROM "AwsDataCatalog"."<<cluster-id>>"."completed_orders$snapshots"
        ORDER BY made_current_at DESC;
        """
    )
    assert found == shop.snapshots[::-1]
    for number, (at, snapshot, _) in enumerate(shop.snapshots):
        count = 'SELECT COUNT(*) as record_count\nFROM "AwsDataCatalog"."<<cluster-id>>"."completed_orders"\n'
        assert shop.rows(f"{count}FOR SYSTEM_VERSION AS OF {snapshot};") == [((number + 1) * 300,)]
        clock = f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S.%f}"
        assert shop.rows(f"{count}FOR SYSTEM_TIME AS OF TIMESTAMP '{clock}';") == [((number + 1) * 300,)]


def test_partitions_by_day(shop: Shop) -> None:
    found = shop.rows(
        """
        SELECT
           partition,
           record_count,
           file_count
        FROM "AwsDataCatalog"."<<cluster-id>>"."completed_orders$partitions"
        ORDER BY partition DESC;
        """
    )
    assert found == [((TODAY - timedelta(days=day),), 300, 1) for day in range(DAYS_OF_ORDERS)]


def test_a_day_of_a_week_reads_a_fifth_at_most(shop: Shop) -> None:
    pruned, cost = shop.ask(
        f"""
        SELECT COUNT(*), SUM(amount)
        FROM "AwsDataCatalog"."<<cluster-id>>"."completed_orders"
        WHERE date_trunc('day', ts) = DATE '{A_DAY}';
        """
    )
    amounts = [row[1] for row in shop.orders if row[4].date() == A_DAY]
    assert pruned == [(len(amounts), sum(amounts))]
    full, all_of_it = shop.ask(
        """
        SELECT COUNT(*), SUM(amount)
        FROM "AwsDataCatalog"."<<cluster-id>>"."completed_orders";
        """
    )
    assert full == [(len(shop.orders), sum(row[1] for row in shop.orders))]
    assert 0 < cost["bytes"] <= all_of_it["bytes"] / 5


@pytest.mark.parametrize(
    ("table", "amount", "at"),
    [("completed_orders", "amount", "ts"), ("product_sales", "total_amount", "orderdate")],
)
def test_the_last_seven_days(shop: Shop, table: str, amount: str, at: str) -> None:
    rows = shop.orders if table == "completed_orders" else shop.sales
    place, time_place = (1, 4) if table == "completed_orders" else (4, 5)
    (found,), cost = shop.ask(
        f"""
        SELECT COUNT(*), SUM({amount})
        FROM "AwsDataCatalog"."<<cluster-id>>"."{table}"
        WHERE date_trunc('day', {at}) >= CURRENT_DATE - INTERVAL '7' DAY;
        """
    )
    # The day may have ended since.
    wanted = []
    for today in (TODAY, TODAY + timedelta(days=1)):
        of = [row[place] for row in rows if row[time_place].date() >= today - timedelta(days=7)]
        wanted.append((len(of), sum(of)))
    assert found in wanted
    (_,), whole = shop.ask(f'SELECT COUNT(*), SUM({amount}) FROM "<<cluster-id>>"."{table}"')
    assert cost["bytes"] <= (whole["bytes"] / 5 if table == "product_sales" else whole["bytes"])


def test_a_whole_snapshot_of_customers(shop: Shop) -> None:
    found, cost = shop.ask(
        """
        SELECT COUNT(*), SUM(total_amount)
        FROM "AwsDataCatalog"."<<cluster-id>>"."thirty_day_customer_snapshot";
        """
    )
    assert found == [(80, sum(row[1] for row in shop.customers))]
    assert cost["files_skipped"] == 0


def test_what_was_done_to_a_table(shop: Shop, spark: SparkSession) -> None:
    spark.sql(
        f"CALL lake.system.rewrite_data_files(table => '{NAMESPACE}.product_sales', "
        "options => map('rewrite-all', 'true'))"
    ).collect()
    found = shop.rows(
        """
        SELECT
           committed_at,
           snapshot_id,
           operation,
           summary
        FROM "AwsDataCatalog"."<<cluster-id>>"."product_sales$snapshots"
        ORDER BY committed_at DESC;
        """
    )
    assert [row[2] for row in found] == ["replace", "append"]
    assert [row[3]["total-records"] for row in found] == [str(len(shop.sales))] * 2
