"""Hotels as a user tells them: guests and hotels as they were, a review that comes later, weeks, and who
clicked and did not book. What comes out is what plain Python computes from the seed."""

from collections import defaultdict
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from headgate.datagen import produce
from headgate.datagen.hotels import Hotels
from headgate.datagen.scenario import Record
from tests.e2e.test_delta import folder_of
from tests.e2e.test_sql import Some, script
from tests.support.delta import read_delta_duckdb
from tests.support.ledger import read_duckdb, read_pyiceberg
from tests.support.services import wait_for
from tests.support.stack import Stack

PREFIX = "inn."
DAY_MS = 86_400_000
WEEK_MS = 7 * DAY_MS
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

VERSIONS = """
SET 'client.statement-name' = 'guests-as-of';
SET 'sql.tables.scan.idle-timeout' = '10 minutes';

-- Guests as they were: a temporal join looks them up at the time of a booking.
CREATE TABLE `inn.guests-as-of` (
  PRIMARY KEY (`mail`) NOT ENFORCED,
  WATERMARK FOR `updated_at` AS `updated_at` - INTERVAL '30' SECOND
) DISTRIBUTED BY HASH(`mail`) INTO 1 BUCKETS
WITH ('changelog.mode' = 'upsert', 'kafka.cleanup-policy' = 'compact') AS
SELECT `mail`, `guest_id`, `given_name`, `tier`,
  TO_TIMESTAMP(`updated_at`, 'yyyy-MM-dd''T''HH:mm:ss.SSS''Z''') AS `updated_at`
FROM `inn.guests`;

SET 'client.statement-name' = 'hotels-as-of';
SET 'sql.tables.scan.idle-timeout' = '10 minutes';

CREATE TABLE `inn.hotels-as-of` (
  PRIMARY KEY (`hotel_id`) NOT ENFORCED,
  WATERMARK FOR `updated_at` AS `updated_at` - INTERVAL '30' SECOND
) DISTRIBUTED BY HASH(`hotel_id`) INTO 1 BUCKETS
WITH ('changelog.mode' = 'upsert', 'kafka.cleanup-policy' = 'compact') AS
SELECT `hotel_id`, `name`, `category`, `town`, `free_rooms`,
  TO_TIMESTAMP(`updated_at`, 'yyyy-MM-dd''T''HH:mm:ss.SSS''Z''') AS `updated_at`
FROM `inn.hotels`;

SET 'client.statement-name' = 'bookings-in-time';
SET 'sql.tables.scan.idle-timeout' = '10 minutes';

CREATE TABLE `inn.bookings-in-time` (
  WATERMARK FOR `event_time` AS `event_time` - INTERVAL '30' SECOND
) AS
SELECT `booking_id`, `guest_mail`, `hotel_id`, `check_in`, `guests`, `price`, `booked_at` AS `event_time`
FROM `inn.bookings`;
"""
TOLD = """
SET 'client.statement-name' = 'bookings-told';
SET 'sql.tables.scan.idle-timeout' = '10 minutes';

CREATE TABLE `inn.bookings-told` (
  PRIMARY KEY (`booking_id`) NOT ENFORCED,
  WATERMARK FOR `booked_at` AS `booked_at` - INTERVAL '30' SECOND
) WITH ('changelog.mode' = 'upsert', 'kafka.cleanup-policy' = 'compact') AS
SELECT
  b.`booking_id`,
  h.`hotel_id`,
  h.`name` AS `hotel_name`,
  h.`category` AS `hotel_category`,
  h.`free_rooms` AS `rooms_then`,
  b.`price` AS `amount`,
  b.`guests` AS `heads`,
  b.`event_time` AS `booked_at`,
  TO_TIMESTAMP_LTZ(b.`check_in`, 3) AS `check_in`,
  g.`mail` AS `guest_mail`,
  g.`tier` AS `tier_then`,
  r.`stars` AS `stars`,
  r.`written_at` AS `reviewed_at`
FROM `inn.bookings-in-time` b
  JOIN `inn.guests-as-of` FOR SYSTEM_TIME AS OF b.`event_time` AS g
    ON g.`mail` = b.`guest_mail`
  JOIN `inn.hotels-as-of` FOR SYSTEM_TIME AS OF b.`event_time` AS h
    ON h.`hotel_id` = b.`hotel_id`
  LEFT JOIN `inn.reviews` r
    ON r.`booking_id` = b.`booking_id`;
"""
WEEKS = """
SET 'client.statement-name' = 'hotel-weeks';

CREATE TABLE `inn.weeks` (
  PRIMARY KEY (window_start, window_end, hotel_id) NOT ENFORCED
) WITH ('changelog.mode' = 'upsert', 'kafka.cleanup-policy' = 'compact') AS
SELECT
  window_start,
  window_end,
  COALESCE(hotel_id, 'NO_HOTEL') AS hotel_id,
  COALESCE(hotel_name, 'NO_NAME') AS hotel_name,
  COUNT(*) AS bookings,
  SUM(heads) AS heads,
  SUM(amount) AS amount,
  CAST(AVG(stars) AS DECIMAL(10, 2)) AS mean_stars,
  SUM(CASE WHEN stars IS NOT NULL THEN 1 ELSE 0 END) AS reviews
FROM TABLE(TUMBLE(TABLE `inn.bookings-told`, DESCRIPTOR(booked_at), INTERVAL '7' DAY))
WHERE hotel_id IS NOT NULL
GROUP BY window_start, window_end, COALESCE(hotel_id, 'NO_HOTEL'), COALESCE(hotel_name, 'NO_NAME');
"""
VISITORS = """
ALTER TABLE `inn.clicks` MODIFY WATERMARK FOR clicked_at AS clicked_at - INTERVAL '30' SECOND;
SET 'client.statement-name' = 'visitors-lost';
SET 'sql.tables.scan.idle-timeout' = '10 minutes';
CREATE TABLE `inn.visitors-lost` AS
SELECT c.click_id, c.guest_mail, c.hotel_id, c.clicked_at
FROM `inn.clicks` c
WHERE c.action <> 'BOOK' AND NOT EXISTS (
  SELECT 1 FROM `inn.bookings-in-time` b
  WHERE b.guest_mail = c.guest_mail
    AND b.event_time BETWEEN c.clicked_at - INTERVAL '1' HOUR AND c.clicked_at + INTERVAL '1' DAY
);
"""


