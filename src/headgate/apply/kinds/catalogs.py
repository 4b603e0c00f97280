"""Outside catalogs that tables are published to. Secrets are named; the configuration has them."""

from collections.abc import Iterable
from typing import Any

from headgate.apply.kinds.kind import replaced_whole
from headgate.apply.model import Difference, Live, Owner, Ref, Spec
from headgate.publication.options import parse_options


def options_of(kind: str, given: Spec) -> dict[str, Any]:
    """The options of a catalog without their defaults."""
    options = parse_options(kind, given)
    return options.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_defaults=True)


def canonical(spec: Spec) -> Spec:
    return {"type": spec["type"], "options": options_of(spec["type"], spec.get("options") or {})}


class Catalogs:
    name = "catalogs"
    holds = ""

    def check(self, name: str, spec: Spec) -> None:
        canonical(spec)

    def reads(self, name: str, spec: Spec) -> Iterable[Ref]:
        storage = (spec.get("options") or {}).get("storage")
        return () if storage is None else (Ref("storage", storage),)

    def writes(self, name: str, spec: Spec) -> Iterable[Ref]:
        return ()

    def makes(self, name: str, spec: Spec) -> Iterable[Ref]:
        return ()

    def difference(self, name: str, spec: Spec, live: Live, owner: Owner | None) -> Difference | None:
        return replaced_whole(
            canonical(spec), live, None, "its entries there, until they are published again"
        )
