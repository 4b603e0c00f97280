"""The scenario `orders`: an outfitter on the water sells to customers, who pay, mostly once and in time.

Everything follows from the seed, the clock included: it begins at the start and moves on with each order.
"""

import heapq
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from enum import Enum, auto
from random import Random
from typing import Any, ClassVar

from headgate.datagen.debezium import count_changes
from headgate.datagen.orders_changes import OrderChanges, change_counts
from headgate.datagen.orders_schemas import CHANNELS, EVOLUTIONS, METHODS, SCHEMAS
from headgate.datagen.scenario import Record
from headgate.datagen.seeded import Seeded
from headgate.datagen.shop import HUNDRED, Customer, Shop, money, shuffled
from headgate.datagen.times import DAY_MS, HOUR_MS, MINUTE_MS
from headgate.datagen.words import CAMPAIGNS, NOTES

LONGEST_GAP_MS = 800
ORDERS_PER_SEED = 1_000_000_000  # so that orders of two seeds never have the same id

FIRST_PRODUCTS = 50
FIRST_CUSTOMERS = 100


class Fate(Enum):
    """What becomes of an order's payment."""

    IN_TIME = auto()
    NEVER = auto()
    LATE = auto()  # more than 96 hours after the order
    TWICE = auto()  # the same record again, byte for byte
    TWICE_LATER = auto()  # again, with a later time
    TWICE_EARLIER = auto()  # again, with an earlier time: time order contradicts offset order


class Change(Enum):
    """What else happens just before an order."""

    NOTHING = auto()
    NEW_CUSTOMER = auto()
    CUSTOMER = auto()
    PRODUCT = auto()


# How many of each there are in every hundred orders; the seed says at which places.
FATES = {Fate.NEVER: 3, Fate.LATE: 2, Fate.TWICE: 3, Fate.TWICE_LATER: 1, Fate.TWICE_EARLIER: 1}
CHANGES = {Change.NEW_CUSTOMER: 3, Change.CUSTOMER: 2, Change.PRODUCT: 3}

# How a payment's time moves when it comes again.
AGAIN = {Fate.TWICE: 0, Fate.TWICE_LATER: 1, Fate.TWICE_EARLIER: -1}

FEE_EUROS_PER_CENT = 0.000140625
LINES = (1, 1, 1, 1, 2, 2, 3, 4)
QUANTITIES = (1, 1, 1, 1, 1, 2, 2, 3, 4, 6)


class Orders(Seeded):
    """The topics `products`, `customers`, `orders` and `payments`. The limit counts orders."""

    name = "orders"
    counted = "orders"
    schemas = SCHEMAS
    database = "shop"
    keys: ClassVar[Mapping[str, str]] = {"orders": "order_id"}
    happenings = frozenset({"payments"})
    evolutions = EVOLUTIONS

    def _tell(self, limit: int | None) -> Iterator[Record]:
        if not self.cdc:
            return _Run(self.seed, self.start_ms).records(limit)
        changes = OrderChanges(self.seed, self.database)
        return changes.events(_Run(self.seed, self.start_ms, changes.unpaid.add).records(limit))


def counts(limit: int, seed: int = 1) -> dict[str, int]:
    """How many records each topic gets: by formula for whole hundreds of orders, else by making them."""
    if limit % HUNDRED == 0:
        hundreds = limit // HUNDRED
        again = sum(FATES[fate] for fate in AGAIN)
        return {
            "products": FIRST_PRODUCTS + hundreds * CHANGES[Change.PRODUCT],
            "customers": FIRST_CUSTOMERS
            + hundreds * (CHANGES[Change.NEW_CUSTOMER] + CHANGES[Change.CUSTOMER]),
            "orders": limit,
            "payments": hundreds * (HUNDRED - FATES[Fate.NEVER] + again),
        }
    found = Counter(record.topic for record in Orders(seed).records(limit))
    return {topic: found[topic] for topic in ("products", "customers", "orders", "payments")}


def counts_of_changes(limit: int, seed: int = 1) -> dict[str, dict[str, int]]:
    """How many events of each operation, and tombstones, each topic of change events gets."""
    if limit % HUNDRED == 0:
        return {"orders": change_counts(limit)}
    return count_changes(Orders(seed, cdc=True).records(limit), Orders.keys)


