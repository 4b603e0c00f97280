"""A folder that files of exports are put into: whole under their names, or not at all."""

import hashlib
import os
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from headgate.errors import AlreadyExists, StorageUnavailable
from headgate.export.names import ANY_PART

PART = ".part"
_READ_BYTES = 1024 * 1024


@dataclass(frozen=True)
class FileFigures:
    """What a file holds."""

    bytes: int
    sha256: str


class CountingFile:
    """A file that is written in pieces of one size, its bytes counted and hashed on the way."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._hash = hashlib.sha256()
        self.bytes = 0

    closed = False

    def write(self, data: bytes) -> int:
        self._hash.update(data)
        self.bytes += len(data)
        return self._out.write(data)

    def flush(self) -> None:
        self._out.flush()

    def writable(self) -> bool:
        return True

    @property
    def figures(self) -> FileFigures:
        return FileFigures(self.bytes, self._hash.hexdigest())


class ExportFolder:
    """`root` holds all folders of exports, `path` is one of them."""

    def __init__(self, root: Path, path: str) -> None:
        self.folder = root.joinpath(*path.split("/")) if path else root
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StorageUnavailable(
                f"The folder {self.folder} cannot be made: {error.strerror}.", "Check `export.folder`."
            ) from error
        if not self.folder.resolve().is_relative_to(root.resolve()):
            raise StorageUnavailable(
                f"{self.folder} leads out of {root}.", "Remove the link, or name another folder."
            )

    @contextmanager
    def draft(self, name: str) -> Iterator[tuple[Path, CountingFile]]:
        """A file under a temporary name, on the disk when the block ends; gone where it fails."""
        path = self.folder / f".{name}.{uuid.uuid4().hex[:12]}{PART}"
        try:
            with path.open("wb") as out:
                yield path, CountingFile(out)
                out.flush()
                os.fsync(out.fileno())
        except OSError as error:
            path.unlink(missing_ok=True)
            raise StorageUnavailable(
                f"{path} cannot be written: {error.strerror}.", "Check the disk."
            ) from error
        except BaseException:
            path.unlink(missing_ok=True)
            raise

    def publish(self, draft: Path, name: str, sha256: str) -> None:
        """The draft under its name. A file of the same content is the same; another is not touched."""
        final = self.folder / name
        try:
            # Where a rename would replace what is there, a link fails.
            final.hardlink_to(draft)
        except FileExistsError:
            if self.sha256(name) != sha256:
                raise AlreadyExists(
                    f"{final} is there already, and holds something else.",
                    "Move it away, or give the export another `file_name`.",
                ) from None
        except OSError as error:
            raise StorageUnavailable(
                f"{final} cannot be made: {error.strerror}.", "Check the disk."
            ) from error
        draft.unlink(missing_ok=True)
        self._sync()

    def address(self, name: str) -> str:
        return str(self.folder / name)

    def sha256(self, name: str) -> str | None:
        """Of a file's content; None where there is no such file."""
        digest = hashlib.sha256()
        try:
            with (self.folder / name).open("rb") as content:
                while piece := content.read(_READ_BYTES):
                    digest.update(piece)
        except FileNotFoundError:
            return None
        return digest.hexdigest()

    def remove(self, name: str) -> None:
        """One that is not there is removed already."""
        try:
            (self.folder / name).unlink(missing_ok=True)
        except OSError as error:
            raise StorageUnavailable(f"{self.folder / name} cannot be removed: {error.strerror}.") from error

    def forget_drafts(self, name: str) -> None:
        """What a process has left that was killed: a run has one owner at a time, and these are not its."""
        pattern = re.escape(name).replace(ANY_PART, "[0-9]+")
        for path in self.folder.iterdir():
            if re.fullmatch(rf"\.{pattern}\.[0-9a-f]+{re.escape(PART)}", path.name):
                path.unlink(missing_ok=True)

    def _sync(self) -> None:
        handle = os.open(self.folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
