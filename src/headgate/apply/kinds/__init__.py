"""The kinds of things that a file may name, in the order in which they are created."""

from collections.abc import Mapping

from headgate.apply.kinds.catalogs import Catalogs
from headgate.apply.kinds.credentials import Credentials
from headgate.apply.kinds.exports import Exports
from headgate.apply.kinds.generators import Generators
from headgate.apply.kinds.kind import Kind
from headgate.apply.kinds.schemas import Schemas
from headgate.apply.kinds.statements import Statements
from headgate.apply.kinds.storage import Storage
from headgate.apply.kinds.tables import Tables
from headgate.apply.kinds.topics import Topics

ORDER: tuple[Kind, ...] = (
    Storage(),
    Schemas(),
    Topics(),
    Statements(),
    Tables(),
    Catalogs(),
    Exports(),
    Credentials(),
    Generators(),
)
KINDS: Mapping[str, Kind] = {kind.name: kind for kind in ORDER}

__all__ = ["KINDS", "ORDER", "Kind"]
