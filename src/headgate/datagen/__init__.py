"""Scenarios: made-up data that looks like a user's, the same for the same seed."""

from collections.abc import Mapping

from headgate.datagen.hotels import Hotels
from headgate.datagen.orders import Orders
from headgate.datagen.produce import produce
from headgate.datagen.sales import Sales
from headgate.datagen.scenario import Record, Scenario
from headgate.datagen.seeded import Seeded

SCENARIOS: Mapping[str, type[Seeded]] = {kind.name: kind for kind in (Orders, Hotels, Sales)}

__all__ = ["SCENARIOS", "Hotels", "Orders", "Record", "Sales", "Scenario", "produce"]
