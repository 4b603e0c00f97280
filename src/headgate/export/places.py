"""Where files of exports go: a folder, or a place in an object store that has a name."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Protocol

from botocore.exceptions import BotoCoreError, ClientError

from headgate.errors import AlreadyExists, NotFound, StorageUnavailable
from headgate.export.definition import ExportOptions
from headgate.export.folder import CountingFile, ExportFolder
from headgate.export.names import content_type
from headgate.storage import Place, Storages

# Drafts of what goes to an object store, on this machine's disk.
STAGING = ".staging"
# More than this is sent in parts.
PART_BYTES = 64 * 1024 * 1024
SHA256 = "sha256"
LINK_SECONDS = 60
_TAKEN = (409, 412)
Draft = tuple[Path, CountingFile]


class Destination(Protocol):
    """Where a run puts its files: drafts first, which then get their names."""

    def draft(self, name: str) -> AbstractContextManager[Draft]: ...

    def publish(self, draft: Path, name: str, sha256: str) -> None:
        """Raises AlreadyExists where the name holds something else; the same content is the same file."""

    def sha256(self, name: str) -> str | None: ...

    def remove(self, name: str) -> None:
        """One that is not there is removed already."""

    def forget_drafts(self, name: str) -> None: ...

    def address(self, name: str) -> str:
        """A path, or a URI."""


class StoredFolder:
    """A folder below a place. Drafts lie on the disk; an object is there whole or not at all."""

    def __init__(self, place: Place, client: Any, folder: str, root: Path) -> None:
        self._place = place
        self._client = client
        self._prefix = "/".join(part for part in (place.prefix, folder) if part)
        self._drafts = ExportFolder(
            root, "/".join(part for part in (STAGING, place.name or "", folder) if part)
        )

    @contextmanager
    def draft(self, name: str) -> Iterator[Draft]:
        with self._drafts.draft(name) as draft:
            yield draft

    def forget_drafts(self, name: str) -> None:
        self._drafts.forget_drafts(name)

    def address(self, name: str) -> str:
        return f"s3://{self._place.bucket}/{self._key(name)}"

    def sha256(self, name: str) -> str | None:
        there = {"Bucket": self._place.bucket, "Key": self._key(name)}
        try:
            found: str | None = self._client.head_object(**there)["Metadata"].get(SHA256, "")
        except ClientError as error:
            if _status(error) == 404:
                return None
            raise self._failed(error) from error
        except BotoCoreError as error:
            raise self._failed(error) from error
        return found

    def remove(self, name: str) -> None:
        try:
            self._client.delete_object(Bucket=self._place.bucket, Key=self._key(name))
        except (BotoCoreError, ClientError) as error:
            raise self._failed(error) from error

    def publish(self, draft: Path, name: str, sha256: str) -> None:
        said = {
            "Bucket": self._place.bucket,
            "Key": self._key(name),
            "ContentType": "application/json" if name.endswith(".json") else content_type(name),
            "Metadata": {SHA256: sha256},
            **self._place.put_arguments,
        }
        try:
            if draft.stat().st_size > PART_BYTES:
                self._send_parts(draft, said)
            else:
                with draft.open("rb") as content:
                    self._client.put_object(Body=content, IfNoneMatch="*", **said)
        except ClientError as error:
            if _status(error) not in _TAKEN:
                raise self._failed(error) from error
            if self.sha256(name) != sha256:
                raise AlreadyExists(
                    f"{self.address(name)} is there already, and holds something else.",
                    "Move it away, or give the export another `file_name`.",
                ) from error
        except BotoCoreError as error:
            raise self._failed(error) from error
        draft.unlink(missing_ok=True)

    def _send_parts(self, draft: Path, said: dict[str, Any]) -> None:
        there = {"Bucket": said["Bucket"], "Key": said["Key"]}
        upload = self._client.create_multipart_upload(**said)["UploadId"]
        try:
            parts: list[dict[str, Any]] = []
            with draft.open("rb") as content:
                while piece := content.read(PART_BYTES):
                    number = len(parts) + 1
                    sent = self._client.upload_part(**there, UploadId=upload, PartNumber=number, Body=piece)
                    parts.append({"ETag": sent["ETag"], "PartNumber": number})
            whole = {"Parts": parts}
            self._client.complete_multipart_upload(
                **there, UploadId=upload, MultipartUpload=whole, IfNoneMatch="*"
            )
        except BaseException:
            self._client.abort_multipart_upload(**there, UploadId=upload)
            raise

    def _key(self, name: str) -> str:
        return f"{self._prefix}/{name}" if self._prefix else name

    def _failed(self, error: Exception) -> StorageUnavailable:
        return StorageUnavailable(
            f"Storage '{self._place.name}' does not do what it must: {str(error).rstrip('.')}.",
            "Check its keys (`headgate storage policy`), and that it answers.",
        )


class Destinations:
    """Opens destinations by what exports say, and reads back what was put there."""

    def __init__(self, root: Path, storages: Storages, client_of: Callable[[Place], Any]) -> None:
        self._root = root
        self._storages = storages
        self._client_of = client_of

    def of(self, options: ExportOptions) -> Destination:
        if options.storage is None:
            return ExportFolder(self._root, options.folder)
        place = self._storages.get(options.storage)
        return StoredFolder(place, self._client_of(place), options.folder, self._root)

    def read(self, options: ExportOptions, address: str) -> bytes:
        """A whole file; for those that are known to be small."""
        if options.storage is None:
            return Path(address).read_bytes()
        place = self._storages.get(options.storage)
        bucket, key = split_object(address)
        try:
            content: bytes = self._client_of(place).get_object(Bucket=bucket, Key=key)["Body"].read()
        except (BotoCoreError, ClientError) as error:
            raise StorageUnavailable(f"{address} cannot be read: {str(error).rstrip('.')}.") from error
        return content

    def link(self, options: ExportOptions, address: str) -> str:
        """A link of the store itself, for a moment. The object is there, or NotFound."""
        if options.storage is None:
            raise AssertionError("a file of a folder has no link of its own")
        place = self._storages.get(options.storage)
        bucket, key = split_object(address)
        client = self._client_of(place)
        there = {"Bucket": bucket, "Key": key}
        try:
            client.head_object(**there)
            shown = {
                **there,
                "ResponseContentDisposition": f'attachment; filename="{key.rpartition("/")[2]}"',
            }
            link: str = client.generate_presigned_url("get_object", Params=shown, ExpiresIn=LINK_SECONDS)
        except ClientError as error:
            if _status(error) == 404:
                raise NotFound(
                    "The file of this link is not there any more.", "Ask for another run."
                ) from error
            raise StorageUnavailable(f"{address} cannot be read: {str(error).rstrip('.')}.") from error
        except BotoCoreError as error:
            raise StorageUnavailable(f"{address} cannot be read: {str(error).rstrip('.')}.") from error
        return link


def split_object(address: str) -> tuple[str, str]:
    bucket, _, key = address.removeprefix("s3://").partition("/")
    return bucket, key


def _status(error: ClientError) -> int:
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode") or 0)
