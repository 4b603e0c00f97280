"""Places in object stores where tables may lie."""

from headgate.apply.kinds.kind import Kind, replaced_whole
from headgate.apply.model import Difference, Live, Owner, Spec
from headgate.storage import Place
from headgate.storage.place import split


def place_of(name: str, spec: Spec) -> Place:
    """The place that a file says; InvalidRequest where there can be no such place."""
    bucket, prefix = split(spec["uri"])
    rest = {field: value for field, value in spec.items() if field != "uri"}
    return Place.checked(name=name, bucket=bucket, prefix=prefix, **rest)


def spec_of(place: Place) -> Spec:
    fields = {field: value for field, value in place.to_dict().items() if value not in (None, False, "none")}
    for field in ("name", "bucket", "prefix"):
        fields.pop(field, None)
    return {"uri": place.root, **fields}


class Storage(Kind):
    name = "storage"
    holds = ""

    def check(self, name: str, spec: Spec) -> None:
        place_of(name, spec)

    def difference(self, name: str, spec: Spec, live: Live, owner: Owner | None) -> Difference | None:
        """A place with tables is not removed: then the step fails, and says which tables."""
        wanted = spec_of(place_of(name, spec))
        before = Owner(owner.world, spec_of(place_of(name, owner.spec))) if owner and owner.spec else None
        return replaced_whole(wanted, live, before, "its name for a moment; what lies there stays there")
