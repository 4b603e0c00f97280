"""Scenarios: made-up data that looks like a user's, the same for the same seed."""

from headgate.datagen.hotels import Hotels
from headgate.datagen.orders import Orders
from headgate.datagen.produce import produce
from headgate.datagen.scenario import Record, Scenario

__all__ = ["Hotels", "Orders", "Record", "Scenario", "produce"]
