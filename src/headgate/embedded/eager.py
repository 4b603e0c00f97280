"""Whether the query driver starts behind READY, or waits until somebody asks."""

from collections.abc import Callable

from sqlalchemy.exc import OperationalError

from headgate.config import Query
from headgate.embedded.memory import available_bytes, driver_bytes
from headgate.store import Store

NAME = "query"


def start_query_driver(
    settings: Query,
    store: Store,
    say: Callable[[str], None],
    available: Callable[[], int | None] = available_bytes,
) -> bool:
    """Asks for it if there is memory, and says what was decided."""
    if settings.start == "lazy":
        return False
    needed, left = driver_bytes(settings.memory), available()
    if left is None or left < needed:
        free = "how much memory is free is not known" if left is None else f"{_gib(left)} of memory are free"
        say(f"query starts when somebody asks: {free}, and it may take {_gib(needed)}")
        return False
    try:
        store.want(NAME)
    except OperationalError as error:
        say(f"query starts when somebody asks: the control state does not answer ({error.orig})")
        return False
    say(f"query starts in the background: {_gib(left)} of memory are free")
    return True


def _gib(size: int) -> str:
    return f"{size / 1024**3:.1f} GiB"
