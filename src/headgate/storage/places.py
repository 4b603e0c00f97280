"""Which place a location lies in: a named integration's, or the storage of the configuration."""

import os
import time
import uuid
from collections.abc import Callable

from headgate.config import Settings, Storage
from headgate.delta.files import Files, files_at
from headgate.errors import InvalidRequest
from headgate.storage.aws import Clients
from headgate.storage.place import Place, is_s3, split
from headgate.storage.storages import Storages

# How long another process may take to hear of an integration.
MEMO_SECONDS = 2.0


class Places:
    """For many threads."""

    def __init__(
        self, storage: Storage, integrations: Storages, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._storage = storage
        self._integrations = integrations
        self._clients = Clients()
        self._clock = clock
        self._known: tuple[Place, ...] = ()
        self._known_at: float | None = None

    @classmethod
    def of(cls, settings: Settings, integrations: Storages) -> "Places":
        """Also tells AWS's libraries, in Java too, which profile to use: they ask the environment."""
        if settings.storage.profile is not None:
            os.environ["AWS_PROFILE"] = settings.storage.profile
        return cls(settings.storage, integrations)

    def integrations(self, fresh: bool = False) -> tuple[Place, ...]:
        now = self._clock()
        if fresh or self._known_at is None or now - self._known_at > MEMO_SECONDS:
            self._known, self._known_at = tuple(self._integrations.list()), now
        return self._known

    def forget(self) -> None:
        self._known_at = None

    def roots(self) -> tuple[str, ...]:
        return tuple(place.root for place in self.integrations())

    def at(self, location: str) -> Place | None:
        """None for a folder of this machine, or in a store that we know nothing of."""
        if not is_s3(location):
            return None
        named = [place for place in self.integrations() if place.holds(location)]
        return named[0] if named else self.configured(location)

    def configured(self, location: str) -> Place:
        """The bucket of a location, reached as the configuration says."""
        said = self._storage
        bucket, _ = split(location)
        return Place(
            None,
            bucket,
            region=said.region or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION"),
            endpoint=said.endpoint,
            path_style=said.path_style,
            encryption=said.encryption,
            kms_key=said.kms_key,
            role_arn=said.role_arn,
            external_id=said.external_id,
        )

    @property
    def default_settings(self) -> dict[str, str]:
        """For a FileIO whose locations are not known yet."""
        return self.configured("s3://any").own_settings

    def new_location(self, storage: str, *names: str) -> str:
        """For a new table in the storage that a user named, or below the URI that they gave."""
        if is_s3(storage):
            root = f"s3://{'/'.join(part for part in split(storage) if part)}"
        else:
            root = self.named(storage).root
        # A table that was there before may have left files behind.
        return "/".join((root, *names)) + f"-{uuid.uuid4().hex[:8]}"

    def named(self, name: str) -> Place:
        return self._integrations.get(name)

    def files(self, location: str) -> Files:
        """A table's folder, for the Delta log."""
        place = self.at(location)
        if place is None:
            return files_at(location)
        return files_at(location, self._clients.of(place), place.put_arguments)


def check_storage(storage: str, integrations: Storages) -> None:
    """That a user named one which is there, or a URI in S3."""
    if is_s3(storage):
        bucket, prefix = split(storage)
        Place.checked(name=None, bucket=bucket, prefix=prefix)
    elif "://" in storage or "/" in storage:
        raise InvalidRequest(
            f"Tables cannot be stored at '{storage}'.", "Name an integration, or say s3://BUCKET/PREFIX."
        )
    else:
        integrations.get(storage)
