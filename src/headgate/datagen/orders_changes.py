"""What happens to orders after they were placed, as the change events of the shop's database."""

import heapq
from collections.abc import Iterable, Iterator
from random import Random
from typing import Any

from headgate.datagen.debezium import ChangeLog
from headgate.datagen.scenario import TOMBSTONE, Record
from headgate.datagen.shop import HUNDRED, shuffled
from headgate.datagen.times import DAY_MS, HOUR_MS, MINUTE_MS

# Orders that were there when the connector began: its snapshot reads them.
READ = 20
# How many of each hundred orders are updated once, and how many twice.
ONCE, TWICE = 10, 2
# How many of each hundred orders are deleted: of those that are never paid.
DELETED = 2


def change_counts(limit: int) -> dict[str, int]:
    """How many events of each operation, and tombstones, a limit of whole hundreds makes."""
    hundreds = limit // HUNDRED
    read, deleted = min(READ, limit), hundreds * DELETED
    return {
        "r": read,
        "c": limit - read,
        "u": hundreds * (ONCE + 2 * TWICE),
        "d": deleted,
        "tombstones": deleted,
    }


class OrderChanges:
    """Makes change events of orders, and adds updates and deletes. What follows from an order that is paid
    stays the same: updates change the delivery, deletes take orders that nobody has paid."""

    def __init__(self, seed: int, database: str) -> None:
        # Draws of its own: the story is the same as without change events.
        self._random = Random(f"changes of orders {seed}")  # noqa: S311  it is to be foreseeable
        self._log = ChangeLog(database)
        #: The keys of orders that nobody will pay; each is here before its order comes.
        self.unpaid: set[bytes] = set()
        self._orders = 0
        self._deletes_left = 0
        self._updates: list[int] = []
        # Orders that wait for the snapshot to read them.
        self._unread: list[Record] = []
        # Changes on their way: when they happen, a number that tells equals apart, row and row before.
        self._coming: list[tuple[int, int, Record, dict[str, Any]]] = []
        self._sent = 0

    def events(self, records: Iterable[Record]) -> Iterator[Record]:
        for record in records:
            if record.topic == "payments":
                # Nobody pays before the snapshot has read the order.
                yield from self._snapshot()
            yield from self._arrived(record.timestamp_ms)
            if record.topic == "orders":
                yield from self._placed(record)
            else:
                yield record
        yield from self._snapshot()
        yield from self._arrived(None)

    def _placed(self, order: Record) -> Iterator[Record]:
        place = self._orders % HUNDRED
        if place == 0:
            self._updates = shuffled(self._random, {1: ONCE, 2: TWICE}, 0)
            self._deletes_left = DELETED
        self._orders += 1
        last = self._update(order, self._updates[place])
        if order.key in self.unpaid:
            self.unpaid.remove(order.key)
            self._delete(order, last)
        if self._orders > READ:
            yield from self._log.changed(order, None)
            return
        self._unread.append(order)
        if self._orders == READ:
            yield from self._snapshot()

    def _snapshot(self) -> Iterator[Record]:
        if not self._unread:
            return
        rows, self._unread = self._unread, []
        at = rows[-1].timestamp_ms
        for row in rows:
            yield self._log.read(row._replace(timestamp_ms=at), row is rows[-1])

    def _update(self, order: Record, times: int) -> dict[str, Any]:
        """The row after its updates: the delivery is put off, then its speed is changed."""
        row, at = order.value, order.timestamp_ms
        for number in range(times):
            before = row
            at += 10 * MINUTE_MS + int(self._random.random() * 10 * MINUTE_MS)
            if number == 0:
                due = before["deliver_by"] or at // DAY_MS + 2
                row = before | {"deliver_by": due + 1 + int(self._random.random() * 5)}
            else:
                row = before | {"express": not before["express"]}
            self._send(order, row, at, before)
        return row

    def _delete(self, order: Record, row: dict[str, Any]) -> None:
        if self._deletes_left:
            self._deletes_left -= 1
            at = order.timestamp_ms + HOUR_MS + int(self._random.random() * HOUR_MS)
            self._send(order, TOMBSTONE, at, row)

    def _send(self, order: Record, row: dict[str, Any], at: int, before: dict[str, Any]) -> None:
        self._sent += 1
        record = order._replace(value=row, timestamp_ms=at)
        heapq.heappush(self._coming, (at, self._sent, record, before))

    def _arrived(self, until: int | None) -> Iterator[Record]:
        while self._coming and (until is None or self._coming[0][0] <= until):
            _, _, row, before = heapq.heappop(self._coming)
            yield from self._log.changed(row, before)
