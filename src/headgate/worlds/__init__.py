"""The worlds to try Headgate on: their YAML, and what comes of a seed's records, computed in plain Python."""

from headgate.worlds.files import world_file
from headgate.worlds.hotels import HOTELS
from headgate.worlds.orders import ORDERS
from headgate.worlds.sales import SALES
from headgate.worlds.world import Expected, Figure, Rows, World

WORLDS = {world.name: world for world in (ORDERS, HOTELS, SALES)}

__all__ = ["WORLDS", "Expected", "Figure", "Rows", "World", "world_file"]
