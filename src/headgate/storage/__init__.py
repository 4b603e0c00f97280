"""Where tables lie that do not lie on this machine: S3 and what speaks like it."""

from headgate.storage.integrations import Integrations
from headgate.storage.place import Place
from headgate.storage.places import Places

__all__ = ["Integrations", "Place", "Places"]
