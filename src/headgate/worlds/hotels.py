"""The hotels world: bookings with guest and hotel as they were, weeks of hotels, and lost visitors."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from headgate.datagen.scenario import Record
from headgate.worlds.world import DAY_MS, EPOCH, HOUR_MS, Row, Rows, World, last_of, moment, values_of

WEEK_MS = 7 * DAY_MS
# What a booking brings on average where a lost visitor is worth a letter.
HIGH_VALUE = Decimal(700)


def products(records: Sequence[Record]) -> Mapping[str, Rows]:
    guests, hotels = Versions(records, "guests", "mail"), Versions(records, "hotels", "hotel_id")
    bookings = _detailed(records, guests, hotels)
    lost = _lost(records, guests, hotels)
    return {
        "detailed_bookings": bookings,
        "hotel_weeks": _weeks(bookings),
        "lost_visitors": lost,
        "high_value_visitors": _high_value(lost, bookings),
    }


class Versions:
    """What was valid when: the rows of a dimension by key and time."""

    def __init__(self, records: Sequence[Record], topic: str, key: str) -> None:
        self._rows: dict[str, list[tuple[int, int, Row]]] = defaultdict(list)
        for number, row in enumerate(values_of(records, topic)):
            self._rows[row[key]].append((_time_ms(row["updated_at"]), number, row))
        for versions in self._rows.values():
            versions.sort(key=lambda version: version[:2])

    def at(self, key: str, time_ms: int) -> Row | None:
        versions = self._rows.get(key, [])
        place = bisect_right(versions, time_ms, key=lambda version: version[0])
        return versions[place - 1][2] if place else None


def _time_ms(text: str) -> int:
    return (datetime.fromisoformat(text) - EPOCH) // timedelta(milliseconds=1)


def _detailed(records: Sequence[Record], guests: Versions, hotels: Versions) -> Rows:
    reviews = last_of(values_of(records, "reviews"), "booking_id")
    found = []
    for booking in last_of(values_of(records, "bookings"), "booking_id").values():
        guest = guests.at(booking["guest_mail"], booking["booked_at"])
        hotel = hotels.at(booking["hotel_id"], booking["booked_at"])
        if guest is None or hotel is None:
            continue
        review = reviews.get(booking["booking_id"], {"stars": None, "words": None, "written_at": None})
        written = review["written_at"]
        found.append(
            {
                "booking_id": booking["booking_id"],
                "booked_at": moment(booking["booked_at"]),
                "check_in": moment(booking["check_in"]),
                "check_out": moment(booking["check_out"]),
                "heads": booking["guests"],
                "price": booking["price"],
                "guest_mail": guest["mail"],
                "given_name": guest["given_name"],
                "tier_then": guest["tier"],
                "hotel_id": hotel["hotel_id"],
                "hotel_name": hotel["name"],
                "category_then": hotel["category"],
                "town": hotel["town"],
                "free_rooms_then": hotel["free_rooms"],
                "stars": review["stars"],
                "words": review["words"],
                "reviewed_at": None if written is None else moment(written),
            }
        )
    return found


def _weeks(bookings: Rows) -> Rows:
    groups: dict[tuple[int, str, str], Rows] = defaultdict(list)
    for row in bookings:
        week = (row["booked_at"] - EPOCH) // timedelta(milliseconds=WEEK_MS)
        groups[week, row["hotel_id"], row["hotel_name"]].append(row)
    return [_week(*key, rows) for key, rows in groups.items()]


def _week(number: int, hotel_id: str, hotel_name: str, rows: Rows) -> Row:
    stars = [row["stars"] for row in rows if row["stars"] is not None]
    # Windows have the times of a clock that shows UTC.
    start = moment(number * WEEK_MS).replace(tzinfo=None)
    return {
        "window_start": start,
        "window_end": start + timedelta(milliseconds=WEEK_MS),
        "hotel_id": hotel_id,
        "hotel_name": hotel_name,
        "bookings": len(rows),
        "heads": sum(row["heads"] for row in rows),
        "taken": _sum(row["price"] for row in rows),
        "mean_stars": rounded(Decimal(repr(sum(stars) / len(stars)))) if stars else None,
        "reviews": len(stars),
    }


def _lost(records: Sequence[Record], guests: Versions, hotels: Versions) -> Rows:
    booked: dict[str, list[int]] = defaultdict(list)
    for booking in values_of(records, "bookings"):
        booked[booking["guest_mail"]].append(booking["booked_at"])
    found = []
    for click in values_of(records, "clicks"):
        at = click["clicked_at"]
        if click["action"] == "BOOK" or click["hotel_id"] is None:
            continue
        if any(at - HOUR_MS <= time <= at + DAY_MS for time in booked[click["guest_mail"]]):
            continue
        guest, hotel = guests.at(click["guest_mail"], at), hotels.at(click["hotel_id"], at)
        if guest is not None and hotel is not None:
            found.append(_visitor(click, guest, hotel))
    return found


def _visitor(click: Row, guest: Row, hotel: Row) -> Row:
    return {
        "click_id": click["click_id"],
        "clicked_at": moment(click["clicked_at"]),
        "action": click["action"],
        "guest_mail": guest["mail"],
        "guest_id": guest["guest_id"],
        "given_name": guest["given_name"],
        "family_name": guest["family_name"],
        "born_on": EPOCH.date() + timedelta(days=guest["born_on"]),
        "tier": guest["tier"],
        "hotel_id": hotel["hotel_id"],
        "hotel_name": hotel["name"],
        "category": hotel["category"],
        "town": hotel["town"],
        "free_rooms": hotel["free_rooms"],
    }


def _high_value(lost: Rows, bookings: Rows) -> Rows:
    prices: dict[str, list[Decimal]] = defaultdict(list)
    for row in bookings:
        prices[row["hotel_id"]].append(row["price"])
    means = {hotel: rounded(rounded(_sum(of) / len(of), 6)) for hotel, of in prices.items()}
    names = ("click_id", "clicked_at", "guest_mail", "given_name", "tier", "hotel_id", "hotel_name")
    return [
        {name: row[name] for name in names}
        | {"bookings": len(prices[row["hotel_id"]]), "mean_price": means[row["hotel_id"]]}
        for row in lost
        if means.get(row["hotel_id"], Decimal(0)) >= HIGH_VALUE
    ]


def rounded(value: Decimal, digits: int = 2) -> Decimal:
    return value.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)


def _sum(values: Iterable[Any]) -> Decimal:
    return sum(values, Decimal(0))


HOTELS = World(
    name="hotels",
    limit=1_000,
    seed=7,
    totals={
        "bookings": "price",
        "clicks": None,
        "detailed_bookings": "price",
        "hotel_weeks": "taken",
        "lost_visitors": "free_rooms",
        "high_value_visitors": "mean_price",
    },
    products=products,
    cdc=True,
    finishes=(
        "guest-versions",
        "hotel-versions",
        "detailed-bookings",
        "lost-visitors",
    ),
)
