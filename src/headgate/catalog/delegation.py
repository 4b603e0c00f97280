"""What a client is told besides a table's metadata: how its storage is reached, and keys if it asks."""

import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from headgate.access import Principal, Role
from headgate.catalog.iceberg import TableMetadata
from headgate.catalog.locations import Warehouse
from headgate.catalog.names import LEVEL_SEPARATOR, Identifier
from headgate.catalog.proposal import is_managed
from headgate.model import MANAGED_KEY
from headgate.storage import Place, Places
from headgate.storage.vending import Keys, Vendor

HEADER = "X-Iceberg-Access-Delegation"
VENDED = "vended-credentials"
REFRESH = "client.refresh-credentials-endpoint"


@dataclass(frozen=True)
class Asked:
    """Who asks, and whether they want keys."""

    caller: Principal
    vended: bool = False

    @classmethod
    def of(cls, caller: Principal, header: str | None) -> "Asked":
        return cls(caller, VENDED in (word.strip().lower() for word in (header or "").split(",")))


@dataclass(frozen=True)
class Told:
    """What is added to a table's answer."""

    config: dict[str, str]
    keys: Keys | None = None

    def added_to(self, body: str) -> str:
        """Into the JSON as it is: a table's metadata may be long."""
        if not self.config:
            return body
        more: dict[str, Any] = {"config": self.config}
        if self.keys is not None:
            more["storage-credentials"] = [{"prefix": self.keys.prefix, "config": dict(self.keys.config)}]
        return f"{body.rstrip()[:-1]},{json.dumps(more)[1:]}"


class Delegation:
    def __init__(self, places: Places | None, warehouse: Warehouse, vendor: Vendor | None = None) -> None:
        self._places = places
        self._warehouse = warehouse
        self._vendor = vendor or Vendor()

    def vends(self, metadata_location: str, asked: Asked) -> bool:
        """Whether an answer would hold keys: such a one is never the same as the last."""
        place = self._place(metadata_location)
        return asked.vended and place is not None and place.role_arn is not None

    def tell(self, identifier: Identifier, metadata: TableMetadata, asked: Asked) -> Told:
        place = self._place(metadata.location())
        if place is None:
            return Told({})
        keys = self._keys(place, identifier, metadata, asked.caller) if asked.vended else None
        if keys is not None:
            endpoint = {REFRESH: _path(identifier)}
            return Told({**place.settings, **keys.config, **endpoint}, keys)
        if asked.caller.on_table(identifier.namespace, identifier.name) is Role.ENGINE:
            # The engine has the keys of its own environment, as the server does.
            return Told(place.own_settings)
        return Told(place.settings)

    def credentials(self, identifier: Identifier, metadata: TableMetadata, caller: Principal) -> str:
        """For a client whose keys are about to expire. None, where the storage has no role."""
        place = self._place(metadata.location())
        keys = None if place is None else self._keys(place, identifier, metadata, caller)
        if keys is None:
            return json.dumps({"storage-credentials": []})
        config = {**dict(keys.config), REFRESH: _path(identifier)}
        return json.dumps({"storage-credentials": [{"prefix": keys.prefix, "config": config}]})

    def _place(self, location: str) -> Place | None:
        return None if self._places is None else self._places.at(location)

    def _keys(
        self, place: Place, identifier: Identifier, metadata: TableMetadata, caller: Principal
    ) -> Keys | None:
        """None where there is no role to take on. And where the table lies in another namespace's folder:
        keys outlive a table, and who dropped it would have them for what comes there next."""
        if place.role_arn is None:
            return None
        role = caller.on_table(identifier.namespace, identifier.name)
        managed = is_managed(metadata.property(MANAGED_KEY, None))
        writes = role is Role.ENGINE or (role is not None and role >= Role.WRITER and not managed)
        writes = writes and not caller.reads_only
        footprint = self._warehouse.footprint(metadata.location(), metadata.properties())
        # What lies inside another of them needs no word of its own: the policy must be short.
        outside = (path for path in footprint.paths if not path.startswith(f"{footprint.location}/"))
        locations = (footprint.location, *outside)
        at_home = all(self._warehouse.is_home(identifier, location) for location in locations)
        if not at_home and role is not Role.ENGINE:
            return None
        if not all(place.holds(location) for location in locations):
            # Keys are for one place.
            return None
        return self._vendor.keys(place, locations, writes, caller.name)


def _path(identifier: Identifier) -> str:
    """Below the catalog's address."""
    namespace = quote(LEVEL_SEPARATOR.join(identifier.namespace), safe="")
    return f"v1/namespaces/{namespace}/tables/{quote(identifier.name, safe='')}/credentials"