class Stay:
    """All records of a seed, and what is to come of them."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self._scenario = Hotels(11)
        self.records = list(self._scenario.records(300))

    def of(self, topic: str) -> list[dict[str, Any]]:
        return [record.value for record in self.records if record.topic == topic]

    def send(self, records: list[Record]) -> None:
        runtime = self._stack.runtime
        produce(Some(self._scenario, records), runtime.kafka, runtime.registry, prefix=PREFIX)

    def send_end(self) -> None:
        """Records long after all others, in each partition: event time passes what is there."""
        last = {record.topic: record for record in self.records}
        far = max(record.timestamp_ms for record in self.records) + 100 * DAY_MS
        said = (EPOCH + timedelta(milliseconds=far)).strftime("%Y-%m-%dT%H:%M:%S.000Z")
        ends = []
        for topic, template in last.items():
            for number in range(40):
                name = f"end {number}"
                changed: dict[str, dict[str, Any]] = {
                    "guests": {"mail": name, "updated_at": said},
                    "hotels": {"hotel_id": name, "updated_at": said},
                    "bookings": {"booking_id": -number - 1, "booked_at": far, "hotel_id": "nowhere"},
                    "reviews": {"booking_id": -number - 1},
                    "clicks": {"click_id": name, "guest_mail": name, "action": "BOOK", "clicked_at": far},
                }
                value = {**template.value, **changed[topic]}
                ends.append(Record(topic, name.encode(), value, far))
        self.send(ends)

    def told(self) -> dict[int, dict[str, Any]]:
        """By booking: guest and hotel as they were, and the last review that came."""
        found = {}
        for booking in self.of("bookings"):
            guest = self._at("guests", "mail", booking["guest_mail"], booking["booked_at"])
            hotel = self._at("hotels", "hotel_id", booking["hotel_id"], booking["booked_at"])
            reviews = [r for r in self.of("reviews") if r["booking_id"] == booking["booking_id"]]
            found[booking["booking_id"]] = {
                "booking_id": booking["booking_id"],
                "hotel_id": hotel["hotel_id"],
                "hotel_name": hotel["name"],
                "hotel_category": hotel["category"],
                "rooms_then": hotel["free_rooms"],
                "amount": booking["price"],
                "heads": booking["guests"],
                "booked_at": moment(booking["booked_at"]),
                "check_in": moment(booking["check_in"]),
                "guest_mail": guest["mail"],
                "tier_then": guest["tier"],
                "stars": reviews[-1]["stars"] if reviews else None,
                "reviewed_at": moment(reviews[-1]["written_at"]) if reviews else None,
            }
        return found

    def _at(self, topic: str, key: str, value: str, time_ms: int) -> dict[str, Any]:
        versions = [
            (v["updated_at"], place, v)
            for place, v in enumerate(self.of(topic))
            if v[key] == value and datetime.fromisoformat(v["updated_at"]) <= moment(time_ms)
        ]
        return max(versions, key=lambda one: one[:2])[2]

    def weeks(self) -> dict[tuple[datetime, str], dict[str, Any]]:
        """By week and hotel, each booking once."""
        groups: dict[tuple[int, str], list[dict[str, Any]]] = defaultdict(list)
        for row in self.told().values():
            time_ms = int(row["booked_at"].timestamp() * 1000)
            groups[time_ms // WEEK_MS * WEEK_MS, row["hotel_id"]].append(row)
        found = {}
        for (start, hotel), rows in groups.items():
            stars = [row["stars"] for row in rows if row["stars"] is not None]
            found[moment(start).replace(tzinfo=None), hotel] = {
                "window_start": moment(start).replace(tzinfo=None),
                "window_end": moment(start + WEEK_MS).replace(tzinfo=None),
                "hotel_id": hotel,
                "hotel_name": rows[0]["hotel_name"],
                "bookings": len(rows),
                "heads": sum(row["heads"] for row in rows),
                "amount": sum((row["amount"] for row in rows), Decimal(0)),
                "mean_stars": round(Decimal(sum(stars)) / len(stars) + Decimal("1e-9"), 2) if stars else None,
                "reviews": len(stars),
            }
        return found

    def lost(self) -> set[str]:
        """The clicks of those who did not book within a day."""
        booked = [(b["guest_mail"], b["booked_at"]) for b in self.of("bookings")]
        return {
            c["click_id"]
            for c in self.of("clicks")
            if c["action"] != "BOOK"
            and not any(
                mail == c["guest_mail"] and c["clicked_at"] - 3_600_000 <= at <= c["clicked_at"] + DAY_MS
                for mail, at in booked
            )
        }


def moment(time_ms: int) -> datetime:
    return EPOCH + timedelta(milliseconds=time_ms)


@pytest.fixture(scope="module")
def stay(stack: Stack) -> Stay:
    return Stay(stack)


def plain(row: dict[str, Any], zone: bool) -> dict[str, Any]:
    """Times as UTC, whatever the reader's zone; `zone`: whether they are moments."""
    found = {}
    for name, value in row.items():
        if isinstance(value, datetime) and value.tzinfo is not None:
            value = value.astimezone(UTC)
            found[name] = value if zone else value.replace(tzinfo=None)
        else:
            found[name] = value
    return found


