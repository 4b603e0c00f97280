"""Named places in object stores where tables may lie."""

from collections.abc import Callable
from typing import Any

from fastapi import APIRouter, status
from pydantic import BaseModel, ConfigDict, Field

from headgate.access import Role
from headgate.errors import InvalidRequest
from headgate.server.access import Asking, needs
from headgate.server.answers import answers
from headgate.server.answers.catalogs import ShownStorageAnswer, StorageAnswer, StoragePoliciesAnswer
from headgate.storage import Place, Storages
from headgate.storage.place import split
from headgate.storage.policy import assume_policy, reader_policy, role_policy, trust_policy
from headgate.storage.probe import probe
from headgate.store import Exports, Integrations, Store

# Stands in a trust policy for who Headgate runs as, where nobody said it.
SOMEBODY = "arn:aws:iam::ACCOUNT:role/WHAT-HEADGATE-RUNS-AS"


class StorageRequest(BaseModel):
    """A bucket, or a part of one, and how it is reached."""

    model_config = ConfigDict(extra="forbid")

    name: str
    uri: str = Field(description="`s3://bucket` or `s3://bucket/prefix`")
    region: str | None = None
    endpoint: str | None = Field(None, description="A store that speaks like S3; none is AWS's.")
    path_style: bool = False
    encryption: str = Field("none", description="`none`, `s3` or `kms`")
    kms_key: str | None = None
    role_arn: str | None = None
    external_id: str | None = None

    def place(self) -> Place:
        bucket, prefix = split(self.uri)
        rest = self.model_dump(exclude={"uri"})
        return Place.checked(bucket=bucket, prefix=prefix, **rest)


# None of it is a question of topics.
ADMINS = needs(Role.ADMIN, "everything")


class StorageDesk:
    """Takes places up and forgets them. `warehouse` is the embedded catalog's root, None with another; `used`
    tells whether it has tables in a place; `changed` hears of each change."""

    def __init__(
        self, store: Store, warehouse: str | None, used: Callable[[str], bool], changed: Callable[[], None]
    ) -> None:
        self.store = store
        self._warehouse = warehouse
        self._used = used
        self._changed = changed
        self._integrations = Storages(store.engine)

    def add(self, place: Place) -> None:
        """Once an object was written, read, listed and removed there."""
        if (warehouse := self._warehouse) is None:
            raise InvalidRequest(
                "Storage integrations are for tables of the embedded catalog.",
                "Give your own catalog its storage there, and Headgate's keys under `storage`.",
            )
        self._integrations.check_free(place)
        if place.holds(warehouse) or f"{place.root}/".startswith(f"{warehouse.rstrip('/')}/"):
            raise InvalidRequest(
                f"{place.root} overlaps with the warehouse, {warehouse}.", "Choose another bucket or prefix."
            )
        probe(place)
        self._integrations.add(place)
        self._changed()
        self.store.log(f"storage {place.name}", "added", place.root)

    def remove(self, name: str) -> Place:
        """One that nothing uses."""
        place = self._integrations.get(name)
        if catalogs := _catalogs(self.store, name):
            raise InvalidRequest(
                f"Catalogs are asked as the role of storage '{name}': {', '.join(catalogs)}.",
                "Remove them first (`headgate catalog remove`).",
            )
        if exports := _exports(self.store, name):
            raise InvalidRequest(
                f"Exports put their files into storage '{name}': {', '.join(exports)}.",
                "Remove or change them first (`headgate export`).",
            )
        tables = _tables(self.store, name)
        if tables or self._used(place.root):
            which = ", ".join(tables) or "see the catalog"
            raise InvalidRequest(
                f"Storage '{name}' has tables: {which}.", "Disable them with --purge, or drop them, first."
            )
        self._integrations.remove(name)
        self._changed()
        self.store.log(f"storage {name}", "removed", place.root)
        return place


def storage_router(desk: StorageDesk) -> APIRouter:
    store = desk.store
    router = APIRouter(prefix="/storage", tags=["storage"])
    integrations = Storages(store.engine)

    @router.post(
        "",
        summary="Name a place for tables",
        status_code=status.HTTP_201_CREATED,
        **ADMINS,
        **answers(StorageAnswer, 201),
    )
    def add(wanted: StorageRequest, access: Asking) -> dict[str, Any]:
        """An object is written, read, listed and removed there first. When that fails nothing is kept."""
        access.note(f"storage {wanted.name}")
        place = wanted.place()
        desk.add(place)
        return _shown(place)

    @router.get("", summary="List the places", **ADMINS, **answers(list[StorageAnswer]))
    def list_all() -> list[dict[str, Any]]:
        return [_shown(place) for place in integrations.list()]

    @router.get(
        "/{name}",
        summary="Show a place, and which tables are wanted there",
        **ADMINS,
        **answers(ShownStorageAnswer),
    )
    def show(name: str) -> dict[str, Any]:
        return _shown(integrations.get(name)) | {
            "tables": _tables(store, name),
            "catalogs": _catalogs(store, name),
        }

    @router.post("/{name}/test", summary="Try a place", **ADMINS, **answers(StorageAnswer))
    def test(name: str) -> dict[str, Any]:
        """As when it was named: an object is written, read, listed and removed there."""
        place = integrations.get(name)
        probe(place)
        return _shown(place)

    @router.delete("/{name}", summary="Forget a place that has no tables", **ADMINS, **answers(StorageAnswer))
    def remove(name: str) -> dict[str, Any]:
        """What lies there stays there."""
        return _shown(desk.remove(name))

    @router.get("/{name}/policy", summary="What IAM must allow", **ADMINS, **answers(StoragePoliciesAnswer))
    def policy(name: str, principal: str = SOMEBODY) -> dict[str, Any]:
        """For the role, for who takes it on, and for engines that read with keys of their own."""
        return _policies(integrations.get(name), principal)

    @router.post(
        "/policy",
        summary="What IAM must allow for a place that is to be named",
        **ADMINS,
        **answers(StoragePoliciesAnswer),
    )
    def policy_before(wanted: StorageRequest, principal: str = SOMEBODY) -> dict[str, Any]:
        """The place is tried when it is named: it must be allowed by then. Nothing is asked or kept here."""
        return _policies(wanted.place(), principal)

    return router


def _policies(place: Place, principal: str) -> dict[str, Any]:
    found = {"access": role_policy(place), "reader": reader_policy(place)}
    if place.role_arn is None:
        return found
    return found | {"trust": trust_policy(place, principal), "assume": assume_policy(place)}


def _tables(store: Store, name: str) -> list[str]:
    return [record.spec.topic for record in store.tables() if record.spec.storage == name]


def _catalogs(store: Store, name: str) -> list[str]:
    """Outside catalogs that are reached with its role."""
    return [one.name for one in Integrations(store.engine).all() if one.options.get("storage") == name]


def _exports(store: Store, name: str) -> list[str]:
    return [one.name for one in Exports(store.engine).all() if one.spec.get("storage") == name]


def _shown(place: Place) -> dict[str, Any]:
    return {"uri": place.root, **place.to_dict()}
