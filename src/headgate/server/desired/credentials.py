"""Credentials, as the control state has them: files say what they may do, and make none."""

from collections.abc import Collection, Iterator, Mapping, Sequence

from headgate.access.credentials import Credentials
from headgate.apply.kinds.credentials import grants_of
from headgate.apply.model import Change, Live, Spec
from headgate.embedded.notebooks import CREDENTIAL as OF_NOTEBOOKS
from headgate.store import Store


class CredentialPart:
    """The grants of live credentials. That of the notebooks' driver is Headgate's own."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._credentials = Credentials(store.engine)

    def observe(self, names: Collection[str] | None) -> Mapping[str, Live]:
        return {
            one.name: Live({"grants": [str(grant) for grant in one.grants]})
            for one in self._credentials.list()
            if one.revoked_at is None and one.name != OF_NOTEBOOKS and (names is None or one.name in names)
        }

    def create(self, name: str, spec: Spec) -> Iterator[str]:
        raise AssertionError("a command makes credentials")

    def change(self, name: str, spec: Spec, changes: Sequence[Change], live: Live) -> Iterator[str]:
        yield f"credential {name} to have its grants"
        changed = self._credentials.change(name, grants_of(spec))
        self._store.log(f"credential {name}", "changed", ", ".join(map(str, changed.grants)))

    def remove(self, name: str, delete_data: bool) -> Iterator[str]:
        raise AssertionError("no world owns a credential")
