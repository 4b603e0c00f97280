"""The scenario `sales`: what happens at the stalls of an outfitter, each event with all that is known of it.

Everything follows from the seed, the clock included. Product, order and customer are inside of each event,
with names, addresses and telephone numbers; events come late, and some of them twice.
"""

import heapq
from collections.abc import Iterator
from enum import Enum, auto
from random import Random
from typing import Any

from headgate.datagen.sales_schemas import EVOLUTIONS, SCHEMAS, STEPS
from headgate.datagen.scenario import Record
from headgate.datagen.seeded import Seeded
from headgate.datagen.shop import HUNDRED, Customer, Product, Shop, money, pick, shuffled
from headgate.datagen.times import HOUR_MS, MINUTE_MS

STALLS, PRODUCTS, CUSTOMERS = 8, 40, 80
LONGEST_GAP_MS = 2_000
# What is on time arrives so late at most.
ARRIVES_MS = 20_000
# What is late arrives so late at most, and later than what is on time.
LATE_MS = HOUR_MS
EVENTS_PER_SEED = 1_000_000_000


class Fate(Enum):
    """How an event comes."""

    ON_TIME = auto()
    LATE = auto()
    TWICE = auto()  # the same record again, byte for byte
    TWICE_LATE = auto()  # again, after up to an hour


# How many of each there are in every hundred events; the seed says at which places.
FATES = {Fate.LATE: 4, Fate.TWICE: 5, Fate.TWICE_LATE: 2}
# How many of a hundred events are of each step.
BUYING = {STEPS[1]: 20, STEPS[2]: 35, STEPS[3]: 5}


class Sales(Seeded):
    """The topic `sales`. The limit counts events, not those that come again."""

    name = "sales"
    counted = "sales"
    schemas = SCHEMAS
    happenings = frozenset({"sales"})
    evolutions = EVOLUTIONS

    def _tell(self, limit: int | None) -> Iterator[Record]:
        return _Run(self.seed, self.start_ms).records(limit)


class _Run:
    """One telling of the story, from its beginning."""

    def __init__(self, seed: int, start_ms: int) -> None:
        self._random = Random(seed)  # noqa: S311  it is to be foreseeable
        self._seed = seed
        self._shop = Shop(self._random, seed)
        self._now = start_ms
        for _ in range(PRODUCTS):
            self._shop.new_product(start_ms)
        for _ in range(CUSTOMERS):
            self._shop.new_customer(start_ms)
        # Records on their way: when they arrive, a number that tells equals apart, and the value.
        self._coming: list[tuple[int, int, dict[str, Any]]] = []
        self._sent = 0

    def records(self, limit: int | None) -> Iterator[Record]:
        number = 0
        while limit is None or number < limit:
            place = number % HUNDRED
            if place == 0:
                fates = shuffled(self._random, FATES, Fate.ON_TIME)
                steps = shuffled(self._random, BUYING, STEPS[0])
            number += 1
            self._now += 1 + int(self._random.random() * LONGEST_GAP_MS)
            self._happen(number, steps[place], fates[place])
            # What comes from here on arrives later than this.
            yield from self._arrived(self._now)
        yield from self._arrived(None)

    def _happen(self, number: int, step: str, fate: Fate) -> None:
        product = pick(self._random, self._shop.products)
        customer = pick(self._random, self._shop.customers)
        value = {
            "event_id": f"e{self._seed}-{number:09}",
            "step": step,
            "stand": f"stall-{1 + int(self._random.random() * STALLS)}",
            "happened_at": self._now,
            "product": {name: product.value[name] for name in ("sku", "title", "category", "unit_price")},
            "order": None if step == STEPS[0] else self._order(number, product),
            "customer": self._customer(customer),
        }
        on_time = self._now + int(self._random.random() * ARRIVES_MS)
        late = self._now + ARRIVES_MS + int(self._random.random() * (LATE_MS - ARRIVES_MS))
        self._send(late if fate is Fate.LATE else on_time, value)
        if fate is Fate.TWICE:
            self._send(on_time + int(self._random.random() * MINUTE_MS / 6), value)
        if fate is Fate.TWICE_LATE:
            self._send(late, value)

    def _order(self, number: int, product: Product) -> dict[str, Any]:
        quantity = 1 + int(self._random.random() ** 3 * 5)
        coupon = f"TIDE-{int(self._random.random() * 20):02}" if self._random.random() < 0.1 else None
        return {
            "order_id": self._seed * EVENTS_PER_SEED + number,
            "quantity": quantity,
            "total": money(quantity * product.price_cents),
            "coupon": coupon,
        }

    def _customer(self, customer: Customer) -> dict[str, Any]:
        known = customer.value
        # The same customer has the same number, whenever they come.
        digits = int(known["customer_id"].rpartition("-")[2]) * 7919 % 10_000_000
        return {
            "customer_id": known["customer_id"],
            "full_name": known["full_name"],
            "contact": {
                "email": known["email"],
                "phone": f"+31 6 {digits:07}" if digits % 3 else None,
            },
            "town": customer.home["town"],
            "country": customer.home["country"],
        }

    def _send(self, arrival: int, value: dict[str, Any]) -> None:
        self._sent += 1
        heapq.heappush(self._coming, (arrival, self._sent, value))

    def _arrived(self, until: int | None) -> Iterator[Record]:
        while self._coming and (until is None or self._coming[0][0] <= until):
            arrival, _, value = heapq.heappop(self._coming)
            yield Record("sales", value["event_id"].encode(), value, arrival)
