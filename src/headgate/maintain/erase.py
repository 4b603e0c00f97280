"""Rows that must be gone: deleted, and no file left that still holds them.

A delete alone hides rows. Here the files that held them are written anew, their manifests too, which keep the
least and greatest values of each file, and every snapshot before is expired with its files.
"""

from dataclasses import dataclass
from typing import Any, cast

from py4j.protocol import Py4JJavaError
from pyspark.errors import ParseException, PySparkException
from pyspark.sql import SparkSession

from headgate.config import YOUNGEST_ORPHAN_SECONDS
from headgate.errors import InvalidRequest
from headgate.failpoints import failpoint
from headgate.lake_functions import Removal
from headgate.maintain.actions import Actions, check_may_delete, lost_commits
from headgate.maintain.clean import clean
from headgate.maintain.compact import Compaction, compact, rewrite_manifests
from headgate.maintain.expire import expire, pin
from headgate.model import ASKED_BY_KEY, EXPORT_TAG, OPERATION_KEY
from headgate.tables.mirror import DeltaMirror

ERASE_KEY = "headgate.erase"
_PROPERTY = "spark.sql.iceberg.snapshot-property."
_REMEDY = "Write a condition on the table's columns, such as \"customer_id = 42 and country = 'SE'\"."


@dataclass(frozen=True)
class Erased:
    """What an erasure did."""

    rows_erased: int
    files_rewritten: int
    snapshots_removed: int
    data_files_removed: int
    orphans_removed: int
    # Tags and branches whose snapshots may still hold the rows.
    held_by: list[str]


def erase(
    actions: Actions,
    table: Any,
    topic: str,
    where: str,
    target_bytes: int,
    erase_id: str,
    mirror: DeltaMirror | None = None,
    asked_by: str = "",
) -> Erased:
    """Done again after a failure, it goes on where it was: `erase_id` finds the delete that was made."""
    check_condition(actions, topic, where)
    actions.lake.refresh(table)
    check_may_delete(table)
    if table.currentSnapshot() is None:
        return Erased(0, 0, 0, 0, 0, [])
    rows = _erased_before(actions, table, erase_id)
    if rows is None:
        _delete(actions, topic, where, erase_id, asked_by)
        actions.lake.refresh(table)
        rows = _erased_before(actions, table, erase_id) or 0
    failpoint("maintain-deleted")
    # Also rows that were deleted before and may have matched: every file that has some.
    packed = compact(actions, table, Compaction(target_bytes, only_deleted=True, asked_by=asked_by))
    rewrite_manifests(actions, table, 0, asked_by)
    pin(actions, table, topic, asked_by)
    _release_exports(table)
    newest = table.currentSnapshot().timestampMillis()
    expired = expire(actions, table, topic, newest + 1, 1, mirror)
    # What an engine left that died between an expiry and its files, or in a batch, may hold the rows too.
    orphans = clean(actions, table, YOUNGEST_ORPHAN_SECONDS)
    # The branch itself may be told to keep more.
    own = ["main"] if expired.snapshots_after > 1 and not expired.held_by else []
    return Erased(
        rows,
        packed.files_rewritten,
        expired.snapshots_before - expired.snapshots_after,
        expired.data_files_removed,
        orphans.orphans_removed,
        own + expired.held_by,
    )


def export_tags(table: Any) -> list[str]:
    """The tags by which runs of exports hold snapshots."""
    return sorted(str(name) for name in table.refs() if str(name).startswith(EXPORT_TAG))


def _release_exports(table: Any) -> None:
    """What is to be gone is held for no export: its run cannot be repeated."""
    tags = export_tags(table)
    if not tags:
        return
    manage = table.manageSnapshots()
    for tag in tags:
        manage = manage.removeTag(tag)
    manage.commit()
    table.refresh()


def check_condition(actions: Actions, topic: str, where: str) -> None:
    """Spark itself reads the condition; anything but a plain one on the table's columns is refused.

    Who may erase rows of a table may not do all that the engine may: functions that reach Java, files or
    addresses are unknown here, and a subquery is refused before its tables are looked for.
    """
    subqueries = actions.jvm.org.apache.spark.sql.catalyst.expressions.SubqueryExpression
    guarded = actions.spark.newSession()
    Removal(guarded).from_session(guarded)
    try:
        parsed = _parser(actions).parseExpression(where)
        if subqueries.hasSubquery(parsed):
            raise InvalidRequest("The condition holds a subquery.", _REMEDY)
        frame = guarded.table(actions.sql_name(topic))
        analyzed: Any = cast(Any, frame.where(where))._jdf.queryExecution().analyzed()
    except (PySparkException, Py4JJavaError) as error:
        kind = "read" if isinstance(error, ParseException) else "understood"
        said = str(error).strip().splitlines()[0]
        raise InvalidRequest(f"The condition cannot be {kind}: {said}", _REMEDY) from error
    if "Alias" in parsed.getClass().getSimpleName():
        raise InvalidRequest("What is given is more than a condition: it names something.", _REMEDY)
    if analyzed.getClass().getSimpleName() != "Filter":
        raise InvalidRequest("The condition refers to more than the table's columns.", _REMEDY)
    condition = analyzed.condition()
    if not condition.deterministic():
        raise InvalidRequest("The condition gives another answer each time it is asked.", _REMEDY)
    if condition.references().isEmpty():
        raise InvalidRequest("The condition refers to no column of the table.", _REMEDY)


def _parser(actions: Actions) -> Any:
    return cast(Any, actions.spark)._jsparkSession.sessionState().sqlParser()


def _delete(actions: Actions, topic: str, where: str, erase_id: str, asked_by: str) -> None:
    session = _marking(actions.spark, erase_id, asked_by)
    name = actions.sql_name(topic)
    # On a line of its own, so that a comment in it ends with it. The second condition always holds; with it
    # Iceberg does not drop whole files by their statistics, which it would do without our summary.
    delete = f"delete from {name} where (\n{where}\n) and length(_file) > 0"
    try:
        with lost_commits(f"erase rows of table '{topic}'"):
            session.sql(delete)
    except PySparkException as error:
        # What else has failed may have come after the commit: another try looks for the delete first.
        if not is_of_the_condition(error):
            raise
        said = str(error).strip().splitlines()[0]
        raise InvalidRequest(f"Nothing is erased, the condition fails: {said}", _REMEDY) from error


def is_of_the_condition(error: PySparkException) -> bool:
    """Whether values or words of the query have failed (SQLSTATE 22 and 42): then no row is gone."""
    return (error.getSqlState() or "").startswith(("22", "42"))


def _marking(spark: SparkSession, erase_id: str, asked_by: str) -> SparkSession:
    session = spark.newSession()
    session.conf.set(f"{_PROPERTY}{OPERATION_KEY}", "erase")
    session.conf.set(f"{_PROPERTY}{ERASE_KEY}", erase_id)
    if asked_by:
        session.conf.set(f"{_PROPERTY}{ASKED_BY_KEY}", asked_by)
    return session


def _erased_before(actions: Actions, table: Any, erase_id: str) -> int | None:
    """How many rows the delete of this erasure took; None when it was not made."""
    snapshot = table.currentSnapshot()
    while snapshot is not None:
        summary = snapshot.summary()
        if summary.get(ERASE_KEY) == erase_id:
            added, removed, whole = (
                int(summary.get(key) or 0)
                for key in ("added-position-deletes", "removed-position-deletes", "deleted-records")
            )
            return whole + added - removed
        snapshot = actions.lake.parent(table, snapshot)
    return None
