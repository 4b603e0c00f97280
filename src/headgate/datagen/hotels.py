"""The scenario `hotels`: guests look for a bed on the water, book one, and some say what they thought.

Everything follows from the seed, the clock included. Guests and hotels change as time goes on; records arrive
up to ARRIVES_MS after what they tell has happened, so that times and offsets do not agree.
"""

import heapq
from collections.abc import Iterator, Mapping
from enum import Enum, auto
from random import Random
from typing import Any, ClassVar

from headgate.datagen.debezium import count_changes
from headgate.datagen.hotels_changes import LEAVING, MISTAKEN, HotelChanges
from headgate.datagen.hotels_schemas import ACTIONS, CATEGORIES, EVOLUTIONS, SCHEMAS
from headgate.datagen.scenario import TOMBSTONE, Record
from headgate.datagen.seeded import Seeded
from headgate.datagen.shop import HUNDRED, money, pick, shuffled
from headgate.datagen.times import DAY_MS, HOUR_MS, MINUTE_MS, iso_text
from headgate.datagen.words import FAMILY_NAMES, GIVEN_NAMES, QUALITIES, TOWNS

FIRST_HOTELS, FIRST_GUESTS = 20, 60
LONGEST_GAP_MS = 40 * MINUTE_MS
# Less than the half minute that a script would allow.
ARRIVES_MS = 20_000
BOOKINGS_PER_SEED = 1_000_000_000
TIERS = ("DAY", "WEEK", "SEASON")
WORDS = (
    "Woke up to ducks.",
    "The lock is louder than one thinks.",
    "Breakfast on deck, every day.",
    "Damp, and we would come again.",
    "Für zwei Nächte genau richtig.",
)


class Fate(Enum):
    """What becomes of a booking."""

    SILENCE = auto()
    REVIEW = auto()
    REVIEW_TWICE = auto()  # another review of the same stay, days later
    TWICE = auto()  # the same record again, byte for byte


class Change(Enum):
    """What else happens just before a booking."""

    NOTHING = auto()
    NEW_GUEST = auto()
    GUEST = auto()
    HOTEL = auto()
    VISITOR = auto()  # somebody clicks, and does not book within a day


# How many of each there are in every hundred bookings; the seed says at which places.
FATES = {Fate.REVIEW: 40, Fate.REVIEW_TWICE: 3, Fate.TWICE: 3}
CHANGES = {Change.NEW_GUEST: 5, Change.GUEST: 6, Change.HOTEL: 6, Change.VISITOR: 12}


class Hotels(Seeded):
    """The topics `guests`, `hotels`, `bookings`, `reviews` and `clicks`. The limit counts bookings."""

    name = "hotels"
    counted = "bookings"
    schemas = SCHEMAS
    database = "hotels"
    keys: ClassVar[Mapping[str, str]] = {"guests": "mail", "hotels": "hotel_id"}
    happenings = frozenset({"bookings", "reviews", "clicks"})
    evolutions = EVOLUTIONS

    def _tell(self, limit: int | None) -> Iterator[Record]:
        changes = HotelChanges(self.seed, self.database, FIRST_HOTELS + FIRST_GUESTS) if self.cdc else None
        return _Run(self.seed, self.start_ms, changes).records(limit)


def counts_of_changes(limit: int, seed: int = 1) -> dict[str, dict[str, int]]:
    """How many events of each operation, and tombstones, each topic of change events gets."""
    if limit % HUNDRED:
        return count_changes(Hotels(seed, cdc=True).records(limit), Hotels.keys)
    hundreds = limit // HUNDRED
    guests = {
        "r": FIRST_GUESTS,
        "c": hundreds * (CHANGES[Change.NEW_GUEST] + CHANGES[Change.VISITOR]),
        "u": hundreds * CHANGES[Change.GUEST],
        "d": hundreds * LEAVING,
        "tombstones": hundreds * LEAVING,
    }
    hotels = {
        "r": FIRST_HOTELS,
        "c": hundreds * MISTAKEN,
        "u": hundreds * CHANGES[Change.HOTEL],
        "d": hundreds * MISTAKEN,
        "tombstones": hundreds * MISTAKEN,
    }
    return {"guests": guests, "hotels": hotels}


