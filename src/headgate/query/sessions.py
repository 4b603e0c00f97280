"""Spark sessions of the query driver: one for each token, with the rights of the token's owner."""

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession

from headgate.lake_functions import Removal
from headgate.query.changes import changes, summary
from headgate.query.checked import Checker
from headgate.spark import CATALOG
from headgate.sql.athena import to_spark
from headgate.statements.asking import Asked

MOST_SESSIONS = 32
_PREFIX = "spark.sql.catalog."
# What every session of queries is held to: files are no tables, and a text is what it says.
HARDENED = {
    "spark.sql.runSQLOnFiles": "false",
    "spark.sql.variable.substitute": "false",
    "spark.sql.legacy.allowUntypedScalaUDF": "false",
    "spark.sql.scripting.enabled": "false",
    "spark.sql.redaction.string.regex": r"(?i)bearer\s+\S+|eyJ[\w-]+\.[\w-]+\.[\w-]+",
}
# Catalogs that Spark knows by itself, and namespaces that are taken for one.
_ALWAYS_CLOSED = ("spark_catalog", "system", "session", "global_temp")


@dataclass
class _Kept:
    spark: SparkSession
    users: int = 0
    dropped: bool = False


class LakeSessions:
    """For many threads. Sessions are kept for who asks again, the longest unused goes first."""

    def __init__(self, spark: SparkSession, namespace: str, most: int = MOST_SESSIONS) -> None:
        """`namespace`: that of the topics' tables."""
        self._spark = spark
        self._namespace = namespace
        self._most = most
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        named = (
            key.removeprefix(_PREFIX) for key, _ in spark.sparkContext.getConf().getAll() if _PREFIX in key
        )
        others = {name.casefold() for name in named if "." not in name} - {CATALOG}
        self._closed = frozenset({*others, *_ALWAYS_CLOSED})
        self._removal = Removal(spark)

    @contextmanager
    def query(self, asked: Asked, catalog: Mapping[str, str]) -> Iterator[DataFrame]:
        """The rows of a query, checked."""
        with self.session(asked.zone, catalog) as spark:
            jvm: Any = spark.sparkContext._jvm
            user = "" if asked.caller is None else asked.caller.name.strip("'")
            # What CURRENT_USER says in this thread; else it were the user that the driver runs as.
            jvm.org.apache.spark.sql.catalyst.CurrentUserContext.CURRENT_USER().set(user)
            text = to_spark(asked.sql, self._namespace, asked.zone).text
            yield Checker(spark, self._closed).frame(text)

    @contextmanager
    def changes(self, asked: Asked, catalog: Mapping[str, str]) -> Iterator[DataFrame]:
        """What changed in a table between two of its snapshots."""
        wanted = asked.changes
        with self.session(asked.zone, catalog) as spark:
            told = summary if wanted.get("summary") else changes
            yield told(spark, wanted["topic"], wanted["key"], wanted["start"], wanted["end"])

    @contextmanager
    def session(self, zone: str, catalog: Mapping[str, str]) -> Iterator[SparkSession]:
        """A session of its own for each catalog's properties, as long as the block lasts at least."""
        # What is kept is no token.
        key = hashlib.sha256(repr((zone, sorted(catalog.items()))).encode()).hexdigest()
        with self._lock:
            kept = self._kept.get(key)
            if kept is None:
                kept = self._kept[key] = _Kept(self._made(zone, catalog))
            self._kept.move_to_end(key)
            kept.users += 1
            over = [self._kept.popitem(last=False)[1] for _ in range(len(self._kept) - self._most)]
            for other in over:
                other.dropped = True
        for other in over:
            self._release(other, 0)
        try:
            activate(kept.spark)
            yield kept.spark
        finally:
            self._release(kept, 1)

    def _release(self, kept: _Kept, users: int) -> None:
        with self._lock:
            kept.users -= users
            ends = kept.dropped and kept.users == 0
        if ends:
            _lake(kept.spark).icebergCatalog().close()

    def _made(self, zone: str, catalog: Mapping[str, str]) -> SparkSession:
        session = self._spark.newSession()
        self._removal.from_session(session)
        of_its_own = {
            "spark.sql.session.timeZone": zone,
            "spark.sql.defaultCatalog": CATALOG,
            f"{_PREFIX}{CATALOG}.default-namespace": self._namespace,
        }
        for name, value in {**HARDENED, **of_its_own}.items():
            session.conf.set(name, value)
        activate(session)
        names = [f"{_PREFIX}{CATALOG}.{name}" for name in catalog]
        for name, value in zip(names, catalog.values(), strict=True):
            session.conf.set(name, value)
        try:
            # Made once, of these settings; from then on the session has no token that it could show.
            _lake(session)
        except Py4JJavaError:
            session.conf.unset(f"{_PREFIX}{CATALOG}.token")
            raise
        for name in names:
            session.conf.unset(name)
        return session


def activate(session: SparkSession) -> None:
    """Spark parses, and makes catalogs, by the settings of the session that is the thread's."""
    jvm: Any = session.sparkContext._jvm
    jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(session._jsparkSession)


def _lake(session: SparkSession) -> Any:
    java: Any = session._jsparkSession
    return java.sessionState().catalogManager().catalog(CATALOG)
