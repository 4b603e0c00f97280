"""A child goes on to say that it lives, whatever its database has answered once."""

from typing import Any, cast

import pytest
from sqlalchemy.exc import DBAPIError, InterfaceError, InternalError, OperationalError

from headgate.embedded.heartbeat import Heartbeat
from headgate.store import Store
from tests.support.services import wait_for


class Flaky:
    """A control state that does not take the first beat."""

    def __init__(self, error: DBAPIError) -> None:
        self._error = error
        self.beats = 0

    def beat(self, *_: Any) -> None:
        self.beats += 1
        if self.beats == 1:
            raise self._error


@pytest.mark.parametrize("kind", [OperationalError, InternalError, InterfaceError])
def test_a_beat_that_is_not_taken_is_followed_by_another(kind: type[DBAPIError]) -> None:
    """After a failover a database may take no writes for a while, or have closed the connection."""
    store = Flaky(kind("UPDATE processes", {}, Exception("cannot execute UPDATE in a read-only transaction")))
    with Heartbeat(cast(Store, store), "engine", "one", seconds=0.01):
        wait_for("more beats", lambda: store.beats >= 3, 10)
