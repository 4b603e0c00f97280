"""Scenarios: made-up data that looks like a user's, the same for the same seed."""

from headgate.datagen.orders import Orders
from headgate.datagen.produce import produce
from headgate.datagen.scenario import Record, Scenario

__all__ = ["Orders", "Record", "Scenario", "produce"]
