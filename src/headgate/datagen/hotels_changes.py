"""What becomes of guests and hotels in the hotels' database, as its change events."""

from collections.abc import Iterator
from random import Random
from typing import Any

from headgate.datagen.debezium import ChangeLog
from headgate.datagen.scenario import Record
from headgate.datagen.shop import HUNDRED, pick
from headgate.datagen.times import DAY_MS, MINUTE_MS, iso_text
from headgate.datagen.words import QUALITIES, TOWNS

# How many in each hundred bookings: visitors who close their account, hotels that are entered by mistake.
LEAVING, MISTAKEN = 2, 1


class HotelChanges:
    """Makes change events of guests and hotels, and says which rows are deleted. Bookings stay the same:
    only visitors who never book leave, and nobody books a hotel that is there by mistake."""

    def __init__(self, seed: int, database: str, first: int) -> None:
        """`first`: how many rows there are when the connector begins; its snapshot reads them."""
        # Draws of its own: the story is the same as without change events.
        self._random = Random(f"changes of hotels {seed}")  # noqa: S311  it is to be foreseeable
        self._seed = seed
        self._log = ChangeLog(database)
        self._unread = first
        self._leaving_left = 0
        self._mistaken = 0
        self._place = 0

    def events(self, row: Record, before: dict[str, Any] | None) -> Iterator[Record]:
        """What the database's log has of a row that was told."""
        if self._unread:
            self._unread -= 1
            yield self._log.read(row, last=self._unread == 0)
        else:
            yield from self._log.changed(row, before)

    def begin_hundred(self) -> None:
        self._leaving_left = LEAVING
        self._place = int(self._random.random() * HUNDRED)

    def leaving_at(self, now_ms: int) -> int | None:
        """When a visitor of now closes the account, if ever."""
        if not self._leaving_left:
            return None
        self._leaving_left -= 1
        return now_ms + int((2 + 3 * self._random.random()) * DAY_MS)

    def mistaken_hotel(self, place: int, now_ms: int) -> tuple[dict[str, Any], int] | None:
        """A hotel that is entered by mistake before the booking at this place, and when it is deleted."""
        if place != self._place:
            return None
        self._mistaken += 1
        town, country = pick(self._random, TOWNS)
        rooms = 4 + int(self._random.random() * 60)
        row = {
            "hotel_id": f"h{self._seed}-x{self._mistaken:06}",
            "name": f"{pick(self._random, QUALITIES)} House {town}",
            "category": "INN",
            "town": town,
            "country": country,
            "rooms": rooms,
            "free_rooms": rooms,
            "created_at": iso_text(now_ms),
            "updated_at": iso_text(now_ms),
        }
        return row, now_ms + int((5 + 55 * self._random.random()) * MINUTE_MS)
