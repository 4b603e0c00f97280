"""What credentials may do. A command makes them, as their secret is shown once."""

from headgate.access import Grant
from headgate.apply.kinds.kind import Kind
from headgate.apply.model import Change, Difference, Live, Owner, Spec


def grants_of(spec: Spec) -> list[Grant]:
    """The grants of a credential, each once and in order."""
    return sorted({Grant.parse(text) for text in spec["grants"]})


def canonical(spec: Spec) -> Spec:
    return {"grants": [str(grant) for grant in grants_of(spec)]}


class Credentials(Kind):
    name = "credentials"
    holds = ""
    made_by = "headgate credentials create"

    def check(self, name: str, spec: Spec) -> None:
        grants_of(spec)

    def difference(self, name: str, spec: Spec, live: Live, owner: Owner | None) -> Difference | None:
        wanted, there = canonical(spec)["grants"], canonical(live.spec)["grants"]
        return None if wanted == there else Difference((Change("grants", there, wanted),))
