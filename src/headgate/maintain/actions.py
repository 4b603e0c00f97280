"""Iceberg's own Spark actions, and what their failures mean."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from headgate.errors import CatalogUnavailable, CommitUnknown, InvalidRequest, StaleBatch
from headgate.spark import CATALOG
from headgate.tables.lake import Lake

_LOST = {"CommitFailedException", "ValidationException"}
_UNAVAILABLE = {"ServiceFailureException", "ServiceUnavailableException", "RESTException"}


class Actions:
    """What maintenance asks of the driver, on tables of one namespace."""

    def __init__(self, spark: SparkSession, lake: Lake) -> None:
        self.spark = spark
        self.lake = lake
        self.jvm = cast(Any, spark._jvm)

    def of(self, session: SparkSession | None = None) -> Any:
        """Iceberg's actions, in a session that is this thread's too: they look for it there."""
        java: Any = cast(Any, session or self.spark)._jsparkSession
        self.jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(java)
        return self.jvm.org.apache.iceberg.spark.actions.SparkActions.get(java)

    def sql_name(self, topic: str) -> str:
        """The table's name in Spark's SQL, whatever is in it."""
        return ".".join(f"`{part.replace('`', '``')}`" for part in (CATALOG, self.lake.namespace, topic))


def check_may_delete(table: Any) -> None:
    """Somebody may have said that this table's files are not to be deleted."""
    if str(table.properties().get("gc.enabled") or "true").lower() != "true":
        raise InvalidRequest(
            f"Files of table '{table.name()}' are not to be deleted: its property gc.enabled says so.",
            "Set it to true when no other table uses the same files.",
        )


@contextmanager
def lost_commits(doing: str) -> Iterator[None]:
    """A commit that lost against another writer is tried again later; one that is unknown is looked up.

    Iceberg's actions wrap what the commit raised, and Spark wraps it again: the causes tell.
    """
    try:
        yield
    except (Py4JJavaError, PySparkException) as error:
        names = list(_causes(error))
        said = f"Cannot {doing}: {', '.join(names) or type(error).__name__}."
        if "CommitStateUnknownException" in names:
            raise CommitUnknown(said) from error
        if _LOST & set(names):
            raise StaleBatch(said, "Another writer was faster; it is tried again.") from error
        if _UNAVAILABLE & set(names):
            raise CatalogUnavailable(said) from error
        raise
    except Py4JError as error:
        raise CatalogUnavailable(f"Cannot {doing}: the driver's JVM does not answer: {error}.") from error


def _causes(error: Any) -> Iterator[str]:
    cause = error.java_exception if isinstance(error, Py4JJavaError) else getattr(error, "_origin", None)
    for _ in range(20):
        if cause is None:
            return
        yield str(cause.getClass().getSimpleName())
        cause = cause.getCause()
