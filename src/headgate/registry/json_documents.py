"""The JSON Schemas of one registration, and what their `$ref`s lead to: inside, and across references.

No address is ever opened: what is not in the schema or among its references leads nowhere.
"""

from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote, urljoin

_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


class JsonDocuments:
    """`named` are the references, by the name that a `$ref` calls them by."""

    def __init__(self, root: Any, named: Sequence[tuple[str, Any]]) -> None:
        self._targets: dict[str, Any] = {}
        # By the identity of an object, the address that its `$ref` is relative to.
        self._bases: dict[int, str] = {}
        base = self._add(root, "")
        self.root = root
        for name, document in named:
            own = _split(_joined(base, name))[0]
            for address in (name, own):
                self._targets.setdefault(_split(address)[0], document)
            self._add(document, own)
        self._named = named  # Kept, for identities must not be given out again.

    def target(self, node: dict[str, Any]) -> Any:
        """What the object refers to; None when it refers to nothing, or to nothing that is here."""
        reference = reference_of(node)
        base = self._bases.get(id(node))
        if reference is None or base is None:
            return None
        address, fragment = _split(_joined(base, reference))
        plain = _split(reference)[0]
        for found in (address, plain):
            if f"{found}#{fragment}" in self._targets:
                return self._targets[f"{found}#{fragment}"]
            if found in self._targets and (not fragment or fragment.startswith("/")):
                return _pointed(self._targets[found], fragment)
        return None

    def knows(self, node: dict[str, Any]) -> bool:
        return id(node) in self._bases

    def _add(self, document: Any, base: str) -> str:
        """The document's own address: its `$id`, or else `base`."""
        own = _address(document, base)
        self._targets.setdefault(own, document)
        waiting = [(document, base)]
        while waiting:
            value, above = waiting.pop()
            if isinstance(value, list):
                waiting += [(item, above) for item in value]
            elif isinstance(value, dict):
                here = _address(value, above)
                if here != above:
                    self._targets.setdefault(here, value)
                for key in ("$anchor", "$dynamicAnchor", "$id", "id"):
                    anchor = value.get(key)
                    if isinstance(anchor, str) and (key.endswith("nchor") or anchor.startswith("#")):
                        self._targets.setdefault(f"{here}#{anchor.removeprefix('#')}", value)
                self._bases[id(value)] = here
                waiting += [(item, here) for item in value.values()]
        return own


def reference_of(node: dict[str, Any]) -> str | None:
    for key in _REFERENCES:
        if isinstance(node.get(key), str):
            return str(node[key])
    return None


def _address(value: Any, base: str) -> str:
    if isinstance(value, dict):
        for key in ("$id", "id"):
            own = value.get(key)
            if isinstance(own, str) and not own.startswith("#"):
                return _split(_joined(base, own))[0]
    return base


def _joined(base: str, reference: str) -> str:
    try:
        return urljoin(base, reference)
    except ValueError:  # What is no address is a name of its own.
        return reference


def _split(address: str) -> tuple[str, str]:
    plain, _, fragment = address.partition("#")
    return plain, fragment


def _pointed(document: Any, pointer: str) -> Any:
    """A JSON Pointer's value; None when there is nothing."""
    value = document
    for part in unquote(pointer).split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict):
            value = value.get(key)
        elif isinstance(value, list) and key.isdecimal() and int(key) < len(value):
            value = value[int(key)]
        else:
            return None
    return value if isinstance(value, dict | bool) else None
