"""Where tables lie that do not lie on this machine: S3 and what speaks like it."""

from headgate.storage.place import Place
from headgate.storage.places import Places
from headgate.storage.storages import Storages

__all__ = ["Place", "Places", "Storages"]
