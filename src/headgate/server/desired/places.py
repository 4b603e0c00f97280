"""Storage locations and outside catalogs, as the control state has them."""

from collections.abc import Collection, Iterator, Mapping, Sequence

from headgate.apply.kinds.catalogs import options_of
from headgate.apply.kinds.storage import place_of, spec_of
from headgate.apply.model import Change, Live, Spec
from headgate.config import Settings
from headgate.errors import NotFound, OutsideRefused
from headgate.server.api.catalogs import CatalogRequest, add_catalog
from headgate.server.api.storage import StorageDesk
from headgate.storage import Storages
from headgate.store import Integrations, IntegrationState


class StoragePart:
    """Named places. None is changed: another place is another storage."""

    def __init__(self, storages: Storages, desk: StorageDesk) -> None:
        self._storages = storages
        self._desk = desk

    def observe(self, names: Collection[str] | None) -> Mapping[str, Live]:
        return {
            str(place.name): Live(spec_of(place))
            for place in self._storages.list()
            if names is None or place.name in names
        }

    def create(self, name: str, spec: Spec) -> Iterator[str]:
        yield f"an object to be written, read and removed in storage {name}"
        self._desk.add(place_of(name, spec))

    def change(self, name: str, spec: Spec, changes: Sequence[Change], live: Live) -> Iterator[str]:
        raise AssertionError("a storage is replaced")

    def remove(self, name: str, delete_data: bool) -> Iterator[str]:
        if name in self.observe([name]):
            yield f"storage {name} to be forgotten"
            self._desk.remove(name)


class CatalogPart:
    """Outside catalogs. None is changed: its tables are taken out, and put in again."""

    def __init__(self, integrations: Integrations, settings: Settings, storages: Storages) -> None:
        self._integrations = integrations
        self._settings = settings
        self._storages = storages

    def observe(self, names: Collection[str] | None) -> Mapping[str, Live]:
        return {
            record.name: Live({"type": record.kind, "options": options_of(record.kind, record.options)})
            for record in self._integrations.all()
            if (names is None or record.name in names) and record.desired != "removed"
        }

    def create(self, name: str, spec: Spec) -> Iterator[str]:
        yield from self._await_gone(name)
        wanted = CatalogRequest(name=name, kind=spec["type"], format=None, options=spec.get("options") or {})
        add_catalog(self._settings, self._storages, self._integrations, wanted)
        record = self._integrations.get(name)
        if record.state is IntegrationState.FAILED:
            raise OutsideRefused(
                f"Catalog '{name}' has failed: {record.reason}", f"See `headgate catalog show {name}`."
            )

    def change(self, name: str, spec: Spec, changes: Sequence[Change], live: Live) -> Iterator[str]:
        raise AssertionError("a catalog is replaced")

    def remove(self, name: str, delete_data: bool) -> Iterator[str]:
        if name in self.observe([name]):
            self._integrations.want_removed(name)
        yield from self._await_gone(name)

    def _await_gone(self, name: str) -> Iterator[str]:
        while True:
            try:
                if self._integrations.get(name).desired != "removed":
                    return
            except NotFound:
                return
            yield f"catalog {name} to be gone, with its entries there"