def check(
    stack: Stack, topic: str, key: tuple[str, ...], wanted: dict[Any, dict[str, Any]], zone: bool
) -> None:
    """The table in both formats, row by row. Rows of the end are left out."""
    iceberg = stack.runtime.iceberg
    for read in (
        partial(read_duckdb, iceberg, "local", topic),
        partial(read_pyiceberg, iceberg, "local", topic),
        partial(read_delta_duckdb, folder_of(stack, topic)),
    ):
        rows: dict[Any, dict[str, Any]] = {}
        for row in read():
            found = {name: row[name] for name in next(iter(wanted.values()))}
            made = plain(found, zone)
            name = made[key[0]] if len(key) == 1 else tuple(made[part] for part in key)
            assert name not in rows, f"{name} is there twice"
            rows[name] = made
        assert rows.keys() == wanted.keys()
        assert rows == wanted


def is_topic(stack: Stack, topic: str) -> bool:
    return topic in {found["name"] for found in stack.json("topic", "list")}


def caught_up(stack: Stack, topic: str, wanted: int, is_right: Any) -> None:
    """Until the table has what is to come; what is wrong then is told by the check."""

    def done() -> bool:
        stack.run("table", "sync", topic, "--timeout", "120s")
        rows = list(read_duckdb(stack.runtime.iceberg, "local", topic))
        return len(rows) == wanted and is_right(rows)

    wait_for(f"{topic} to be whole", done, timeout=600)


