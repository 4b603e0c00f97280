"""A first query that nobody asked: classes are loaded and compiled by it before somebody waits for them."""

import logging
import threading

from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from headgate.adhoc.arrow import ArrowResults, give_batches
from headgate.adhoc.reading import Reading
from headgate.query.checked import Checker
from headgate.query.sessions import activate

log = logging.getLogger(__name__)

# A filter, groups, an order: what most queries have. It reads no table, as it has nobody's rights.
QUERY = (
    "SELECT id % 3 AS k, count(*) AS n, sum(id) AS s, max(CAST(id AS STRING)) AS t FROM range(1000) "
    "WHERE id > 10 GROUP BY id % 3 ORDER BY k"
)


def warm_up(spark: SparkSession) -> threading.Thread:
    """Runs it in the background. That it fails costs time, and is no failure of the driver."""

    def run() -> None:
        try:
            run_first(spark)
        except Exception:
            log.exception("the query driver starts cold")

    thread = threading.Thread(target=run, name="warm-up", daemon=True)
    thread.start()
    return thread


def run_first(spark: SparkSession) -> int:
    """The number of rows that it gave."""
    session = spark.newSession()
    activate(session)
    rows = Checker(session, frozenset()).frame(QUERY)
    reading, results = Reading(), ArrowResults()
    reading.attach(rows)
    results.begin(to_arrow_schema(rows.schema))
    give_batches(rows, results)
    reading.figures()
    return results.rows
