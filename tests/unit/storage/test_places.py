"""Which place a location lies in, and integrations in the control state."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from headgate.config import Storage
from headgate.errors import AlreadyExists, InvalidRequest, NotFound
from headgate.storage import Place, Places, Storages
from headgate.storage.places import MEMO_SECONDS, check_storage
from headgate.store import Store


@pytest.fixture
def integrations(tmp_path: Path) -> Iterator[Storages]:
    store = Store.open(f"sqlite:///{tmp_path / 'control.db'}")
    yield Storages(store.engine)
    store.close()


def test_they_are_kept_and_forgotten(integrations: Storages) -> None:
    place = Place("a", "lake", "tables", endpoint="http://store:9000", path_style=True)
    integrations.add(place)
    assert integrations.list() == [place]
    assert integrations.get("a") == place
    assert integrations.remove("a") == place
    assert integrations.list() == []
    for act in (integrations.get, integrations.remove):
        with pytest.raises(NotFound, match="'a'"):
            act("a")


@pytest.mark.parametrize(
    ("other", "error"),
    [
        (Place("a", "elsewhere"), AlreadyExists),
        (Place("b", "lake", "tables"), InvalidRequest),
        (Place("b", "lake", "tables/inner"), InvalidRequest),
        (Place("b", "lake"), InvalidRequest),
    ],
    ids=str,
)
def test_none_lies_in_another(integrations: Storages, other: Place, error: type[Exception]) -> None:
    integrations.add(Place("a", "lake", "tables"))
    with pytest.raises(error):
        integrations.add(other)
    integrations.add(Place("c", "lake", "tables2"))
    assert [place.name for place in integrations.list()] == ["a", "c"]


def test_the_place_of_a_location(integrations: Storages, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_REGION", raising=False)
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    now = 0.0
    places = Places(Storage(endpoint="http://store:9000"), integrations, lambda: now)
    named = Place("a", "lake", "tables")
    assert places.at("file:///lake/tables/t") is None
    assert places.at("s3://lake/tables/t") == Place(None, "lake", endpoint="http://store:9000")
    integrations.add(named)
    # Other processes hear of it a moment later, this one when it is told.
    now += MEMO_SECONDS * 2
    assert places.at("s3://lake/tables/t") == named
    assert places.roots() == ("s3://lake/tables",)
    integrations.remove("a")
    places.forget()
    assert places.roots() == ()


def test_new_tables_have_folders_of_their_own(integrations: Storages) -> None:
    integrations.add(Place("a", "lake", "tables"))
    places = Places(Storage(), integrations)
    one, other = (places.new_location("a", "local", "t") for _ in range(2))
    assert one.startswith("s3://lake/tables/local/t-")
    assert one != other
    assert places.new_location("s3a://lake/b/", "local", "t").startswith("s3://lake/b/local/t-")
    with pytest.raises(NotFound):
        places.new_location("none", "local", "t")


@pytest.mark.parametrize("storage", ["gs://lake", "/lake", "s3://Lake_", "s3://lake/a/../b", "../a"])
def test_what_a_table_cannot_be_stored_in(integrations: Storages, storage: str) -> None:
    with pytest.raises(InvalidRequest):
        check_storage(storage, integrations)
