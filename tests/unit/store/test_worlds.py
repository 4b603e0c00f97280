"""Which world has made what."""

from collections.abc import Iterator

import pytest

from headgate.config import Settings
from headgate.errors import AlreadyExists
from headgate.store import Store, WorldObject, Worlds


@pytest.fixture
def worlds(settings: Settings) -> Iterator[Worlds]:
    store = Store.open(settings.store_url)
    yield Worlds(store.engine)
    store.close()


def test_a_thing_has_one_world_and_the_last_word_on_it(worlds: Worlds) -> None:
    worlds.claim("topics", "raw", "shop", {"partitions": 2})
    worlds.claim("topics", "raw", "shop", {"partitions": 3})
    with pytest.raises(AlreadyExists, match="'raw' of topics belongs to world 'shop'"):
        worlds.claim("topics", "raw", "other", {})
    assert worlds.all() == [WorldObject("topics", "raw", "shop", {"partitions": 3})]
    worlds.claim("tables", "raw", "other", {})
    worlds.release("topics", "raw")
    assert worlds.all() == [WorldObject("tables", "raw", "other", {})]
