"""What tables and their database are called in an outside catalog. No I/O.

A name follows from the topic alone, so that it is the same wherever and whenever it is made. Two topics may
get one name: who comes first has it, the other is told.
"""

import re

from headgate.errors import InvalidRequest

# Catalogs that keep names in small letters, and whose engines want no dots or dashes in them.
PLAIN = frozenset({"glue", "unity"})
LONGEST = 255
_PLAIN_NAME = re.compile(r"[a-z0-9_]{1,255}")
_OTHER = re.compile(r"[^a-z0-9_]")


def outside_name(kind: str, name: str) -> str:
    """`Shop.orders-v2` is `shop_orders_v2` to Glue and Unity Catalog, and itself to Iceberg REST."""
    return _OTHER.sub("_", name.lower()) if kind in PLAIN else name


def check_outside_name(kind: str, name: str, what: str) -> None:
    """Of a name that somebody chose."""
    if kind in PLAIN and _PLAIN_NAME.fullmatch(name) is None:
        raise InvalidRequest(
            f"'{name}' cannot name {what} in {_SHOWN[kind]}.", "Use small letters, digits and _, at most 255."
        )
    if not name or len(name) > LONGEST or any(ord(letter) < 32 for letter in name):
        raise InvalidRequest(f"'{name}' cannot name {what}.", f"Use 1 to {LONGEST} characters.")


_SHOWN = {"glue": "AWS Glue", "unity": "Unity Catalog"}
