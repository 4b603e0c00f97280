"""An outside catalog from what was said of it."""

from collections.abc import Callable, Mapping
from typing import Any

from headgate.publication.glue import GlueCatalog
from headgate.publication.options import (
    GlueOptions,
    RestOptions,
    UnityOptions,
    as_place,
    parse_options,
    place,
)
from headgate.publication.outside import OutsideCatalog
from headgate.publication.rest import RestCatalog
from headgate.publication.unity import UnityCatalog
from headgate.storage import Place


def open_catalog(
    kind: str,
    given: Mapping[str, Any],
    cluster: str,
    secret: Callable[[str], str],
    place_of: Callable[[str], Place],
) -> OutsideCatalog:
    """`secret` knows secrets by name, one that is missing is a ConfigError; `place_of` knows storages.
    Nothing is asked yet."""
    options = as_place(parse_options(kind, given), place_of)
    where = place(kind, options, cluster)
    match options:
        case GlueOptions():
            return GlueCatalog(
                options, where, cluster, None if options.secret is None else secret(options.secret)
            )
        case UnityOptions():
            return UnityCatalog(options, where, cluster, secret(options.secret))
        case RestOptions():
            return RestCatalog(options, where, None if options.secret is None else secret(options.secret))
