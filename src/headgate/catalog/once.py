"""Runs requests that change something: one at a time per name, and once per idempotency key."""

from collections.abc import Callable
from dataclasses import dataclass

from headgate.catalog.errors import CatalogError, commit_unknown
from headgate.catalog.idempotency import Once, Outcome
from headgate.catalog.ledger import KeyTaken, Ledger
from headgate.catalog.locks import NamedLocks


@dataclass(frozen=True)
class Answer:
    """What goes back to the client."""

    status: int
    body: str | None = None
    etag: str | None = None


def _as_recorded(outcome: Outcome) -> Answer:
    return Answer(outcome.status, outcome.body)


class Requests:
    def __init__(self, ledger: Ledger, locks: NamedLocks) -> None:
        self._ledger = ledger
        self._locks = locks

    def run(
        self,
        once: Once | None,
        names: tuple[object, ...],
        act: Callable[[], Answer],
        replay: Callable[[Outcome], Answer] = _as_recorded,
    ) -> Answer:
        """`act`, unless a request with this key was done before: then its outcome again.

        `act` must record its outcome in the transaction that makes the change.
        """
        with self._locks.holding(*names, *(() if once is None else (f"key {once.key}",))):
            if once is not None and (before := self._ledger.outcome(once)) is not None:
                return replay(before)
            try:
                return act()
            except KeyTaken:
                # Another process was faster with the same request; ours changed nothing.
                if once is not None and (before := self._ledger.outcome(once)) is not None:
                    return replay(before)
                raise

    def run_and_record(
        self, once: Once | None, names: tuple[object, ...], act: Callable[[], Answer]
    ) -> Answer:
        """For changes that JdbcCatalog makes by itself: the outcome is recorded right after them."""

        def recorded() -> Answer:
            answer = act()
            try:
                self._ledger.record(once, Outcome(answer.status, body=answer.body))
            except CatalogError as error:
                raise commit_unknown(f"The change was made, but not recorded: {error.message}") from error
            return answer

        return self.run(once, names, recorded)
