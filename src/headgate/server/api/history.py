"""The query history: what was asked, what it read and gave, and two of them side by side."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query

from headgate.access import Role
from headgate.errors import InvalidRequest, NotFound, ServerUnavailable
from headgate.server import overview
from headgate.server.access import Access, Asking, needs
from headgate.server.answers import answers
from headgate.server.answers.queries import ComparedQueriesAnswer, QueryAnswer
from headgate.server.driver import NAME, QueryDriver
from headgate.store import Store
from headgate.store.queries import QueryFilter, QueryHistory, QueryRecord, QueryState

MOST = 1000
# What is counted of every query, in the order in which it is shown.
FIGURES = ("seconds", "rows", "result_bytes", "files", "bytes", "files_skipped", "bytes_skipped")
LIVING = ("starting", "ready")


def history_router(history: QueryHistory, store: Store, driver: QueryDriver) -> APIRouter:
    router = APIRouter(prefix="/queries", tags=["queries"])

    @router.get(
        "",
        summary="List queries, the newest first",
        **needs(Role.READER, "own"),
        **answers(list[QueryAnswer]),
    )
    def listed(
        access: Asking,
        state: QueryState | None = None,
        before: Annotated[str | None, Query(description="Older than the query of this id.")] = None,
        limit: Annotated[int, Query(ge=1, le=MOST)] = 100,
    ) -> list[dict[str, Any]]:
        """One's own; an admin sees all. Of those that run, `rows` is how many were given so far."""
        wanted = QueryFilter(owner_of(access), state, before)
        records = [_shown(one) for one in history.list(wanted, living_driver(store), limit)]
        return _with_progress(records, driver)

    @router.get("/{query_id}", summary="Show a query", **needs(Role.READER, "own"), **answers(QueryAnswer))
    def show(query_id: str, access: Asking) -> dict[str, Any]:
        record = history.get(query_id, living_driver(store), owner_of(access))
        return _with_progress([_shown(record)], driver)[0]

    @router.get(
        "/{query_id}/compare/{other_id}",
        summary="Compare two queries",
        **needs(Role.READER, "own"),
        **answers(ComparedQueriesAnswer),
    )
    def compare(query_id: str, other_id: str, access: Asking) -> dict[str, Any]:
        """Of each figure, `difference` is the second's less the first's, `ratio` the second's by the
        first's; none where there is nothing to divide by."""
        alive, owner = living_driver(store), owner_of(access)
        first, second = (_shown(history.get(one, alive, owner)) for one in (query_id, other_id))
        return {
            "a": first,
            "b": second,
            "same_sql": first["sql"] == second["sql"],
            "same_snapshots": _snapshots(first) == _snapshots(second),
            "figures": {name: _beside(first[name], second[name]) for name in FIGURES},
        }

    return router


def owner_of(access: Access) -> str | None:
    """Whose queries they are told of; None is anybody's."""
    return None if access.caller.is_admin else access.caller.id


def living_driver(store: Store) -> str | None:
    """The instance of the query driver that runs now; none where none does."""
    record = store.process(NAME)
    return record.instance if overview.process(record)["state"] in LIVING else None


def cancel(
    history: QueryHistory, store: Store, driver: QueryDriver, query_id: str, owner: str | None
) -> None:
    """A query that has ended is refused, with how it ended."""
    if driver.is_there:
        try:
            driver.cancel(query_id, owner)
        except NotFound:
            # It is no longer there, or is somebody else's: the history tells which.
            pass
        else:
            return
    record = history.get(query_id, living_driver(store), owner)
    if record.state is QueryState.RUNNING:
        raise ServerUnavailable(
            f"Query '{query_id}' is not with the query driver yet, or no longer.", "Ask again."
        )
    raise InvalidRequest(f"Query '{query_id}' runs no more: it is {record.state}.")


def _shown(record: QueryRecord) -> dict[str, Any]:
    shown = {**asdict(record), "state": record.state.value}
    figures = shown.pop("figures")
    del shown["instance"]
    return shown | {name: figures.get(name) for name in FIGURES}


def _with_progress(records: list[dict[str, Any]], driver: QueryDriver) -> list[dict[str, Any]]:
    if not any(one["state"] == QueryState.RUNNING for one in records) or not driver.is_there:
        return records
    given: dict[str, int] = {}
    # It may end at any moment: the list is as good without.
    with suppress(ServerUnavailable):
        given = {str(one["id"]): one["rows"] for one in driver.call("GET", "/queries")}
    return [one | {"rows": given.get(one["id"], one["rows"])} for one in records]


def _snapshots(shown: Mapping[str, Any]) -> list[tuple[str, str | None]]:
    return sorted((one["table"], one["snapshot_id"] or "") for one in shown["tables"])


def _beside(first: float | None, second: float | None) -> dict[str, float | None]:
    known = first is not None and second is not None
    difference = round(second - first, 3) if first is not None and second is not None else None
    ratio = round(second / first, 4) if known and first and second is not None else None
    return {"a": first, "b": second, "difference": difference, "ratio": ratio}
