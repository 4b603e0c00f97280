"""Outside catalogs that tables are published to. Secrets are named; the configuration has them."""

from collections.abc import Iterable
from typing import Any

from headgate.apply.kinds.kind import Kind, replaced_whole
from headgate.apply.model import Difference, Live, Owner, Ref, Spec
from headgate.publication.options import parse_options


def options_of(kind: str, given: Spec) -> dict[str, Any]:
    """The options of a catalog without their defaults."""
    options = parse_options(kind, given)
    return options.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_defaults=True)


def canonical(spec: Spec) -> Spec:
    return {"type": spec["type"], "options": options_of(spec["type"], spec.get("options") or {})}


class Catalogs(Kind):
    name = "catalogs"
    holds = ""

    def check(self, name: str, spec: Spec) -> None:
        canonical(spec)

    def reads(self, name: str, spec: Spec) -> Iterable[Ref]:
        storage = (spec.get("options") or {}).get("storage")
        return () if storage is None else (Ref("storage", storage),)

    def secrets(self, name: str, spec: Spec) -> Iterable[str]:
        secret = (spec.get("options") or {}).get("secret")
        return () if secret is None else (secret,)

    def difference(self, name: str, spec: Spec, live: Live, owner: Owner | None) -> Difference | None:
        return replaced_whole(
            canonical(spec), live, None, "its entries there, until they are published again"
        )
