"""Scenarios: made-up data that looks like a user's, the same for the same seed."""

from headgate.datagen.hotels import Hotels
from headgate.datagen.orders import Orders
from headgate.datagen.produce import produce
from headgate.datagen.sales import Sales
from headgate.datagen.scenario import Record, Scenario
from headgate.datagen.spec import SCENARIOS, GeneratorSpec

__all__ = ["SCENARIOS", "GeneratorSpec", "Hotels", "Orders", "Record", "Sales", "Scenario", "produce"]
