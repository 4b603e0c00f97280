"""Where tables may lie: canonical locations inside the warehouse or a place that is allowed, nowhere else."""

import re
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import unquote

from headgate.catalog.errors import CatalogError, bad_request
from headgate.catalog.names import Identifier, path_segment

# Properties by which a table or view may ask for files outside its own location.
PATH_PROPERTIES = (
    "write.data.path",
    "write.metadata.path",
    "write.object-storage.path",
    "write.folder-storage.path",
)
SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*):(.*)$", re.DOTALL)
# A `%` is an escape to some readers and a character to others, `?` and `#` end a path, `*` and the brackets
# are patterns to Hadoop.
UNSAFE = re.compile(r"[*?#%\\\[\]{}\x00-\x1f\x7f]")
# Writers put values of partitions into the names of files, escaped or not.
UNSAFE_IN_FILES = re.compile(r"[\x00-\x1f\x7f]")


def canonical(location: str, unsafe: re.Pattern[str] = UNSAFE) -> str:
    """`file:/x/` and `/x` as `file:///x`; refuses what could mean another place than it seems to."""
    if unsafe.search(location):
        raise bad_request(f"The location '{location!a}' holds a character that locations must not have.")
    match = SCHEME.match(location)
    scheme, rest = (match[1].lower(), match[2]) if match else ("file", location)
    if rest.startswith("//"):
        authority, _, path = rest[2:].partition("/")
    else:
        authority, path = "", rest
        if not path.startswith("/"):
            raise bad_request(f"The location '{location}' is not absolute.")
    if scheme == "file" and authority:
        raise bad_request(f"The location '{location}' names a host; local files have none.")
    segments = path.strip("/").split("/")
    if any(segment in ("", ".", "..") for segment in segments):
        raise bad_request(f"The location '{location}' is not canonical: no '.', '..' or empty segments.")
    return f"{scheme}://{authority}/{'/'.join(segments)}"


def _configured(location: str) -> str:
    # A file URI may come percent-encoded. Hadoop takes paths as they are: undo the escapes here, once.
    found = canonical(unquote(location) if location.startswith("file:") else location)
    # Hadoop's names for S3 are no other places, and tables are told by one.
    return re.sub(r"^s3[an]://", "s3://", found)


@dataclass(frozen=True)
class Footprint:
    """Every place that a table writes to, canonical."""

    location: str
    paths: tuple[str, ...] = ()

    def holds(self, file: str) -> bool:
        """Whether a file, canonical, is at one of them."""
        return any(file.startswith(f"{place}/") for place in (self.location, *self.paths))


@dataclass(frozen=True)
class Warehouse:
    """The root under which tables of the embedded catalog lie, and other places where they may."""

    root: str
    allowed: tuple[str, ...] = ()
    # Places that come and go while the server runs.
    further: Callable[[], tuple[str, ...]] = tuple

    @classmethod
    def at(
        cls, location: str, allowed: Iterable[str] = (), further: Callable[[], tuple[str, ...]] = tuple
    ) -> "Warehouse":
        return cls(_configured(location), tuple(_configured(place) for place in allowed), further)

    def admit(self, location: str, what: str) -> str:
        """`location`, canonical, if it is inside the warehouse."""
        try:
            found = canonical(location)
        except CatalogError as error:
            raise bad_request(f"{what}: {error.message}") from error
        self._check_inside(found, what)
        return found

    def admit_file(self, location: str, what: str) -> str:
        """Likewise, for a file that metadata names: its name may hold more characters."""
        try:
            found = canonical(location, UNSAFE_IN_FILES)
        except CatalogError as error:
            raise bad_request(f"{what}: {error.message}") from error
        self._check_inside(found, what)
        return found

    def _check_inside(self, found: str, what: str) -> None:
        if not any(found.startswith(f"{place}/") for place in self._places()):
            raise bad_request(f"{what} '{found}' is not inside the warehouse {self.root}.")

    def admit_paths(self, properties: Mapping[str, str]) -> tuple[str, ...]:
        """Where properties may send files besides the location, each checked."""
        named = ((key, properties.get(key)) for key in PATH_PROPERTIES)
        return tuple(self.admit(path, f"The property {key}") for key, path in named if path is not None)

    def footprint(self, location: str, properties: Mapping[str, str]) -> "Footprint":
        """Of a table or view whose location and path properties are all inside."""
        return Footprint(self.admit(location, "The location"), self.admit_paths(properties))

    def _places(self) -> tuple[str, ...]:
        return (self.root, *self.allowed, *self.further())

    def is_home(self, identifier: Identifier, location: str) -> bool:
        """Whether it lies in the folder that the table's namespace has in one of the places."""
        folder = path_segment(".".join(identifier.namespace))
        return any(location.startswith(f"{place}/{folder}/") for place in self._places())

    def namespace_location(self, levels: tuple[str, ...]) -> str:
        """One folder for all levels: a namespace `a`, `b` would otherwise lie inside the table `b` of `a`."""
        return f"{self.root}/{path_segment('.'.join(levels))}"

    def default_location(self, identifier: Identifier) -> str:
        return f"{self.namespace_location(identifier.namespace)}/{path_segment(identifier.name)}"

    def fresh_location(self, identifier: Identifier) -> str:
        """For a name whose default location is, or was, another table's."""
        return f"{self.default_location(identifier)}-{uuid.uuid4()}"
