"""Customers and products, as the scenario `orders` knows them at each moment."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from random import Random
from typing import Any, TypeVar

from headgate.datagen.orders_schemas import CATEGORIES, TIERS
from headgate.datagen.times import DAY_MS
from headgate.datagen.words import (
    COLOURS,
    FAMILY_NAMES,
    GIVEN_NAMES,
    GOODS,
    QUALITIES,
    STREETS,
    TOWNS,
    WITHOUT_POSTCODE,
)

HUNDRED = 100
# Who registered before these many others orders no more: an endless run must not grow for ever.
REMEMBERED_CUSTOMERS = 10_000
# People are 18 to 80 years old when they register, give or take the leap days.
YOUNGEST_DAYS, OLDEST_DAYS = 18 * 365, 80 * 365

T = TypeVar("T")


def pick(random: Random, choices: Sequence[T]) -> T:
    """`Random.choice` may draw differently in another Python version; `Random.random` never does."""
    return choices[int(random.random() * len(choices))]


def shuffled(random: Random, rare: Mapping[T, int], common: T) -> list[T]:
    """A hundred of them, the common one where the rare ones leave room."""
    found = [common] * HUNDRED
    found[: sum(rare.values())] = [kind for kind, count in rare.items() for _ in range(count)]
    for i in range(HUNDRED - 1, 0, -1):
        j = int(random.random() * (i + 1))
        found[i], found[j] = found[j], found[i]
    return found


@lru_cache(maxsize=1 << 16)
def money(cents: int) -> Decimal:
    return Decimal(cents).scaleb(-2)


@dataclass(frozen=True, slots=True)
class Customer:
    id: str
    home: dict[str, Any]
    value: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Product:
    sku: str
    price_cents: int
    price: Decimal
    value: dict[str, Any]


class Shop:
    """Values handed out are never changed afterwards: a change makes a new value."""

    def __init__(self, random: Random, seed: int) -> None:
        self._random = random
        self._seed = seed
        self._registered = 0
        self.customers: list[Customer] = []
        self.products: list[Product] = []

    def new_customer(self, now_ms: int) -> Customer:
        self._registered += 1
        given, family = pick(self._random, GIVEN_NAMES), pick(self._random, FAMILY_NAMES)
        customer_id = f"c{self._seed}-{self._registered:06}"
        value: dict[str, Any] = {
            "customer_id": customer_id,
            "full_name": f"{given} {family}",
            "email": f"{customer_id}@mail.example",
            "tier": TIERS[0],
            "born_on": self._birthday(now_ms),
            "home": self._address(),
            "newsletter": self._random.random() < 0.4,
            "points": 0,
            "labels": {"source": pick(self._random, ("fair", "friend", "search"))},
            "registered_at": now_ms,
            "updated_at": now_ms * 1000 + int(self._random.random() * 1000),
        }
        customer = Customer(customer_id, value["home"], value)
        if len(self.customers) < REMEMBERED_CUSTOMERS:
            self.customers.append(customer)
        else:
            self.customers[self._registered % REMEMBERED_CUSTOMERS] = customer
        return customer

    def change_customer(self, now_ms: int) -> Customer:
        """Collects points, which may lift the tier; one in four moves house."""
        index = int(self._random.random() * len(self.customers))
        before = self.customers[index]
        points = before.value["points"] + 10 + int(self._random.random() * 490)
        moves = self._random.random() < 0.25
        value = before.value | {
            "points": points,
            "tier": TIERS[min(points // 500, len(TIERS) - 1)],
            "home": self._address() if moves else before.home,
            "labels": before.value["labels"] | ({"moved": "yes"} if moves else {}),
            "updated_at": now_ms * 1000 + int(self._random.random() * 1000),
        }
        self.customers[index] = Customer(before.id, value["home"], value)
        return self.customers[index]

    def new_product(self, now_ms: int) -> Product:
        number = len(self.products)
        kind = number % len(CATEGORIES)
        goods = GOODS[kind]
        quality = QUALITIES[number // len(CATEGORIES) % len(QUALITIES)]
        cents = 199 + int(self._random.random() ** 3 * 90_000)
        packed = self._random.random() < 0.6
        value: dict[str, Any] = {
            "sku": f"{CATEGORIES[kind][:3]}-{self._seed}-{number:03}",
            "title": f"{quality} {pick(self._random, goods)}",
            "category": CATEGORIES[kind],
            "unit_price": money(cents),
            "weight_kg": round(self._random.random() * 20, 3),
            "in_stock": int(self._random.random() * 5_000),
            "colours": sorted({pick(self._random, COLOURS) for _ in range(number % 4)}),
            "packaging": self._packaging() if packed else None,
            "discontinued": False,
            "updated_at": now_ms,
        }
        self.products.append(Product(value["sku"], cents, value["unit_price"], value))
        return self.products[-1]

    def change_product(self, now_ms: int) -> Product:
        """Another price, up to a tenth up or down, and another stock."""
        index = int(self._random.random() * len(self.products))
        before = self.products[index]
        cents = max(99, before.price_cents + int((self._random.random() - 0.5) * before.price_cents / 5))
        value = before.value | {
            "unit_price": money(cents),
            "in_stock": int(self._random.random() * 5_000),
            "discontinued": self._random.random() < 0.02,
            "updated_at": now_ms,
        }
        self.products[index] = Product(before.sku, cents, value["unit_price"], value)
        return self.products[index]

    def _birthday(self, now_ms: int) -> int | None:
        """In days since 1970; one in ten does not tell."""
        if self._random.random() < 0.1:
            return None
        age = YOUNGEST_DAYS + int(self._random.random() * (OLDEST_DAYS - YOUNGEST_DAYS))
        return now_ms // DAY_MS - age

    def _address(self) -> dict[str, Any]:
        town, country = pick(self._random, TOWNS)
        postcode = f"{int(self._random.random() * 90_000) + 10_000}"
        return {
            "street": pick(self._random, STREETS),
            "house_number": 1 + int(self._random.random() * 200),
            "town": town,
            "postcode": None if country in WITHOUT_POSTCODE else postcode,
            "country": country,
        }

    def _packaging(self) -> dict[str, Any]:
        return {
            "length_mm": 100 + int(self._random.random() * 4_900),
            "fragile": self._random.random() < 0.3,
        }