class _Run:
    """One telling of the story, from its beginning."""

    def __init__(self, seed: int, start_ms: int, changes: HotelChanges | None) -> None:
        self._changes = changes
        self._random = Random(seed)  # noqa: S311  it is to be foreseeable
        self._seed = seed
        self._first_id = seed * BOOKINGS_PER_SEED
        self._now = start_ms
        self._guests: list[dict[str, Any]] = []
        self._hotels: list[dict[str, Any]] = []
        self._registered = 0
        self._clicks = 0
        # Records on their way: when they arrive, a number that tells equals apart, record, row before.
        self._coming: list[tuple[int, int, Record, dict[str, Any] | None]] = []
        self._sent = 0

    def records(self, limit: int | None) -> Iterator[Record]:
        for _ in range(FIRST_HOTELS):
            self._hotels.append(self._new_hotel())
            self._tell("hotels", "hotel_id", self._hotels[-1], self._now)
        for _ in range(FIRST_GUESTS):
            self._new_guest()
        number = 0
        while limit is None or number < limit:
            place = number % HUNDRED
            if place == 0:
                fates = shuffled(self._random, FATES, Fate.SILENCE)
                changes = shuffled(self._random, CHANGES, Change.NOTHING)
                if self._changes is not None:
                    self._changes.begin_hundred()
            number += 1
            self._now += MINUTE_MS + int(self._random.random() * LONGEST_GAP_MS)
            self._change(changes[place])
            self._enter_by_mistake(place)
            self._book(self._first_id + number, fates[place])
            # What comes from here on arrives later than this.
            yield from self._arrived(self._now)
        yield from self._arrived(None)

    # -- what happens

    def _change(self, change: Change) -> None:
        match change:
            case Change.NEW_GUEST:
                self._new_guest()
            case Change.GUEST:
                index = int(self._random.random() * len(self._guests))
                tier = pick(self._random, TIERS)
                guest = self._guests[index]
                self._guests[index] = guest | {"tier": tier, "updated_at": iso_text(self._now)}
                self._tell("guests", "mail", self._guests[index], self._now, guest)
            case Change.HOTEL:
                index = int(self._random.random() * len(self._hotels))
                before = self._hotels[index]
                free = int(self._random.random() * before["rooms"])
                category = pick(self._random, CATEGORIES)
                self._hotels[index] = before | {
                    "free_rooms": free,
                    "category": category,
                    "updated_at": iso_text(self._now),
                }
                self._tell("hotels", "hotel_id", self._hotels[index], self._now, before)
            case Change.VISITOR:
                # A guest who is there for this alone books never.
                visitor = self._guest()
                self._tell("guests", "mail", visitor, self._now)
                for _ in range(1 + int(self._random.random() * 4)):
                    later = self._now + int(self._random.random() * HOUR_MS)
                    self._click(
                        visitor, pick(self._random, self._hotels), pick(self._random, ACTIONS[:3]), later
                    )
                if self._changes is not None and (left := self._changes.leaving_at(self._now)) is not None:
                    self._delete("guests", visitor["mail"], visitor, left)

    def _enter_by_mistake(self, place: int) -> None:
        if self._changes is None or (found := self._changes.mistaken_hotel(place, self._now)) is None:
            return
        hotel, until = found
        self._tell("hotels", "hotel_id", hotel, self._now)
        self._delete("hotels", hotel["hotel_id"], hotel, until)

    def _book(self, booking_id: int, fate: Fate) -> None:
        guest, hotel = pick(self._random, self._guests), pick(self._random, self._hotels)
        for _ in range(int(self._random.random() * 3)):
            before = self._now - int(self._random.random() * MINUTE_MS)
            self._click(guest, hotel, pick(self._random, ACTIONS[:3]), before)
        self._click(guest, hotel, ACTIONS[3], self._now)
        check_in = (self._now // DAY_MS + 1 + int(self._random.random() * 60)) * DAY_MS
        nights = 1 + int(self._random.random() ** 2 * 9)
        heads = 1 + int(self._random.random() * 4)
        booking = {
            "booking_id": booking_id,
            "guest_mail": guest["mail"],
            "hotel_id": hotel["hotel_id"],
            "check_in": check_in,
            "check_out": check_in + nights * DAY_MS,
            "guests": heads,
            "price": money(nights * heads * (3_000 + int(self._random.random() * 9_000))),
            "booked_at": self._now,
        }
        self._tell("bookings", "booking_id", booking, self._now)
        if fate is Fate.TWICE:
            self._tell("bookings", "booking_id", booking, self._now)
        if fate in (Fate.REVIEW, Fate.REVIEW_TWICE):
            self._review(booking, 1)
        if fate is Fate.REVIEW_TWICE:
            self._review(booking, 2)

    def _review(self, booking: dict[str, Any], number: int) -> None:
        """Within ten days of the booking; the second of a stay comes after the first."""
        days = number - 1 + self._random.random() * number
        written = self._now + int((days + 0.01) * 5 * DAY_MS)
        review = {
            "review_id": f"r{booking['booking_id']}-{number}",
            "booking_id": booking["booking_id"],
            "hotel_id": booking["hotel_id"],
            "stars": 1 + int(self._random.random() * 5),
            "words": pick(self._random, WORDS) if self._random.random() < 0.7 else None,
            "written_at": written,
        }
        self._tell("reviews", "booking_id", review, written)

    def _click(self, guest: dict[str, Any], hotel: dict[str, Any], action: str, at: int) -> None:
        self._clicks += 1
        click = {
            "click_id": f"k{self._seed}-{self._clicks:08}",
            "guest_mail": guest["mail"],
            "hotel_id": None if action == ACTIONS[0] else hotel["hotel_id"],
            "action": action,
            "clicked_at": at,
        }
        self._tell("clicks", "guest_mail", click, at)

    # -- who there is

    def _new_guest(self) -> None:
        guest = self._guest()
        self._guests.append(guest)
        self._tell("guests", "mail", guest, self._now)

    def _guest(self) -> dict[str, Any]:
        self._registered += 1
        given, family = pick(self._random, GIVEN_NAMES), pick(self._random, FAMILY_NAMES)
        guest_id = f"g{self._seed}-{self._registered:06}"
        return {
            "mail": f"{guest_id}@mail.example",
            "guest_id": guest_id,
            "given_name": given,
            "family_name": family,
            "born_on": int(self._now // DAY_MS - (20 + self._random.random() * 55) * 365),
            "tier": TIERS[0],
            "created_at": iso_text(self._now),
            "updated_at": iso_text(self._now),
        }

    def _new_hotel(self) -> dict[str, Any]:
        number = len(self._hotels)
        town, country = pick(self._random, TOWNS)
        rooms = 4 + int(self._random.random() * 60)
        return {
            "hotel_id": f"h{self._seed}-{number:04}",
            "name": f"{QUALITIES[number % len(QUALITIES)]} House {town}",
            "category": CATEGORIES[number % len(CATEGORIES)],
            "town": town,
            "country": country,
            "rooms": rooms,
            "free_rooms": rooms,
            "created_at": iso_text(self._now),
            "updated_at": iso_text(self._now),
        }

    # -- how it is told

    def _tell(
        self, topic: str, key: str, value: dict[str, Any], at: int, before: dict[str, Any] | None = None
    ) -> None:
        """Dimensions are told at once: what refers to them comes after them."""
        late = 0 if topic in ("guests", "hotels") else int(self._random.random() * ARRIVES_MS)
        self._sent += 1
        record = Record(topic, str(value[key]).encode(), value, at + late)
        heapq.heappush(self._coming, (at + late, self._sent, record, before))

    def _delete(self, topic: str, key: str, row: dict[str, Any], at: int) -> None:
        self._sent += 1
        heapq.heappush(self._coming, (at, self._sent, Record(topic, key.encode(), TOMBSTONE, at), row))

    def _arrived(self, until: int | None) -> Iterator[Record]:
        while self._coming and (until is None or self._coming[0][0] < until - MINUTE_MS):
            _, _, record, before = heapq.heappop(self._coming)
            if self._changes is not None and record.topic in Hotels.keys:
                yield from self._changes.events(record, before)
            else:
                yield record