def test_bookings_as_they_were_and_as_they_are_reviewed(stack: Stack, stay: Stay, tmp_path: Path) -> None:
    half = len(stay.records) // 2
    stay.send(stay.records[:half])
    assert "statement bookings-in-time is created" in script(stack, tmp_path, VERSIONS)
    assert "statement bookings-told is created" in script(stack, tmp_path, TOLD)
    script(stack, tmp_path, WEEKS)
    script(stack, tmp_path, VISITORS)
    for topic in ("inn.bookings-told", "inn.weeks"):
        wait_for(f"topic {topic}", partial(is_topic, stack, topic))
        stack.run("table", "enable", topic, "--formats", "iceberg,delta")
    stay.send(stay.records[half:])
    stay.send_end()
    told, weeks = stay.told(), stay.weeks()
    reviewed = sum(row["stars"] is not None for row in told.values())
    caught_up(
        stack,
        "inn.bookings-told",
        len(told),
        lambda rows: sum(row["stars"] is not None for row in rows) == reviewed,
    )
    check(stack, "inn.bookings-told", ("booking_id",), told, True)
    counted = sum(week["bookings"] for week in weeks.values())
    caught_up(
        stack,
        "inn.weeks",
        len(weeks),
        lambda rows: (
            sum(row["bookings"] for row in rows) == counted
            and sum(row["reviews"] for row in rows) == reviewed
        ),
    )
    check(stack, "inn.weeks", ("window_start", "hotel_id"), weeks, False)


def test_visitors_who_did_not_book(stack: Stack, stay: Stay) -> None:
    wanted = stay.lost()
    assert wanted
    wait_for(
        "visitors", lambda: (stack.json("statement", "show", "visitors-lost")["rows_out"] or 0) >= len(wanted)
    )
    stack.run("table", "enable", "inn.visitors-lost")
    stack.run("table", "sync", "inn.visitors-lost", "--timeout", "120s")
    rows = list(read_duckdb(stack.runtime.iceberg, "local", "inn.visitors-lost"))
    assert sorted(row["click_id"] for row in rows) == sorted(wanted)


def test_nothing_was_late_and_internal_topics_are_not_seen(stack: Stack, stay: Stay) -> None:
    for statement in stack.json("statement", "list"):
        if statement["name"] in ("bookings-told", "hotel-weeks", "visitors-lost"):
            assert stack.json("statement", "show", statement["name"])["late_rows"] == 0
    assert not [topic for topic in stack.json("topic", "list") if "stage" in topic["name"]]
    names = [row[0] for row in stack.json("sql", "-e", "SHOW TABLES")[0]["rows"]]
    assert not [name for name in names if "stage" in name]


def test_they_end(stack: Stack, stay: Stay) -> None:
    names = {
        "visitors-lost",
        "hotel-weeks",
        "bookings-told",
        "bookings-in-time",
        "hotels-as-of",
        "guests-as-of",
    }
    for name in sorted(names):
        stack.run("sql", "-e", f"DROP STATEMENT '{name}'")
    wait_for(
        "them to be gone", lambda: not names & {found["name"] for found in stack.json("statement", "list")}
    )
    assert not [topic for topic in stack.json("topic", "list", "--internal") if "stage" in topic["name"]]
