"""Small files in a table's folder, on a disk or in S3: read, listed, removed, and made if nobody has yet."""

import io
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO, Protocol, cast
from urllib.parse import urlsplit
from uuid import uuid4

from headgate.errors import InvalidRequest

_S3 = ("s3", "s3a", "s3n")


class Files(Protocol):
    """Names are relative to the table's folder, with slashes."""

    def read(self, name: str) -> bytes | None: ...
    def names(self, folder: str, after: str = "") -> list[str]:
        """Of the files right in a folder, sorted; those that come after a name."""
        ...

    def size(self, folder: str) -> int:
        """The bytes of all files of a folder."""

    def put(self, name: str, data: bytes) -> None: ...
    def put_new(self, name: str, data: bytes) -> bool:
        """All of it or nothing, and only if there is none of that name; whether it was made."""
        ...

    def delete(self, names: Iterable[str]) -> None: ...
    def exists(self, name: str) -> bool: ...
    def open(self, name: str) -> BinaryIO: ...


def files_at(location: str, s3: Any | None = None, put_arguments: Mapping[str, str] | None = None) -> Files:
    """The folder that Iceberg calls a table's location. `s3` is boto3's client, for locations there, and
    `put_arguments` is what its puts are called with: how objects are encrypted."""
    parts = urlsplit(location)
    if parts.scheme in ("", "file"):
        # Iceberg's locations are no URIs in the strict sense: percent signs are their own.
        return LocalFiles(Path("/" + location.removeprefix("file:").lstrip("/")))
    if parts.scheme in _S3:
        if s3 is None:
            raise InvalidRequest(f"There is no access to S3 for {location}.", "Configure the storage's keys.")
        return S3Files(s3, parts.netloc, parts.path.strip("/"), put_arguments or {})
    raise InvalidRequest(
        f"A Delta log cannot be kept at {location}.", "Use a folder of this machine, or one in S3."
    )


class LocalFiles:
    """A folder on a disk."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def read(self, name: str) -> bytes | None:
        try:
            return (self._root / name).read_bytes()
        except FileNotFoundError:
            return None

    def names(self, folder: str, after: str = "") -> list[str]:
        try:
            with os.scandir(self._root / folder) as entries:
                return sorted(one.name for one in entries if one.name > after and one.is_file())
        except FileNotFoundError:
            return []

    def size(self, folder: str) -> int:
        try:
            with os.scandir(self._root / folder) as entries:
                return sum(one.stat().st_size for one in entries if one.is_file())
        except FileNotFoundError:
            return 0  # no such folder, or a file that has just been removed

    def put(self, name: str, data: bytes) -> None:
        temporary = self._written(name, data)
        temporary.replace(self._root / name)

    def put_new(self, name: str, data: bytes) -> bool:
        temporary = self._written(name, data)
        try:
            # Unlike a rename, a link does not replace what is there.
            os.link(temporary, self._root / name)
        except FileExistsError:
            return False
        finally:
            temporary.unlink()
        _sync_folder((self._root / name).parent)
        return True

    def delete(self, names: Iterable[str]) -> None:
        for name in names:
            (self._root / name).unlink(missing_ok=True)

    def exists(self, name: str) -> bool:
        return (self._root / name).exists()

    def open(self, name: str) -> BinaryIO:
        return (self._root / name).open("rb")

    def _written(self, name: str, data: bytes) -> Path:
        target = self._root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.parent / f".{uuid4()}.tmp"
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        return temporary


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class S3Files:
    """A prefix in a bucket. The store itself sees to it that a name is given once."""

    def __init__(
        self, client: Any, bucket: str, prefix: str, put_arguments: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        self._client = client
        self._put_arguments = put_arguments
        self._bucket = bucket
        self._prefix = f"{prefix}/" if prefix else ""

    def read(self, name: str) -> bytes | None:
        try:
            answer = self._client.get_object(Bucket=self._bucket, Key=self._prefix + name)
        except self._client.exceptions.NoSuchKey:
            return None
        return bytes(answer["Body"].read())

    def names(self, folder: str, after: str = "") -> list[str]:
        start = f"{self._prefix}{folder.strip('/')}/"
        pages = self._client.get_paginator("list_objects_v2").paginate(
            Bucket=self._bucket, Prefix=start, Delimiter="/", StartAfter=start + after
        )
        found = (one["Key"].removeprefix(start) for page in pages for one in page.get("Contents", ()))
        return sorted(name for name in found if name > after)

    def size(self, folder: str) -> int:
        start = f"{self._prefix}{folder.strip('/')}/"
        pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=start)
        return sum(int(one["Size"]) for page in pages for one in page.get("Contents", ()))

    def put(self, name: str, data: bytes) -> None:
        self._client.put_object(
            Bucket=self._bucket, Key=self._prefix + name, Body=data, **self._put_arguments
        )

    def put_new(self, name: str, data: bytes) -> bool:
        key = self._prefix + name
        while True:
            try:
                self._client.put_object(
                    Bucket=self._bucket, Key=key, Body=data, IfNoneMatch="*", **self._put_arguments
                )
            except Exception as error:
                status = _status(error)
                if status == 409:
                    continue  # another writer of the same name is at it; the next look tells who was first
                if status == 412:
                    # A request that was sent again can find what it made itself.
                    return self.read(name) == data
                raise
            return True

    def delete(self, names: Iterable[str]) -> None:
        for some in _chunks(list(names), 1000):
            objects = [{"Key": self._prefix + name} for name in some]
            answer = self._client.delete_objects(
                Bucket=self._bucket, Delete={"Objects": objects, "Quiet": True}
            )
            if answer.get("Errors"):
                first = answer["Errors"][0]
                raise OSError(f"{first['Key']} cannot be removed: {first.get('Message', first.get('Code'))}")

    def exists(self, name: str) -> bool:
        try:
            self._client.head_object(Bucket=self._bucket, Key=self._prefix + name)
        except Exception as error:
            if _status(error) == 404:
                return False
            raise
        return True

    def open(self, name: str) -> BinaryIO:
        raw = _Ranges(self._client, self._bucket, self._prefix + name)
        return cast(BinaryIO, io.BufferedReader(raw, 1 << 16))


class _Ranges(io.RawIOBase):
    """An object read in pieces, as they are asked for."""

    def __init__(self, client: Any, bucket: str, key: str) -> None:
        self._client = client
        self._place = {"Bucket": bucket, "Key": key}
        self._size = int(client.head_object(**self._place)["ContentLength"])
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = base + offset
        return self._at

    def readinto(self, buffer: Any) -> int:
        wanted = min(len(buffer), self._size - self._at)
        if wanted <= 0:
            return 0
        span = f"bytes={self._at}-{self._at + wanted - 1}"
        found = self._client.get_object(**self._place, Range=span)["Body"].read()
        buffer[: len(found)] = found
        self._at += len(found)
        return len(found)


def _status(error: Exception) -> int | None:
    """What S3 answered, by HTTP's number."""
    response = getattr(error, "response", None) or {}
    found = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    return None if found is None else int(found)


def _chunks(items: list[str], size: int) -> Iterator[list[str]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