class _Run:
    """One telling of the story, from its beginning."""

    def __init__(
        self, seed: int, start_ms: int, on_unpaid: Callable[[bytes], None] = lambda key: None
    ) -> None:
        """`on_unpaid` is told the key of each order that nobody will pay, before the order comes."""
        self._on_unpaid = on_unpaid
        self._random = Random(seed)  # noqa: S311  it is to be foreseeable
        self._shop = Shop(self._random, seed)
        self._first_id = seed * ORDERS_PER_SEED
        self._now = start_ms
        # Payments on their way: when they arrive, a number that tells equals apart, key and value.
        self._coming: list[tuple[int, int, bytes, dict[str, Any]]] = []
        self._sent = 0

    def records(self, limit: int | None) -> Iterator[Record]:
        yield from self._opening()
        coming, number = self._coming, 0
        while limit is None or number < limit:
            place = number % HUNDRED
            if place == 0:
                fates = shuffled(self._random, FATES, Fate.IN_TIME)
                changes = shuffled(self._random, CHANGES, Change.NOTHING)
            number += 1
            self._now += 1 + int(self._random.random() * LONGEST_GAP_MS)
            while coming and coming[0][0] <= self._now:
                arrival, _, key, payment = heapq.heappop(coming)
                yield Record("payments", key, payment, arrival)
            if changes[place] is not Change.NOTHING:
                yield self._change(changes[place])
            yield self._order(self._first_id + number, fates[place])
        while coming:
            arrival, _, key, payment = heapq.heappop(coming)
            yield Record("payments", key, payment, arrival)

    def _opening(self) -> Iterator[Record]:
        """There are goods and customers before the first order."""
        for _ in range(FIRST_PRODUCTS):
            product = self._shop.new_product(self._now)
            yield Record("products", product.sku.encode(), product.value, self._now)
        for _ in range(FIRST_CUSTOMERS):
            customer = self._shop.new_customer(self._now)
            yield Record("customers", customer.id.encode(), customer.value, self._now)

    def _change(self, change: Change) -> Record:
        if change is Change.PRODUCT:
            product = self._shop.change_product(self._now)
            return Record("products", product.sku.encode(), product.value, self._now)
        new = change is Change.NEW_CUSTOMER
        customer = self._shop.new_customer(self._now) if new else self._shop.change_customer(self._now)
        return Record("customers", customer.id.encode(), customer.value, self._now)

    def _order(self, order_id: int, fate: Fate) -> Record:
        random, shop, now = self._random.random, self._shop, self._now
        customer = shop.customers[int(random() * len(shop.customers))]
        # One draw for all small decisions; each takes bits of its own.
        bits = self._random.getrandbits(30)
        lines, cents = [], 0
        for _ in range(LINES[bits & 0x7]):
            product = shop.products[int(random() * FIRST_PRODUCTS)]
            quantity = QUANTITIES[int(random() * 10)]
            lines.append({"sku": product.sku, "quantity": quantity, "unit_price": product.price})
            cents += quantity * product.price_cents
        voucher = min(1_000, cents // 4) if bits >> 3 & 0x7 == 0 else None
        total = cents if voucher is None else cents - voucher
        value = {
            "order_id": order_id,
            "customer_id": customer.id,
            "placed_at": now,
            "channel": CHANNELS[bits >> 6 & 0x3],
            "lines": lines,
            "voucher": None if voucher is None else money(voucher),
            "total": money(total),
            "ship_to": customer.home,
            "deliver_by": now // DAY_MS + 2 + (bits >> 8 & 0x7) if bits >> 11 & 0x3 else None,
            "note": NOTES[(bits >> 13 & 0x1F) % len(NOTES)] if bits >> 18 & 0x7 == 0 else None,
            "express": bits >> 21 & 0x7 == 0,
            "tags": {"campaign": CAMPAIGNS[bits >> 24 & 0x3]} if bits >> 26 & 0x3 == 0 else {},
        }
        key = b"%d" % order_id
        if fate is Fate.NEVER:
            self._on_unpaid(key)
        else:
            self._pay(key, order_id, customer, total, fate)
        return Record("orders", key, value, now)

    def _pay(self, key: bytes, order_id: int, customer: Customer, cents: int, fate: Fate) -> None:
        random = self._random.random
        bits = self._random.getrandbits(30)
        if fate is Fate.LATE:
            delay = 97 * HOUR_MS + int(random() * 23 * HOUR_MS)
        else:
            delay = MINUTE_MS + int(random() ** 3 * HOUR_MS)
        paid_at = (self._now + delay) * 1000 + (bits & 0x1FF)
        method = METHODS[bits >> 9 & 0x3]
        payment = {
            "payment_id": f"{self._random.getrandbits(64):016x}",
            "order_id": order_id,
            "customer_id": customer.id,
            "amount": money(cents),
            "method": method,
            "card_ending": f"{bits % 10_000:04}" if method == "CARD" else None,
            "paid_at": paid_at,
            "confirmation": f"{bits:08X}",
            "fee": cents * FEE_EUROS_PER_CENT,
            # In 256ths: a 32-bit float holds those exactly.
            "risk": (bits >> 11 & 0xFF) / 256,
        }
        arrival = paid_at // 1000 + 200 + int(random() * 8_000)
        self._send(arrival, key, payment)
        if fate is not Fate.IN_TIME and fate is not Fate.LATE:
            arrival += 1_000 + int(random() * HOUR_MS / 2)
            shift = AGAIN[fate] * (1_000_000 + int(random() * 20_000_000))
            self._send(arrival, key, payment | {"paid_at": paid_at + shift})

    def _send(self, arrival: int, key: bytes, payment: dict[str, Any]) -> None:
        self._sent += 1
        heapq.heappush(self._coming, (arrival, self._sent, key, payment))
